"""A text as plain digits, blanks and signs, so that one pattern finds a number however it is written.

Digits of every script become 0 to 9, blanks of every width become a blank, full-width signs and dashes become those of
ASCII, and characters without width are left out. Each character knows its place in the text as it is written.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

Span = tuple[int, int, str]  # begin, end, and the word that takes its place
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_MAYBE = re.compile(r"[^\x00-\x7f]")
# Letters of scripts without blanks between words: a number may stand directly beside them.
UNSPACED = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
NO_LETTER_BEFORE = rf"(?<![^\W{UNSPACED}])"
NO_LETTER_AFTER = rf"(?![^\W{UNSPACED}])"
FILLER = "]"  # takes the place of what is already masked; no pattern goes on over it


class PlainText:
    """A text in its plain form, and what of it is masked so far."""

    def __init__(self, written: str) -> None:
        self._written = written
        self._places: list[int] | None = None
        self.plain = written
        if _MAYBE.search(written):
            kept = [(plain, at) for at, c in enumerate(written) if (plain := _plain(c))]
            self.plain = "".join(plain for plain, _ in kept)
            self._places = [at for _, at in kept]
        self._spans: list[Span] = []

    def mask(self, spans: Sequence[Span]) -> None:
        """Masks parts of the plain form; they must not overlap."""
        for start, end, token in spans:
            if end > start:
                self.plain = self.plain[:start] + FILLER * (end - start) + self.plain[end:]
                self._spans.append((start, end, token))

    @property
    def masked(self) -> str:
        """The text as it is written, with a word for each part that is masked."""
        if not self._spans:
            return self._written
        parts, done = [], 0
        for start, end, token in sorted(self._spans):
            first, last = (start, end - 1) if self._places is None else (self._places[start], self._places[end - 1])
            parts += [self._written[done:first], token]
            done = last + 1
        return "".join(parts) + self._written[done:]


@lru_cache(maxsize=4096)
def _plain(c: str) -> str:
    """Returns the plain form of a character: one character, or none for those without width."""
    if c < "\x80":
        return c
    if c in _DASHES:
        return "-"
    if c == "\uff0c":  # a comma between clauses, never between digits
        return ";"
    if "\uff01" <= c <= "\uff5e":
        return chr(ord(c) - 0xFEE0)
    kind = unicodedata.category(c)
    if kind == "Nd":
        return str(unicodedata.digit(c))
    if kind == "Zs":
        return " "
    return "" if kind == "Cf" else c
