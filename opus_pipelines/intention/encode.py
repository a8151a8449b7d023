"""Γ: the encoded Intention, LWM (4) and (5), here a weighted mean of the passages of its elements with the client input as query.

A trained Intention encoder later takes the place of `encode_intention`; what it must give stays `Intention`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
from opus_pipelines.intention.elements import Element, is_complete

_PARTS = {"input": "input", "output": "output", "process": "context", "contract": "context"}
_GOAL_LENGTH = 300


@dataclass(frozen=True)
class Passage:
    """One passage of an element, and the part it plays: input, output or context."""

    element_id: str
    part: str
    text: str


@dataclass(frozen=True)
class Intention:
    """An encoded Intention: `kind` complete or incomplete; `vector` is Γ, unit length; `attention` gives each element's share of it."""

    kind: str
    vector: np.ndarray
    goal: str
    attention: dict[str, float]


def passages_of(elements: Sequence[Element], max_words: int) -> list[Passage]:
    """Every passage of every readable element, in order."""
    cut = {"input": stretches, "output": stretches, "context": passages}
    return [Passage(e.element_id, part, text) for e in elements for part in [_PARTS[e.role]] for text in cut[part](e.text, max_words)]


def encode_intention(elements: Sequence[Element], title: str | None, encoder: TextEncoder) -> Intention:
    """The Intention of an intake's elements. They must hold readable client input (`elements.missing` tells)."""
    found = passages_of(elements, words_of(encoder.max_tokens))
    vectors = encoder.encode([p.text for p in found])
    rows = {part: np.array([v for p, v in zip(found, vectors, strict=True) if p.part == part]) for part in ("input", "context", "output")}
    request = unit(rows["input"].mean(0))
    vector = compose(request, rows["context"], rows["output"])
    goal = title or next(p for e in elements if e.role == "input" for p in passages(e.text, _GOAL_LENGTH))
    kind = "complete" if is_complete(list(elements)) else "incomplete"
    return Intention(kind, vector, " ".join(goal.split())[:_GOAL_LENGTH], _shares(found, request, rows))


def _shares(found: list[Passage], request: np.ndarray, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Share of Γ by element: each part's weight, spread over its passages as `compose` spreads it."""
    weights = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}
    there = {part: weights[part] for part in weights if len(rows[part])}
    spread = {p: attention(request, rows[p]) if p == "context" else np.full(len(rows[p]), 1 / len(rows[p])) for p in there}
    shares: dict[str, float] = {}
    taken = dict.fromkeys(there, 0)
    for passage in found:
        part = passage.part
        share = there[part] / sum(there.values()) * float(spread[part][taken[part]])
        shares[passage.element_id] = shares.get(passage.element_id, 0.0) + share
        taken[part] += 1
    return shares
