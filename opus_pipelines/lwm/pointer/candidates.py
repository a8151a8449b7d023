"""What a request may be given: its clauses, the candidates for its tasks with their features, and the match of titles.

A clause may ask for one step. How much of a task's title stands in a request is told by its words, their beginnings and
their letters. A piece of a title counts the more, the fewer other titles have it: of *clock alarm cancel* and *clock
alarm change* it is the last word that tells them apart. Nothing of history is needed, so that a task that no case did
has these figures, too. Vectors of sentences hold the same words, but two titles that share most of them are near there.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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


SHARPNESS = (0.02, 0.05, 0.1)  # a case that is so much less similar than the most similar one has 1/e of its weight
FEW = (5, 15)  # nearest cases that vote for a task by their cosines
PRIOR = 0.001  # share of the cases that a task without any is taken to have

FEATURES = (
    *(f"support {sharpness}" for sharpness in SHARPNESS),
    "nearest case with the task",
    "kernel regression",
    "cosine",
    "cosine of the best clause",
    "common words",
    "log frequency",
    "gamma to",
    "gamma from",
    "together",
    "nearest case",
    "rank",
    "expected steps",
    "kernel regression of words",
    "kernel regression of vectors",
    *(f"vote of {few}" for few in FEW),
    "words of the title",
    "beginnings of the title",
    "letters of the title",
    "rarest word of the title",
)
WITHOUT_HISTORY: Mapping[str, float] = {  # the features of a task that no case did; the others are of texts
    **{f"support {sharpness}": 0.0 for sharpness in SHARPNESS},
    "nearest case with the task": -1.0,
    "kernel regression": 0.0,
    "log frequency": float(np.log(PRIOR)),
    "gamma to": 0.0,
    "gamma from": 0.0,
    "together": 0.0,
    "kernel regression of words": 0.0,
    "kernel regression of vectors": 0.0,
    **{f"vote of {few}": 0.0 for few in FEW},
}


@dataclass(frozen=True)
class Candidates:
    """The likeliest tasks of one request, with the features that do not depend on the steps so far.

    Attributes:
        tasks: places of the tasks in `IndustryGraph.tasks` [k].
        features: [k, f], one column for each of `FEATURES`.
        likelihood: estimated probability that the work has the task [k].
        place: where the request speaks of the task, as a share of its words [k].
        similarity: cosine of each clause and each task [c, k].
        before: number of cases that did a task at any time before another [k, k].
        direct: number of transitions of the WKG's edges [k, k].
        begins, ends: number of cases that began, or ended, with the task [k].
        counts: number of cases with the task [k].
        mean_place: mean place of the task in its cases, 0 for the first and 1 for the last step [k].
    """

    tasks: np.ndarray
    features: np.ndarray
    likelihood: np.ndarray
    place: np.ndarray
    similarity: np.ndarray
    before: np.ndarray
    direct: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    mean_place: np.ndarray

    @cached_property
    def precedes(self) -> np.ndarray:
        """How much more often a task came before another than after it, as the log of the ratio [k, k]."""
        return np.asarray(np.log((self.before + 0.5) / (self.before.T + 0.5)))

    def without_history_of(self, tasks: np.ndarray) -> "Candidates":
        """Return the candidates as if no case had done some of them; `tasks` [k] says which.

        Features that are of the whole request stay as they are: rank, expected steps and the nearest case.
        """
        features, known = self.features.copy(), ~tasks
        for name, value in WITHOUT_HISTORY.items():
            column = FEATURES.index(name)
            features[tasks, column] = value
        both = known[:, None] & known
        return replace(
            self,
            features=features,
            likelihood=np.where(known, self.likelihood, PRIOR),
            before=self.before * both,
            direct=self.direct * both,
            begins=self.begins * known,
            ends=self.ends * known,
            counts=self.counts * known,
            mean_place=np.where(known, self.mean_place, 0.5),
        )


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
