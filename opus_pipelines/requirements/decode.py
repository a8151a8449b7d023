"""What an Intention says in the documents' own sentences: goal, inputs, outputs, rules, each with its place.

Project's own rules, English: the goal is the intake's title, else the first sentence of the client input that asks for
something, else its first sentence. Inputs and outputs are the sentences, list items and tables' heads of those
elements, at most `MOST` an element (all of an element's text stands in generation/intakes); rules are the normative
ones (`requirements.rules`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opus_pipelines.intakes.elements import Element
from opus_pipelines.requirements.rules import Rule, rules_of
from opus_pipelines.requirements.sentences import Sentence, is_request, sentences_of

MOST = 40
GOAL_LENGTH = 300


@dataclass(frozen=True)
class StatedText:
    """A sentence as it stands, its element (None where it is of no document), and its place there."""

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


def decode(elements: Sequence[Element], title: str | None) -> Decoded:
    """What the elements say."""
    given = [s for e in elements if e.role == "input" for s in sentences_of(e)]
    wanted = [s for e in elements if e.role == "output" for s in sentences_of(e)]
    return Decoded(
        title_of(title) or goal_of(given), stated_texts(given), stated_texts(wanted), tuple(rules_of(elements))
    )


def title_of(title: str | None) -> str:
    """A title on one line, of bounded length."""
    return " ".join((title or "").split())[:GOAL_LENGTH]


def goal_of(given: Sequence[Sentence]) -> str:
    """What the client asks for."""
    said = [s for s in given if s.shape in ("prose", "item")] or list(given)
    asking = next((s for s in said if is_request(s.text)), said[0] if said else None)
    return title_of(asking.text) if asking else ""


def stated_texts(sentences: Iterable[Sentence]) -> tuple[StatedText, ...]:
    """The sentences that say something by themselves; of a table its head, once."""
    found: dict[tuple[str, str], StatedText] = {}
    counts: dict[str, int] = {}
    for s in sentences:
        text, place = (s.heading or "", "head of the table") if s.shape == "row" else (s.text, s.place)
        if s.shape in ("heading", "snippet") or not text:
            continue
        if counts.get(s.element_id, 0) < MOST and (s.element_id, text) not in found:
            counts[s.element_id] = counts.get(s.element_id, 0) + 1
            found[s.element_id, text] = StatedText(text, s.element_id, place)
    return tuple(found.values())
