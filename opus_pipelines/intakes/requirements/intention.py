"""The Intention: decoded in the sentences of the documents, encoded as Γ, LWM (4) and (5), and one for each goal.

The decoded Intention: goal, inputs, outputs and rules in the sentences of the documents, each with its place.

These are the project's own rules, for English. The goal is the intake's title, else the first sentence of the client
input that asks for something, else its first sentence. Inputs and outputs are the sentences, list items and table heads
of those elements, at most `MOST_SENTENCES` for each (generation/intakes has the whole text). Rules are the normative
sentences (`intakes.requirements.rules`).

Γ is a weighted mean of the passages of the elements, with the client input as the query. Keys and values are the
passages of the process context; a client output is added with its own weight. A part that the client did not give is
added later (`resolve_missing_part`). A trained encoder of Intentions can replace `encode_intention` if it
returns an `Intention`.

Requests are list items or paragraphs of one document, at least two, each of which asks for something; or else whole
documents of the client input, at least two, in each of which something is asked for. They are candidates:
`goals_of` decides whether they are separate goals. This is the project's own rule, for English.

This is the project's own, conservative rule. Two requests of the client input are two goals where each asks by itself
(`is_request`), the cosine of their vectors is below `SAME_MATTER`, and different kinds of case of history
clearly answer them. Otherwise they are one goal.

The part that a client did not give, resolved from history by attention: LWM 4.2.

The query is the client input and the value is the missing part. Keys are the nearest successful cases, by their
similarity to what the client gave. Values: for a missing process context the mean vector of the steps of the case, for
a missing output the vector of its last step. The similar cases are looked up before this and do not change: a search
with history's own answer would only confirm it. The resolved part is marked as such and never counts as words of the
client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opus_pipelines.intakes.elements import Element, is_complete, is_foreign
from opus_pipelines.intakes.requirements.rules import Rule, Sentence, is_request, rule_clauses, rules_of, sentences_of
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import (
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

MOST_SENTENCES = 40
GOAL_LENGTH = 300


@dataclass(frozen=True)
class StatedText:
    """A sentence of a document with its element (None where it is of no document) and its place there."""

    text: str
    element_id: str | None
    place: str


@dataclass(frozen=True)
class Decoded:
    """Goal, inputs, outputs and rules of one Intention."""

    goal: str
    inputs: tuple[StatedText, ...]
    outputs: tuple[StatedText, ...]
    rules: tuple[Rule, ...]


def decode_intention(elements: Sequence[Element], title: str | None) -> Decoded:
    """Return the goal, inputs, outputs and rules of the elements."""
    given = [s for e in elements if e.role == "input" for s in sentences_of(e)]
    wanted = [s for e in elements if e.role == "output" for s in sentences_of(e)]
    return Decoded(
        title_of(title) or goal_of(given), stated_texts(given), stated_texts(wanted), tuple(rules_of(elements))
    )


def title_of(title: str | None) -> str:
    """Return a title on one line of at most `GOAL_LENGTH` characters."""
    return " ".join((title or "").split())[:GOAL_LENGTH]


def goal_of(given: Sequence[Sentence]) -> str:
    """Return the sentence that states what the client asks for, "" where there is none."""
    sentences = [s for s in given if s.shape in ("prose", "item")] or list(given)
    request = next((s for s in sentences if is_request(s.text)), sentences[0] if sentences else None)
    return title_of(request.text) if request else ""


def stated_texts(sentences: Iterable[Sentence]) -> tuple[StatedText, ...]:
    """Return the sentences that state something by themselves; for a table its head, once."""
    texts: dict[tuple[str, str], StatedText] = {}
    counts: dict[str, int] = {}
    for s in sentences:
        text, place = (s.heading or "", "head of the table") if s.shape == "row" else (s.text, s.place)
        if s.shape in ("heading", "snippet") or not text:
            continue
        if counts.get(s.element_id, 0) < MOST_SENTENCES and (s.element_id, text) not in texts:
            counts[s.element_id] = counts.get(s.element_id, 0) + 1
            texts[s.element_id, text] = StatedText(text, s.element_id, place)
    return tuple(texts.values())


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
        if not is_foreign(e)  # the encoder knows English only
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


SAME_MATTER = 0.60  # cosine from which on two requests are about one thing

KindOf = Callable[[np.ndarray], str | None]


def goals_of(intention: Intention, kind_of: KindOf) -> list[Intention]:
    """Return the Intention itself, or one for each of its goals.

    `kind_of` returns the kind of case that clearly answers a vector [d], else None.
    """
    groups = _groups(intention, kind_of)
    return [_of_goal(intention, group) for group in groups] if len(groups) > 1 else [intention]


def _groups(intention: Intention, kind_of: KindOf) -> list[list[Request]]:
    """Return the requests by the kind of case that answers them, in order.

    Requests that no kind clearly answers are left out.
    """
    groups: dict[str, list[Request]] = {}
    for request in intention.requests:
        if kind := kind_of(intention.texts[request.text]):
            groups.setdefault(kind, []).append(request)
    distinct = list(groups.values())
    firsts = [intention.texts[group[0].text] for group in distinct]
    are_distinct = all(float(a @ b) < SAME_MATTER for n, a in enumerate(firsts) for b in firsts[:n])
    return distinct if are_distinct else []


def _of_goal(intention: Intention, group: Sequence[Request]) -> Intention:
    """Return the Intention of one goal: its requests are the query, the shared parts are weighted by attention."""
    rows = np.stack([intention.texts[r.text] for r in group])
    request = rows.mean(0)
    outputs = intention.parts.get("output", np.zeros((0, rows.shape[1]), np.float32))
    wanted = (attention(request / np.linalg.norm(request), outputs) @ outputs)[None, :] if len(outputs) else outputs
    goal = title_of(" ".join(r.text for r in group))
    decoded = replace(intention.decoded, goal=goal, inputs=stated_texts(s for r in group for s in r.sentences))
    vector = compose(request, intention.parts.get("context"), wanted)
    return replace(
        intention,
        vector=vector,
        goal=goal,
        decoded=decoded,
        requests=tuple(group),
        parts={**intention.parts, "input": rows},
    )


_NEAREST = 5  # successful cases that answer
_WEIGHT = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}


@dataclass(frozen=True)
class Precedent:
    """A case of history as a source of the missing part.

    It has the similarity to the request, the vectors [n, d] of the steps of the case in order, and the outputs of
    the last step.
    """

    case_id: str
    similarity: float
    steps: np.ndarray
    outputs: tuple[str, ...] = ()


def missing_part(intention: Intention) -> str | None:
    """Return the part that the client did not give, "context" or "output", else None; the input is always given."""
    return next((part for part in ("context", "output") if not len(intention.parts.get(part, ()))), None)


def resolve_missing_part(intention: Intention, precedents: Sequence[Precedent]) -> Intention:
    """Return the Intention with its missing part from the precedents, nearest first.

    Returns it unchanged where no part is missing or no precedent has steps.
    """
    part = missing_part(intention)
    usable = [p for p in precedents if len(p.steps)][:_NEAREST]
    if part is None or not usable:
        return intention
    weights = attention(np.ones(1, np.float32), np.array([[p.similarity] for p in usable], np.float32))
    values = np.stack([unit(p.steps.mean(0)) if part == "context" else unit(p.steps[-1]) for p in usable])
    parts = {**intention.parts, part: (weights @ values)[None, :].astype(np.float32)}
    ids = tuple(p.case_id for p in usable)
    decoded = intention.decoded
    if part == "output":
        words = dict.fromkeys(text for p in usable for text in p.outputs)
        decoded = replace(
            decoded, outputs=tuple(StatedText(text, None, f"resolved from history: {', '.join(ids)}") for text in words)
        )
    vector = compose(unit(parts["input"].mean(0)), parts["context"], parts["output"])
    shares = _weighted_shares(intention.attention, part, dict(zip(ids, weights.tolist(), strict=True)), parts)
    return replace(intention, vector=vector, decoded=decoded, resolved=(part, *ids), attention=shares, parts=parts)


def _weighted_shares(
    given: dict[str, float], part: str, cases: dict[str, float], parts: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return the shares of Γ: those of the elements, and the share of the resolved part, by case."""
    taken = _WEIGHT[part] / sum(_WEIGHT[p] for p in _WEIGHT if len(parts[p]))
    return {e: w * (1 - taken) for e, w in given.items()} | {c: w * taken for c, w in cases.items()}
