"""The decoded Intention: goal, inputs, outputs and rules in the sentences of the documents, each with its place.

These are the project's own rules, for English. The goal is the intake's title, else the first sentence of the client
input that asks for something, else its first sentence. Inputs and outputs are the sentences, list items and table heads
of those elements, at most `MOST` for each element (generation/intakes has the whole text). Rules are the normative
sentences (`intakes.requirements.rules`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import Rule, rules_of
from opus_pipelines.intakes.requirements.sentences import Sentence, is_request, sentences_of

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
