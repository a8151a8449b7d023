"""Collects what a person does not see of a document, and states it with its reason.

Two kinds are kept apart. Hidden text is never read. What stands outside the body (speaker's notes, the subject of an
e-mail, a closed block) can be opened by a person; it is read where the settings name it.
"""

from collections.abc import Iterable
from typing import Literal, get_args

Aside = Literal["notes", "subject", "details", "scan_text", "split_words"]
ASIDES: frozenset[str] = frozenset(get_args(Aside))
REASONS = {
    "notes": "notes of the speaker, outside the slide",
    "subject": "the head of the e-mail, outside its body",
    "details": "a block that is closed until somebody opens it",
    "scan_text": "the invisible text layer of a scanned page",
    "split_words": "characters without width inside its words",
}

COLOUR = "in the colour of its background"
SMALL = "too small to be read"
OFF_PAGE = "outside the page"
COVERED = "under something that covers it"
INVISIBLE = "in an invisible style"
CLIPPED = "cut away"
MARKED_AS_HIDDEN = "marked as hidden"
MOST_SHOWN = 3  # passages of one reason that are shown
MOST_CHARACTERS = 80  # of each
SMALLEST_POINTS = 3.0  # height of letters that a person can read on a printed page


class Unseen:
    """The passages of one document that nobody sees, by their reason. `read`: kinds outside the body that are read."""

    def __init__(self, read: Iterable[str] = ()) -> None:
        self.read = frozenset(read)
        self._passages: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def hide(self, reason: str, text: str = "") -> None:
        """Counts one hidden passage. A passage without letters or digits says nothing, and is not counted."""
        shown = " ".join(text.split())
        if text and not any(c.isalnum() for c in shown):
            return
        passages = self._passages.setdefault(reason, [])
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if shown and len(passages) < MOST_SHOWN:
            cut = shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 3].rstrip() + "..."
            passages.append(f'"{cut}"')

    def keeps(self, aside: str, text: str) -> bool:
        """Returns whether a text outside the body is read. Otherwise it is counted with its reason."""
        if aside in self.read:
            return True
        self.hide(REASONS[aside], text)
        return False

    @property
    def notes(self) -> list[str]:
        """One phrase for each reason: how many passages, why nobody sees them, and the first of them."""
        return [
            f"{count:,} hidden passage{'s' * (count > 1)}: {reason}" + _quoted(self._passages[reason], count)
            for reason, count in self._counts.items()
        ]


def _quoted(passages: list[str], count: int) -> str:
    if not passages:
        return ""
    return f" ({', '.join(passages)}{', ...' if count > len(passages) else ''})"
