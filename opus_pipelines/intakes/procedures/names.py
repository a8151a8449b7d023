"""The score of a task's name for a sentence: cosine of their vectors, and shared words weighted by their rarity."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opus_pipelines.language.embedding.texts import plain

WORDS_WEIGHT = 0.6  # weight of the shared words, relative to that of the cosine
FIT = 0.3  # score at which a name fits with probability 1/2 (tuned on folds that are not reported)
SOFTNESS = 0.06
_SHARES_KEPT = 1 << 14  # shares that are kept, by sentence and name
ABBREVIATION = 3, 4  # letters of a word that may be the beginning of another


class NameCoverage:
    """Scores names against sentences; word rarity and mean vector come from a whole body of procedures."""

    def __init__(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        self._documents = len(sentences)
        self._with = Counter(word for sentence in sentences for word in words(sentence))
        self._mean = vectors.mean(0) if len(vectors) else np.zeros(0)
        self._shared = lru_cache(_SHARES_KEPT)(self._share)

    def scores(
        self, sentences: Sequence[str], vectors: np.ndarray, names: Sequence[str], of_names: np.ndarray
    ) -> np.ndarray:
        """Return the scores [sentences, names].

        A score is the cosine less the mean cosine of the name with all sentences, plus `WORDS_WEIGHT` times the
        share of the name's words, by rarity, that the sentence has. `vectors` [sentences, d] and `of_names`
        [names, d] have unit length.
        """
        centred = vectors @ of_names.T - (of_names @ self._mean if len(self._mean) else 0.0)
        return np.asarray(centred + WORDS_WEIGHT * self.shares(sentences, names))

    def shares(self, sentences: Sequence[str], names: Sequence[str]) -> np.ndarray:
        """Return [sentences, names] the share of each name's words, by rarity, that the sentence has."""
        shares = [[self._shared(text_words(s), words(name)) for name in names] for s in sentences]
        return np.array(shares).reshape(len(sentences), len(names))

    def covered(self, sentences: Sequence[str], names: Sequence[str]) -> np.ndarray:
        """Return [sentences, names] the share of each sentence's words, by rarity, that the name has."""
        shares = [[self._shared(words(name), words(s)) for name in names] for s in sentences]
        return np.array(shares).reshape(len(sentences), len(names))

    def _share(self, sentence: frozenset[str], name: frozenset[str]) -> float:
        total = sum(self._rarity(word) for word in name)
        return sum(self._rarity(word) for word in name & sentence) / total if total else 0.0

    def _rarity(self, word: str) -> float:
        return math.log((self._documents + 1) / (self._with[word] + 0.5))


def fit_probability(scores: np.ndarray) -> np.ndarray:
    """Return scores as probabilities that the name is what the sentence asks for (a logistic function)."""
    return np.asarray(1 / (1 + np.exp(-(scores - FIT) / SOFTNESS)))


@lru_cache(1 << 14)
def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text, plurals as singulars, without words that have no meaning of their own."""
    return frozenset(_singular(w) for w in re.findall(r"\w+", plain(text))) - _STOP


def named_share(text: str, names: Sequence[str]) -> np.ndarray:
    """Return [names] the share of each name's words, by their rarity among the names, that the text has.

    A text has a word also where it is the beginning of one of its words ("reg" of "registration") or the initials of
    adjacent words ("dl" of "driver's license").
    """
    present, each = text_words(text) - _OF_ANY_REQUEST, [words(name) - _OF_ANY_REQUEST for name in names]
    rarity = rarity_among(each)
    return np.array(
        [
            sum(rarity[w] for w in of_name if _has(present, w)) / max(1e-9, sum(rarity[w] for w in of_name))
            for of_name in each
        ]
    )


def rarity_among(names: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return how rare each word is among names, which are sets of words."""
    count = Counter(word for name in names for word in name)
    return {word: math.log((len(names) + 1) / (n + 0.5)) for word, n in count.items()}


@lru_cache(1 << 12)
def text_words(text: str) -> frozenset[str]:
    """Return the words of a text, and the initials of two and three adjacent ones."""
    ordered = [w for w in plain(re.sub(r"['’]s\b", "", text)).split() if w not in _STOP]
    initials = {"".join(w[0] for w in ordered[n : n + size]) for size in (2, 3) for n in range(len(ordered) - size + 1)}
    return frozenset(map(_singular, ordered)) | initials


def _has(present: frozenset[str], word: str) -> bool:
    least, most = ABBREVIATION
    return word in present or (least <= len(word) <= most and any(w.startswith(word) for w in present))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


# words of a request that say nothing about what is asked for: "I'd like to get some help with"
_OF_ANY_REQUEST = frozenset({"get", "help", "like", "need", "please", "want", "would", "you"})

_STOP = frozenset(
    re.findall(
        r"\w+",
        """
    a all an and any as at be been by can do doe for from had has have if in is it its may must no not of on one or
    shall should than that the their them then this to was were when which will with
""",
    )
)
