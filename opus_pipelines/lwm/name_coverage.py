"""The score of a task's name for a sentence: cosine of their vectors, and shared words weighted by their rarity."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opus_pipelines.embedding.text_parts import plain

WORDS_WEIGHT = 0.6  # weight of the shared words, relative to that of the cosine
FIT = 0.3  # score at which a name fits with probability 1/2 (tuned on folds that are not reported)
SOFTNESS = 0.06


class NameCoverage:
    """Scores names against sentences; word rarity and mean vector come from a whole body of procedures."""

    def __init__(self, sentences: Sequence[str], vectors: np.ndarray) -> None:
        self._documents = len(sentences)
        self._with = Counter(word for sentence in sentences for word in words(sentence))
        self._mean = vectors.mean(0) if len(vectors) else np.zeros(0)

    def scores(
        self, sentences: Sequence[str], vectors: np.ndarray, names: Sequence[str], of_names: np.ndarray
    ) -> np.ndarray:
        """Return the scores [sentences, names].

        A score is the cosine less the mean cosine of the name with all sentences, plus `WORDS_WEIGHT` times the
        share of the name's words, by rarity, that the sentence has. `vectors` [sentences, d] and `of_names`
        [names, d] have unit length.
        """
        centred = vectors @ of_names.T - (of_names @ self._mean if len(self._mean) else 0.0)
        shared = np.array([[self._shared(words(s), words(name)) for name in names] for s in sentences]).reshape(
            len(sentences), len(names)
        )
        return np.asarray(centred + WORDS_WEIGHT * shared)

    def _shared(self, sentence: frozenset[str], name: frozenset[str]) -> float:
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


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


_STOP = frozenset(
    re.findall(
        r"\w+",
        """
    a all an and any as at be been by can do doe for from had has have if in is it its may must no not of on one or
    shall should than that the their them then this to was were when which will with
""",
    )
)
