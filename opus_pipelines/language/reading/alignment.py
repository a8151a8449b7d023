"""How well sentences fit candidate tasks: one score for each sentence and task, beside "none of these".

The score of a text and a task is the best cosine of the text with the task's name, or its name and description, plus
the share of the name's words that the text has, by their rarity. For a language other than English the score is the
better one of the same by the characters of the words (n-grams) and by the English words of a glossary. "None" is the
best score of the text with names of activities of other trades, so that it follows the text and the catalogue, of 5
tools or of 400. A softmax of the scores and none is the probability that a text means a task. The rules and their
figures are this project's own (`benchmarks/results/reading-texts.md`).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.reading.languages import ENGLISH, content_stems, gloss, tables_of

Encode = Callable[[Sequence[str]], np.ndarray]
NAME_WEIGHT = 0.4  # of the share of a name's words that a text has, relative to the cosine
SOFTNESS = 0.1  # score that makes a task e times as likely
LEAST_NAME = 2  # words of a name that a text has, from which it names the task
LIKELY = 0.6  # probability from which a sentence means a task
NAMED = 0.9  # least probability of a task that a text names
_GRAMS = 3, 4, 5  # characters of the n-grams
_IDENTIFIER = re.compile(r"[_.]|[a-z][A-Z]")
_MARKED = re.compile(r"\[([^\]]+)\]|`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«\s*([^»]+?)\s*»|<([^>]+)>")
_WORD = re.compile(r"[^\W_\d]+")


@dataclass(frozen=True)
class Candidate:
    """A task that a text may ask for: its name, what it does, what it takes and gives."""

    name: str
    description: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @cached_property
    def plain(self) -> str:
        """The name in plain words."""
        return plain(self.name)

    @property
    def summary(self) -> str:
        """Name and description."""
        return f"{self.plain}. {self.description}" if self.description else self.plain

    @property
    def is_identifier(self) -> bool:
        """Whether the name is written as programs write names: `register_sample`, `registerSample`."""
        return bool(_IDENTIFIER.search(self.name.strip()))


class Alignment:
    """Candidates and the texts of one language, with their scores."""

    def __init__(self, candidates: Sequence[Candidate], code: str, encode: Encode) -> None:
        """`code` is the language of the texts; `encode` returns the unit vectors [n, d] of n texts."""
        self.candidates, self.code, self._encode = candidates, code, encode
        identifiers = sum(candidate.is_identifier for candidate in candidates)
        self.of_names = ENGLISH if 2 * identifiers > len(candidates) else code
        self._stems = [frozenset(content_stems(c.plain, self.of_names)) for c in candidates]
        own = frozenset[str]().union(*self._stems)
        self.unrelated = [
            name
            for name in tables_of(self.of_names).unrelated
            if not frozenset(content_stems(name, self.of_names)) <= own
        ]

    def scores(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scores [texts, candidates], and the score of none [texts]."""
        if not texts:
            return np.zeros((0, len(self.candidates))), np.zeros(0)
        if self.code == ENGLISH:
            return self._by_words(texts, self.code)
        ways = [self._by_characters(texts)]
        if self.of_names == ENGLISH:
            ways.append(self._by_words([gloss(text, self.code) or text for text in texts], ENGLISH))
        # ways differ in their level: each is held against its own none, and a task has its best margin
        margins = np.max([scores - none[:, None] for scores, none in ways], axis=0)
        none = ways[0][1]
        return margins + none[:, None], none

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the probabilities [texts, candidates] that each text means each task.

        The rest of 1 is none, but for a task that the text names with all words: two such tasks do not compete.
        """
        scores, none = self.scores(texts)
        odds = np.exp((scores - none[:, None]) / SOFTNESS)
        found = np.asarray(odds / (1 + odds.sum(1, keepdims=True)))
        for row, text in zip(found, texts, strict=True):
            present = frozenset(content_stems(text, self.of_names))
            named = [len(own) >= LEAST_NAME and own <= present for own in self._stems]
            row[named] = np.maximum(row[named], NAMED)
        return found

    def marked(self, texts: Sequence[str]) -> np.ndarray:
        """Returns [texts, candidates] whether a text marks the name: in brackets or quotes, or as an identifier."""
        found = np.zeros((len(texts), len(self.candidates)), bool)
        patterns = [
            re.compile(rf"(?<![\w.]){re.escape(c.name)}(?!\w)") if c.is_identifier else None for c in self.candidates
        ]
        for row, text in zip(found, texts, strict=True):
            names = {plain(name) for match in _MARKED.findall(text) for name in match if name}
            for n, candidate in enumerate(self.candidates):
                pattern = patterns[n]
                row[n] = candidate.plain in names or (pattern is not None and bool(pattern.search(text)))
        return found

    def marked_by_any(self, texts: Sequence[str]) -> list[bool]:
        """Returns whether any of the texts marks the name, for each candidate."""
        return [bool(column.any()) for column in self.marked(texts).T]

    def _by_words(self, texts: Sequence[str], code: str) -> tuple[np.ndarray, np.ndarray]:
        unrelated = [frozenset(content_stems(name, self.of_names)) for name in self.unrelated]
        rarity = _rarity([*self._stems, *unrelated])
        present = [frozenset(content_stems(text, code)) for text in texts]
        shared, of_none = _shares(present, self._stems, rarity), _shares(present, unrelated, rarity)
        vectors = self._encode(texts)
        scores = self._cosines(vectors) + NAME_WEIGHT * shared
        none = vectors @ self._encode(self.unrelated).T + NAME_WEIGHT * of_none
        return scores, none.max(1)

    def _by_characters(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        names = [_grams(" ".join(content_stems(c.plain, self.of_names))) for c in self.candidates]
        whole = [_grams(c.summary) for c in self.candidates]
        unrelated = [_grams(name) for name in self.unrelated]
        rarity = _rarity([*names, *unrelated])
        present = [_grams(text) for text in texts]
        shared = np.maximum(_shares(present, names, rarity), _shares(present, whole, rarity))
        stems = [frozenset(content_stems(text, self.code)) for text in texts]
        of_stems = [frozenset(content_stems(name, self.of_names)) for name in self.unrelated]
        stem_rarity = _rarity([*self._stems, *of_stems])
        vectors = self._encode(texts)
        scores = self._cosines(vectors) + shared + NAME_WEIGHT * _shares(stems, self._stems, stem_rarity)
        none = vectors @ self._encode(self.unrelated).T + _shares(present, unrelated, rarity)
        return scores, (none + NAME_WEIGHT * _shares(stems, of_stems, stem_rarity)).max(1)

    def _cosines(self, vectors: np.ndarray) -> np.ndarray:
        names = self._encode([c.plain for c in self.candidates])
        summaries = self._encode([c.summary for c in self.candidates])
        return np.maximum(vectors @ names.T, vectors @ summaries.T)


def texts_to_encode(texts: Sequence[str], candidates: Sequence[Candidate], code: str) -> set[str]:
    """Returns every text whose vector the alignment of these texts may ask for."""
    own = Alignment(candidates, code, lambda _: np.zeros((0, 0)))
    glosses = {gloss(text, code) for text in texts} if code != ENGLISH and own.of_names == ENGLISH else set()
    names = {c.plain for c in candidates} | {c.summary for c in candidates}
    return {*texts, *glosses, *names, *own.unrelated} - {""}


def _rarity(sets: Sequence[frozenset[str]]) -> dict[str, float]:
    counts = Counter(item for one in sets for item in one)
    return {item: math.log((len(sets) + 1) / (count + 0.5)) for item, count in counts.items()}


def _shares(
    present: Sequence[frozenset[str]], wanted: Sequence[frozenset[str]], rarity: Mapping[str, float]
) -> np.ndarray:
    """Returns [present, wanted] the share of each wanted set, by the rarity of its items, that a present set has."""
    place = {item: n for n, item in enumerate(sorted(frozenset[str]().union(*wanted)))}
    weights = np.zeros((len(wanted), len(place) or 1))
    for row, items in zip(weights, wanted, strict=True):
        for item in items:
            row[place[item]] = rarity.get(item, 0.0)
    has = np.zeros((len(present), len(place) or 1))
    for row, items in zip(has, present, strict=True):
        row[[place[item] for item in items if item in place]] = 1.0
    totals = weights.sum(1)
    return np.asarray(has @ weights.T / np.where(totals > 0, totals, 1.0))


def _grams(text: str) -> frozenset[str]:
    words = [f" {word} " for word in _WORD.findall(plain(text)) if len(word) >= _GRAMS[0]]
    return frozenset(word[n : n + size] for word in words for size in _GRAMS for n in range(len(word) - size + 1))
