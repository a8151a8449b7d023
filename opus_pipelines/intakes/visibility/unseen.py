"""What a person does not see in a document: reasons, notes, and characters that are never shown.

Two kinds are kept apart. Hidden text is never read. What stands outside the body (speaker's notes, the subject of an
e-mail, a closed block) can be opened by a person; it is read where the settings name it.

Unicode has characters without width (zero-width spaces and joiners, tags, variation selectors) and overrides of the
direction of writing. A person does not see that they are there. So a program may read other words than a person: a
negation that is split, or a whole sentence in tag characters. A line with such characters inside its words is left out,
because what it says to a program and to a person may differ; the number of its line stays free. A soft hyphen is an
ordinary mark of typesetting and is taken out. Joiners between letters of scripts that need them (Arabic, Persian, the
scripts of India), and inside emoji, stay.

Whether a text in one colour can be seen on another is told by the contrast of WCAG 2.2 (1.4.3) and their distance.
"""

import math
import re
from collections.abc import Iterable, Sequence
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


_SOFT = "\u00ad"
_ZERO = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb"
)
_FAR = "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_TAG = re.compile("[\U000e0020-\U000e007e]{2,}")
_ANY = re.compile(f"[{_SOFT}{_ZERO}{_FAR}\u202d\u202e]")
_NO_WIDTH = re.compile(f"[{_ZERO}{_FAR}]")
_PLAIN = r"A-Za-z0-9À-ɏͰ-ϿЀ-ӿ"  # letters of scripts that need no joiners
_SPLIT = re.compile(f"(?<=[{_PLAIN}])[{_ZERO}{_FAR}]+(?=[{_PLAIN}])")
_NEEDED = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\U0001f000-\U0001faff\u2600-\u27bf]")
_OVERRIDE = re.compile("[\u202d\u202e]")
_NO_LETTERS = "characters that are never shown"
_REVERSED = "characters that turn the order of its letters around"
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]{1,8}")  # the flag of a region, which is written with tags


def without_invisible(text: str, unseen: Unseen) -> str:
    """Returns a text without characters that nobody sees; a line that they falsify is empty, and stands in `unseen`."""
    if text.isascii() or not _ANY.search(text):
        return text
    return "\n".join(_line(line, unseen) if _ANY.search(line) else line for line in text.split("\n"))


def _line(line: str, unseen: Unseen) -> str:
    line = _FLAG.sub("\U0001f3f4", line.replace(_SOFT, ""))
    for tags in _TAG.findall(line):
        unseen.hide(_NO_LETTERS, "".join(chr(ord(c) - 0xE0000) for c in tags))
    line = _TAG.sub("", line)
    if _OVERRIDE.search(line):
        unseen.hide(_REVERSED, _OVERRIDE.sub("", line))
        return ""
    bare = line if _NEEDED.search(line) else _NO_WIDTH.sub("", line)
    if _SPLIT.search(line):
        bare = _SPLIT.sub("", bare)
        return bare if unseen.keeps("split_words", bare) else ""
    return bare


Colour = tuple[float, float, float]  # red, green, blue, 0 to 1

WHITE: Colour = (1.0, 1.0, 1.0)
BLACK: Colour = (0.0, 0.0, 0.0)
LEAST_CONTRAST = 1.3  # WCAG demands 4.5 of text; light grey of 20 % on white has 1.6
LEAST_DISTANCE = 0.33  # of two colours in the cube; yellow on white has a contrast of 1.07, and can be seen
LEAST_OPACITY = 0.08


def contrast(one: Colour, other: Colour) -> float:
    """Returns the contrast ratio of WCAG 2.2: 1 for equal colours, 21 for black on white."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def is_like(text: Colour, background: Colour) -> bool:
    """Returns whether text of this colour cannot be told from its background."""
    return contrast(text, background) < LEAST_CONTRAST and math.dist(text, background) < LEAST_DISTANCE


def over(colour: Colour, alpha: float, below: Colour) -> Colour:
    """Returns a colour of this opacity (0 to 1) as it shows over another."""
    red, green, blue = (alpha * c + (1 - alpha) * b for c, b in zip(colour, below, strict=True))
    return red, green, blue


def grey(value: float) -> Colour:
    """Returns a grey, 0 is black."""
    level = min(1.0, max(0.0, value))
    return level, level, level


def of_cmyk(parts: Sequence[float]) -> Colour:
    """Returns a colour of cyan, magenta, yellow and black, each 0 to 1, by the plain formula of PDF (10.3.5)."""
    cyan, magenta, yellow, black = (min(1.0, max(0.0, part)) for part in parts)
    return 1 - min(1.0, cyan + black), 1 - min(1.0, magenta + black), 1 - min(1.0, yellow + black)


def of_hex(text: str | None) -> Colour | None:
    """Returns a colour of six hexadecimal digits (eight: opacity first, as Excel writes it), or None."""
    digits = (text or "").strip().lstrip("#")
    if len(digits) == 8:
        digits = digits[2:]
    if len(digits) != 6:
        return None
    try:
        red, green, blue = bytes.fromhex(digits)
    except ValueError:
        return None
    return red / 255, green / 255, blue / 255


def tinted(colour: Colour, tint: float) -> Colour:
    """Returns a colour made lighter (tint above 0) or darker (below), as Excel does; each channel by itself."""
    red, green, blue = (c * (1 + tint) if tint < 0 else c + (1 - c) * tint for c in colour)
    return red, green, blue


def _luminance(colour: Colour) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
