"""Text in boxes: cleaned of what a file or a screen must not get, measured, wrapped.

Widths are those of DejaVu Sans, the widest of the fonts that a browser takes for `sans-serif`: what fits by them fits
everywhere.
"""

import re
import unicodedata

from opus_pipelines.core.safe_text import clean

ELLIPSIS = "…"
_WIDTHS = {  # in em, by DejaVu Sans
    0.28: "ijl'",
    0.32: " .,",
    0.34: ":;|",
    0.36: "fI-/\\",
    0.40: "tr()[]!",
    0.45: '"',
    0.53: "csz_",
    0.56: "kvxyJ",
    0.60: "eao*?",
    0.64: "bdghnpqu0123456789$FL\u2013",
    0.70: "ABCEPRSTVXYZK",
    0.78: "DGHNUOQ",
    0.84: "w+=<>~#&×→·" + ELLIPSIS,
    0.88: "M",
    0.98: "mW%@",
}
_WIDTH = {char: width for width, chars in _WIDTHS.items() for char in chars}
_UNSEEN = ("Mn", "Me", "Cf")
_PLACES = re.compile(r"(?<=[_\-/.:,;|])(?=\w)|(?<=[a-z])(?=[A-Z][a-z])")


def width(text: str, size: float) -> float:
    """Pixels that `text` takes at a font size of `size` pixels."""
    return size * sum(_em(char) for char in text)


def wrap(text: str, size: float, limit: float, lines: int) -> list[str]:
    """At most `lines` lines, none wider than `limit` pixels: broken between words, else after _ - / and the like, else
    anywhere.
    """
    made: list[str] = []
    line = ""
    for space, piece in _pieces(clean(text), size, limit):
        joined = line + space + piece if line else piece
        if width(joined, size) <= limit:
            line = joined
            continue
        made.append(line)
        line = piece
    made.append(line)
    if len(made) > lines:
        made = [*made[: lines - 1], shorten(f"{made[lines - 1]} {made[lines]}", size, limit)]
    return made


def shorten(text: str, size: float, limit: float) -> str:
    """`text`, cut with an ellipsis where it is wider than `limit` pixels."""
    if width(text, size) <= limit:
        return text
    cut = text
    while cut and width(cut.rstrip() + ELLIPSIS, size) > limit:
        cut = cut[:-1]
    return cut.rstrip() + ELLIPSIS


def _em(char: str) -> float:
    if char in _WIDTH:
        return _WIDTH[char]
    if unicodedata.category(char) in _UNSEEN:
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 1.3 if ord(char) > 0x1_0000 else 0.8


def _pieces(text: str, size: float, limit: float) -> list[tuple[str, str]]:
    """(what joins it to the piece before, the piece), none wider than `limit`."""
    found: list[tuple[str, str]] = []
    for word in text.split(" "):
        parts = (
            [word]
            if width(word, size) <= limit
            else [cut for part in _PLACES.split(word) for cut in _cut(part, size, limit)]
        )
        found += [(" " if i == 0 else "", part) for i, part in enumerate(parts)]
    return found


def _cut(word: str, size: float, limit: float) -> list[str]:
    """A word too wide for a line, in parts that are not; marks stay with their letter."""
    parts, line = [], ""
    for char in word:
        if line and width(line + char, size) > limit and unicodedata.category(char) not in _UNSEEN:
            parts.append(line)
            line = ""
        line += char
    return [*parts, line] if line else parts
