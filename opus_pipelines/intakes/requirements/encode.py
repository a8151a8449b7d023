"""Γ: the encoded Intention, LWM (4) and (5), and the requests that a client input may hold.

Γ is a weighted mean of the passages of the elements, with the client input as the query. Keys and values are the
passages of the process context; a client output is added with its own weight. A part that the client did not give is
added later (`intakes.requirements.missing_part`). A trained encoder of Intentions can replace `encode_intention` if it
returns an `Intention`.

Requests are list items or paragraphs of one document, at least two, each of which asks for something; or else whole
documents of the client input, at least two, in each of which something is asked for. They are candidates:
`intakes.requirements.goals` decides whether they are separate goals. This is the project's own rule, for English.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opus_pipelines.intakes.elements import Element, is_complete
from opus_pipelines.intakes.requirements.decode import Decoded, decode_intention
from opus_pipelines.intakes.requirements.rules import rule_clauses, rules_of
from opus_pipelines.intakes.requirements.sentences import Sentence, is_request, sentences_of
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.passages import (
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

MOST_REQUESTS = 8  # requests of one intake beyond which a list is one order's lines, not goals


@dataclass(frozen=True)
class Request:
    """One request: its text, and its sentences."""

    element_id: str
    text: str
    sentences: tuple[Sentence, ...]


def requests_of(elements: Sequence[Element]) -> list[Request]:
    """Return the candidate requests, in order; none where fewer than two or more than `MOST` ask for something."""
    inputs = [e for e in elements if e.role == "input"]
    requests = [r for e in inputs for r in _in_document(e)] or [r for e in inputs for r in _whole_document(e)]
    return requests if 2 <= len(requests) <= MOST_REQUESTS else []


def _in_document(element: Element) -> list[Request]:
    asking = [b for b in _blocks(element) if any(is_request(s.text) for s in b)]
    return [_request(element, b) for b in asking] if len(asking) > 1 else []


def _whole_document(element: Element) -> list[Request]:
    sentences = [s for block in _blocks(element) for s in block]
    return [_request(element, sentences)] if len(sentences) > 1 else []


def _request(element: Element, sentences: Sequence[Sentence]) -> Request:
    return Request(element.element_id, " ".join(s.text for s in sentences), tuple(sentences))


def _blocks(element: Element) -> list[list[Sentence]]:
    """Return the sentences of each paragraph and list item."""
    blocks: dict[int, list[Sentence]] = {}
    for sentence in sentences_of(element):
        if sentence.shape in ("prose", "item"):
            blocks.setdefault(sentence.block, []).append(sentence)
    return list(blocks.values())


_PARTS = {"input": "input", "output": "output", "process": "context", "contract": "context"}


@dataclass(frozen=True)
class Passage:
    """One passage of an element, and its part in Γ: input, output or context.

    The parts request and clause are encoded too, and are not in Γ.
    """

    element_id: str
    part: str
    text: str


@dataclass(frozen=True)
class Intention:
    """An encoded Intention.

    `kind`: complete or incomplete. `vector`: Γ [d], of unit length. `attention`: the share of each element in Γ.
    `parts`: the rows [n, d] of input, context and output of which Γ was made. `texts`: vectors [d] of requests and
    clauses of rules, by text. `resolved`: the name of the part that history gave, with the ids of its cases, where
    one was missing.
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
    """Return every text of the readable elements that must be encoded, in order, for one call of the encoder."""
    cut = {"input": stretches, "output": stretches, "context": passages}
    texts = [
        Passage(e.element_id, part, text)
        for e in elements
        for part in [_PARTS[e.role]]
        for text in cut[part](e.text, max_words)
    ]
    texts += [Passage(r.element_id, "request", r.text) for r in requests_of(elements)]
    return texts + [Passage("", "clause", text) for text in rule_clauses(rules_of(elements))]


def encode_intention(elements: Sequence[Element], title: str | None, encoder: TextEncoder) -> Intention:
    """Return the Intention of an intake's elements, which must hold readable client input.

    `elements.missing` tells whether they do.
    """
    to_encode = passages_of(elements, words_of(encoder.max_tokens))
    vectors = encoder.encode([p.text for p in to_encode])
    rows = {
        part: np.array([v for p, v in zip(to_encode, vectors, strict=True) if p.part == part])
        for part in ("input", "context", "output")
    }
    request = unit(rows["input"].mean(0))
    vector = compose(request, rows["context"], rows["output"])
    decoded = decode_intention(elements, title)
    texts = {p.text: v for p, v in zip(to_encode, vectors, strict=True) if p.part in ("request", "clause")}
    kind = "complete" if is_complete(list(elements)) else "incomplete"
    return Intention(
        kind,
        vector,
        decoded.goal,
        _shares(to_encode, request, rows),
        decoded,
        tuple(requests_of(elements)),
        rows,
        texts,
    )


def _shares(texts: list[Passage], request: np.ndarray, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the share of each element in Γ: the weight of each part, spread over its passages as in `compose`."""
    weights = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}
    weight_of = {part: weights[part] for part in weights if len(rows[part])}
    spread = {
        p: attention(request, rows[p]) if p == "context" else np.full(len(rows[p]), 1 / len(rows[p])) for p in weight_of
    }
    shares: dict[str, float] = {}
    taken = dict.fromkeys(weight_of, 0)
    for passage in texts:
        part = passage.part
        if part not in weight_of:
            continue
        share = weight_of[part] / sum(weight_of.values()) * float(spread[part][taken[part]])
        shares[passage.element_id] = shares.get(passage.element_id, 0.0) + share
        taken[part] += 1
    return shares
