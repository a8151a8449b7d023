"""A small world for the pointer model: eight tools, and requests whose clauses ask for one or two of them."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from opus_pipelines.lwm.pointer.candidates import EncodedRequest, clauses_of, plain
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph

VERBS, THINGS = ("open", "close", "check", "send"), ("account", "invoice")
TOOLS = tuple(f"{verb}_{thing}" for verb in VERBS for thing in THINGS)
WORDS = sorted({*VERBS, *THINGS, "please", "the"})


def vector(text: str) -> np.ndarray:
    """Return the unit vector [words] of the words of a text."""
    words = plain(text).split()
    counts = np.array([words.count(word) for word in WORDS], np.float32) + 1e-3
    return np.asarray(counts / np.linalg.norm(counts))


def request(text: str) -> EncodedRequest:
    """Return an encoded request."""
    return EncodedRequest.of(text, vector(text), np.stack([vector(clause.text) for clause in clauses_of(text)]))


def asks_for(tools: Sequence[str]) -> str:
    """Return a request for tools in this order."""
    return "please " + " and ".join("{} the {}".format(*tool.split("_")) for tool in tools)


def plans(count: int, seed: int = 0) -> list[tuple[str, ...]]:
    """Return plans of one or two tools; two are never the same."""
    draw = np.random.default_rng(seed)
    return [tuple(TOOLS[n] for n in draw.permutation(len(TOOLS))[: draw.integers(1, 3)]) for _ in range(count)]


def memory(cases: Sequence[Sequence[str]]) -> CaseMemory:
    """Return the memory of cases with these plans; γ has λ = 1."""
    transitions = np.zeros((len(TOOLS), len(TOOLS)))
    traces = [[TOOLS.index(tool) for tool in case] for case in cases]
    for trace in traces:
        for a, b in pairwise(trace):
            transitions[a, b] += 1
    vectors = np.stack([vector(tool) for tool in TOOLS])
    graph = IndustryGraph(TOOLS, TOOLS, vectors, csr_array(1 - np.exp(-transitions)), csr_array(transitions))
    texts = [asks_for(case) for case in cases]
    return CaseMemory(graph, texts, np.stack([vector(text) for text in texts]), traces)
