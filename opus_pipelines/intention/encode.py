"""Γ: the encoded Intention, LWM (4) and (5), here a weighted mean of the passages of its elements with the client input as query.

Keys are the passages of the process context, values too; where a client output is there, it joins with its own weight. A part that
the client did not give is put in later (`intention.resolve`). A trained Intention encoder later takes the place of
`encode_intention`; what it must give stays `Intention`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opus_pipelines.embedding.attention import (
    CONTEXT_WEIGHT,
    OUTPUT_WEIGHT,
    REQUEST_WEIGHT,
    attention,
    compose,
    passages,
    stretches,
    unit,
    words_of,
)
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.intention.decode import Decoded, decode
from opus_pipelines.intention.elements import Element, is_complete
from opus_pipelines.intention.requests import Request, requests_of
from opus_pipelines.intention.rules import clauses_of, rules_of

_PARTS = {"input": "input", "output": "output", "process": "context", "contract": "context"}


@dataclass(frozen=True)
class Passage:
    """One passage of an element, and the part it plays: input, output or context of Γ; or a request or a rule's clause, which do not."""

    element_id: str
    part: str
    text: str


@dataclass(frozen=True)
class Intention:
    """An encoded Intention: `kind` complete or incomplete; `vector` is Γ, unit length; `attention` gives each element's share of it.

    `parts`: the rows [n, d] of input, context and output that Γ was made of; `texts`: vectors of requests and rules' clauses by text;
    `resolved`: the part that history gave, with the ids of its cases, where one was missing.
    """

    kind: str
    vector: np.ndarray
    goal: str
    attention: dict[str, float]
    decoded: Decoded
    requests: tuple[Request, ...] = ()
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    texts: Mapping[str, np.ndarray] = field(default_factory=dict)
    resolved: tuple[str, ...] = ()


def passages_of(elements: Sequence[Element], max_words: int) -> list[Passage]:
    """Every text of the readable elements that must be encoded, in order: one call of the encoder does for them all."""
    cut = {"input": stretches, "output": stretches, "context": passages}
    found = [Passage(e.element_id, part, text) for e in elements for part in [_PARTS[e.role]] for text in cut[part](e.text, max_words)]
    found += [Passage(r.element_id, "request", r.text) for r in requests_of(elements)]
    return found + [Passage("", "clause", text) for text in clauses_of(rules_of(elements))]


def encode_intention(elements: Sequence[Element], title: str | None, encoder: TextEncoder) -> Intention:
    """The Intention of an intake's elements. They must hold readable client input (`elements.missing` tells)."""
    found = passages_of(elements, words_of(encoder.max_tokens))
    vectors = encoder.encode([p.text for p in found])
    rows = {part: np.array([v for p, v in zip(found, vectors, strict=True) if p.part == part]) for part in ("input", "context", "output")}
    request = unit(rows["input"].mean(0))
    vector = compose(request, rows["context"], rows["output"])
    decoded = decode(elements, title)
    texts = {p.text: v for p, v in zip(found, vectors, strict=True) if p.part in ("request", "clause")}
    kind = "complete" if is_complete(list(elements)) else "incomplete"
    return Intention(kind, vector, decoded.goal, _shares(found, request, rows), decoded, tuple(requests_of(elements)), rows, texts)


def _shares(found: list[Passage], request: np.ndarray, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Share of Γ by element: each part's weight, spread over its passages as `compose` spreads it."""
    weights = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}
    there = {part: weights[part] for part in weights if len(rows[part])}
    spread = {p: attention(request, rows[p]) if p == "context" else np.full(len(rows[p]), 1 / len(rows[p])) for p in there}
    shares: dict[str, float] = {}
    taken = dict.fromkeys(there, 0)
    for passage in found:
        part = passage.part
        if part not in there:
            continue
        share = there[part] / sum(there.values()) * float(spread[part][taken[part]])
        shares[passage.element_id] = shares.get(passage.element_id, 0.0) + share
        taken[part] += 1
    return shares
