"""Tells how much of a task's title stands in a request: by its words, their beginnings and their letters.

Titles and texts are words in lower case with a space between them. A piece of a title counts the more, the fewer other
titles have it: of *clock alarm cancel* and *clock alarm change* it is the last word that tells them apart. Nothing of
history is needed, so that a task that no case did has these figures, too. Vectors of sentences hold the same words, but
two titles that share most of them are near there.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

BEGINNING = 5  # letters of a word that count as its stem
LETTERS = 4  # letters that stand together


class TitlePieces:
    """The pieces of all titles; the weight of one is the log of how many times more titles there are than have it."""

    def __init__(self, titles: Sequence[str], pieces: Callable[[str], set[str]]) -> None:
        """Take the titles; `pieces` returns those of a text."""
        of_title = [sorted(pieces(title)) for title in titles]
        counts = Counter(piece for own in of_title for piece in own)
        self._pieces, self._place = pieces, {piece: n for n, piece in enumerate(sorted(counts))}
        found = [piece for own in of_title for piece in own]
        self._titles = np.repeat(np.arange(len(titles)), [len(own) for own in of_title])
        self._columns = np.array([self._place[piece] for piece in found], np.int64)
        self._weights = np.log((len(titles) + 1) / np.array([counts[piece] for piece in found], np.float64))
        self._totals = np.maximum(1e-6, np.bincount(self._titles, self._weights, len(titles)))

    def shares(self, text: str) -> np.ndarray:
        """Return which share [titles] of each title's pieces, by weight, stands in a text."""
        return np.asarray(np.bincount(self._titles, self._found(text), len(self._totals)) / self._totals)

    def heaviest(self, text: str) -> np.ndarray:
        """Return the weight [titles] of each title's heaviest piece in a text, 0 where none is."""
        heaviest = np.zeros(len(self._totals))
        np.maximum.at(heaviest, self._titles, self._found(text))
        return heaviest

    def _found(self, text: str) -> np.ndarray:
        """Return the weights [pieces of titles], 0 where the piece does not stand in the text."""
        there = np.zeros(len(self._place))
        there[[self._place[piece] for piece in self._pieces(text) if piece in self._place]] = 1.0
        return np.asarray(self._weights * there[self._columns])


class TitleMatch:
    """The titles of an industry's tasks, by words, beginnings of words and letters."""

    def __init__(self, titles: Sequence[str]) -> None:
        """Take the titles."""
        self._words, self._beginnings, self._letters = (TitlePieces(titles, p) for p in (words, beginnings, letters))

    def columns(self, text: str) -> list[np.ndarray]:
        """Return four figures [titles]: shares by words, beginnings and letters, and the weight of the rarest word."""
        shares = [of.shares(text) for of in (self._words, self._beginnings, self._letters)]
        return [*shares, self._words.heaviest(text)]


def words(text: str) -> set[str]:
    """Return the words of a text."""
    return set(text.split())


def beginnings(text: str) -> set[str]:
    """Return the beginnings of its words."""
    return {word[:BEGINNING] for word in text.split()}


def letters(text: str) -> set[str]:
    """Return the letters that stand together in it, ends of words included."""
    whole = f" {text} "
    return {whole[n : n + LETTERS] for n in range(len(whole) - LETTERS + 1)}
