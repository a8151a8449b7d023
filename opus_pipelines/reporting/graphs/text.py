"""Cleans, measures and wraps text in boxes.

Widths are those of DejaVu Sans, the widest of the fonts that browsers use for `sans-serif`, so text fits in any of
them.
"""

import re
import unicodedata

from opus_pipelines.core.safe_text import clean as clean

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
    """Returns the width of `text` in pixels, at a font size of `size` pixels."""
    return size * sum(_em(char) for char in text)


def wrap(text: str, size: float, limit: float, lines: int) -> list[str]:
    """Returns at most `lines` lines, none wider than `limit` pixels.

    Lines are broken between words, else after _ - / and similar signs, else anywhere.
    """
    wrapped: list[str] = []
    line = ""
    for space, piece in _pieces(clean(text), size, limit):
        joined = line + space + piece if line else piece
        if width(joined, size) <= limit:
            line = joined
            continue
        wrapped.append(line)
        line = piece
    wrapped.append(line)
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], shorten(f"{wrapped[lines - 1]} {wrapped[lines]}", size, limit)]
    return wrapped


def shorten(text: str, size: float, limit: float) -> str:
    """Returns `text`, cut with an ellipsis where it is wider than `limit` pixels."""
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
    """Returns pieces of the text, none wider than `limit`, each with what joins it to the piece before."""
    pieces: list[tuple[str, str]] = []
    for word in text.split(" "):
        parts = (
            [word]
            if width(word, size) <= limit
            else [cut for part in _PLACES.split(word) for cut in _cut(part, size, limit)]
        )
        pieces += [(" " if i == 0 else "", part) for i, part in enumerate(parts)]
    return pieces


def _cut(word: str, size: float, limit: float) -> list[str]:
    """Splits a word that is too wide for a line; combining marks stay with their letter."""
    parts, line = [], ""
    for char in word:
        if line and width(line + char, size) > limit and unicodedata.category(char) not in _UNSEEN:
            parts.append(line)
            line = ""
        line += char
    return [*parts, line] if line else parts
