"""The separate requests that a client input may hold: list items or paragraphs of one document, two at least, each of which asks.

They are only candidates: `intention.goals` decides whether they are goals of their own. English, this project's own rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.intention.elements import Element
from opus_pipelines.intention.sentences import Sentence, asks, sentences_of

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
    found = [b for b in blocks.values() if any(asks(s.text) for s in b)]
    return [Request(element.element_id, " ".join(s.text for s in b), tuple(b)) for b in found] if len(found) > 1 else []
