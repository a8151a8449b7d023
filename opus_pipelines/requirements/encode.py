"""Γ: the encoded Intention, LWM (4) and (5), here a weighted mean of the passages of its elements with the client
input as query.

Keys are the passages of the process context, values too; where a client output is there, it joins with its own weight.
A part that the client did not give is put in later (`requirements.missing_part`). A trained Intention encoder later takes
the place of `encode_intention`; what it must give stays `Intention`.

The separate requests that a client input may hold: list items or paragraphs of one document, two at least, each of
which asks.

They are only candidates: `requirements.goals` decides whether they are goals of their own. English, this project's own
rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.embedding.passages import (
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
from opus_pipelines.intakes.elements import Element, is_complete
from opus_pipelines.requirements.decode import Decoded, decode
from opus_pipelines.requirements.rules import clauses_of, rules_of
from opus_pipelines.requirements.sentences import Sentence, is_request, sentences_of

MOST = 8  # requests of one intake beyond which a list is one order's lines, not goals


@dataclass(frozen=True)
class Request:
    """One request as it stands: its text, and the sentences that it is made of."""

    element_id: str
    text: str
    sentences: tuple[Sentence, ...]


def requests_of(elements: Sequence[Element]) -> list[Request]:
    """The candidates, in order; none where fewer than two or more than `MOST` ask."""
    found = [r for e in elements if e.role == "input" for r in _in_document(e)]
    return found if 2 <= len(found) <= MOST else []


def _in_document(element: Element) -> list[Request]:
    blocks: dict[int, list[Sentence]] = {}
    for sentence in sentences_of(element):
        if sentence.shape in ("prose", "item"):
            blocks.setdefault(sentence.block, []).append(sentence)
    found = [b for b in blocks.values() if any(is_request(s.text) for s in b)]
    return [Request(element.element_id, " ".join(s.text for s in b), tuple(b)) for b in found] if len(found) > 1 else []


_PARTS = {"input": "input", "output": "output", "process": "context", "contract": "context"}


@dataclass(frozen=True)
class Passage:
    """One passage of an element, and the part it plays: input, output or context of Γ; or a request or a rule's
    clause, which do not.
    """

    element_id: str
    part: str
    text: str


@dataclass(frozen=True)
class Intention:
    """An encoded Intention: `kind` complete or incomplete; `vector` is Γ, unit length; `attention` gives each
    element's share of it.

    `parts`: the rows [n, d] of input, context and output that Γ was made of; `texts`: vectors of requests and rules'
    clauses by text;
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
    found = [
        Passage(e.element_id, part, text)
        for e in elements
        for part in [_PARTS[e.role]]
        for text in cut[part](e.text, max_words)
    ]
    found += [Passage(r.element_id, "request", r.text) for r in requests_of(elements)]
    return found + [Passage("", "clause", text) for text in clauses_of(rules_of(elements))]


def encode_intention(elements: Sequence[Element], title: str | None, encoder: TextEncoder) -> Intention:
    """The Intention of an intake's elements. They must hold readable client input (`elements.missing` tells)."""
    found = passages_of(elements, words_of(encoder.max_tokens))
    vectors = encoder.encode([p.text for p in found])
    rows = {
        part: np.array([v for p, v in zip(found, vectors, strict=True) if p.part == part])
        for part in ("input", "context", "output")
    }
    request = unit(rows["input"].mean(0))
    vector = compose(request, rows["context"], rows["output"])
    decoded = decode(elements, title)
    texts = {p.text: v for p, v in zip(found, vectors, strict=True) if p.part in ("request", "clause")}
    kind = "complete" if is_complete(list(elements)) else "incomplete"
    return Intention(
        kind, vector, decoded.goal, _shares(found, request, rows), decoded, tuple(requests_of(elements)), rows, texts
    )


def _shares(found: list[Passage], request: np.ndarray, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Share of Γ by element: each part's weight, spread over its passages as `compose` spreads it."""
    weights = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}
    there = {part: weights[part] for part in weights if len(rows[part])}
    spread = {
        p: attention(request, rows[p]) if p == "context" else np.full(len(rows[p]), 1 / len(rows[p])) for p in there
    }
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
