"""Cuts a request into clauses, each of which may ask for one step."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_CLAUSES = 40  # of a long text the first ones count
_LEAST_WORDS = 2  # a shorter piece has no content
_ENDS = re.compile(r"[,.;:!?]+\s+|\n+|\s+(?:and|then|also|but|after|before)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Clause:
    """One clause; `place` is the share of the text's words that stand before it, in [0, 1[."""

    text: str
    place: float


@dataclass(frozen=True)
class EncodedRequest:
    """A request as the pointer model reads it.

    Attributes:
        vector: unit vector [d] of the whole text.
        clauses: unit vectors [c, d] of its clauses.
        places: place [c] of each clause, see `Clause`.
        text: the text itself.
    """

    vector: np.ndarray
    clauses: np.ndarray
    places: np.ndarray
    text: str

    @classmethod
    def of(cls, text: str, vector: np.ndarray, clauses: np.ndarray) -> "EncodedRequest":
        """Returns the request; `clauses` are the vectors of `clauses_of(text)`."""
        return cls(vector, clauses, np.array([clause.place for clause in clauses_of(text)]), text)


def clauses_of(text: str) -> list[Clause]:
    """Returns the clauses of a text, at most `MOST_CLAUSES`; a text without an end of a clause is one clause."""
    pieces = [piece.strip() for piece in _ENDS.split(text)]
    kept = [piece for piece in pieces if len(piece.split()) >= _LEAST_WORDS] or [text.strip() or "-"]
    lengths = [len(piece.split()) for piece in kept]
    total, before = sum(lengths) or 1, 0
    clauses = []
    for piece, length in zip(kept, lengths, strict=True):
        clauses.append(Clause(piece, before / total))
        before += length
    return clauses[:MOST_CLAUSES]


def plain(text: str) -> str:
    """Returns a text or a name in lower case; the parts of `camelCase` and `snake_case` become words."""
    return " ".join(_WORD.findall(_CAMEL.sub(" ", text).lower()))


def texts_of(texts: Sequence[str]) -> list[str]:
    """Returns the distinct clauses of some texts, sorted: what has to be encoded."""
    return sorted({clause.text for text in texts for clause in clauses_of(text)})
