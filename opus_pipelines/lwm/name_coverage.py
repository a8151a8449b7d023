"""The score of a task's name for a sentence: cosine of their vectors, and shared words weighted by their rarity.

By names and vectors a request also finds its part of a procedure, and one branch of each group of alternatives.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opus_pipelines.embedding.text_parts import Part, Sentence, part_similarity, plain

WORDS_WEIGHT = 0.6  # weight of the shared words, relative to that of the cosine
FIT = 0.3  # score at which a name fits with probability 1/2 (tuned on folds that are not reported)
SOFTNESS = 0.06
ABBREVIATION = 3, 4  # letters of a word that may be the beginning of another
SAME_REQUEST = 0.85  # cosine from which an old request shows which part a new one asks for
NAMED_WEIGHT = 0.05  # weight of the words that heading and request share: it decides between headings that are alike
SAME_WEIGHT = 4.0  # weight of such a request in the score of a part
BRANCH_STEP = 0.2  # of the cosines of two branches with the request, from which it decides between them
_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")  # a value; "double quotes" hold names of parameters
_NEGATIVE = re.compile(r"\b(not|never|different|other than|except|neither|nor)\b", re.IGNORECASE)
Encode = Callable[[Sequence[str]], np.ndarray]


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
        return np.asarray(centred + WORDS_WEIGHT * self.shares(sentences, names))

    def shares(self, sentences: Sequence[str], names: Sequence[str]) -> np.ndarray:
        """Return [sentences, names] the share of each name's words, by rarity, that the sentence has."""
        shares = [[self._shared(text_words(s), words(name)) for name in names] for s in sentences]
        return np.array(shares).reshape(len(sentences), len(names))

    def covered(self, sentences: Sequence[str], names: Sequence[str]) -> np.ndarray:
        """Return [sentences, names] the share of each sentence's words, by rarity, that the name has."""
        shares = [[self._shared(words(name), words(s)) for name in names] for s in sentences]
        return np.array(shares).reshape(len(sentences), len(names))

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


@dataclass(frozen=True)
class RequestText:
    """What is asked for: its words, and its vector [d] of unit length."""

    text: str
    vector: np.ndarray


def relevant_part(
    request: RequestText, parts: Sequence[Part], earlier_requests: Mapping[str, np.ndarray], encode: Encode
) -> Part:
    """Return the part that is most similar to the request, the first among equals.

    `earlier_requests` has the vectors [n, d] of requests of history by heading, in plain words. A text without
    headings is one part.
    """
    of_name: dict[str, Part] = {}
    for part in parts:
        if part.name and (part.sentences or not part.is_title):
            of_name.setdefault(part.name, part)
    headed = list(of_name.values())
    if not headed:
        return Part(None, tuple(s for part in parts for s in part.sentences))
    names = [part.name for part in headed]
    score = part_similarity(request.vector, encode(names), encode([part.text for part in headed]))
    score = score + NAMED_WEIGHT * named_share(request.text, names)
    for n, name in enumerate(names):
        if name in earlier_requests:
            score[n] += SAME_WEIGHT * max(0.0, float((earlier_requests[name] @ request.vector).max()) - SAME_REQUEST)
    return headed[int(score.round(6).argmax())]


def branch_relevance(request: RequestText, branch: Sequence[str], encode: Encode) -> float:
    """Return how relevant the sentences of a branch are to the request, in steps that leave small differences out.

    Each quoted value that the request has counts 1, and -1 where its sentence is negative; the cosine of the text
    with the request decides between branches alike in this where it differs by more than `BRANCH_STEP`.
    """
    quoted = 0
    for sentence in branch:
        stated = {word for value in _QUOTED.findall(sentence) for word in words(value)}
        if stated and stated <= text_words(request.text):
            quoted += -1 if _NEGATIVE.search(sentence) else 1
    return quoted + round(float((encode(branch) @ request.vector).mean()) / BRANCH_STEP) * BRANCH_STEP


def counting_sentences(
    causes: Sequence[Sentence], likely: Sequence[Sequence[str]], relevance: Callable[[Sequence[int]], float]
) -> list[int]:
    """Return the indices of the sentences that count.

    These are all sentences without an alternative, and of each group of alternatives the branch that asks for steps,
    is most relevant to the request, and has the fewest further steps, in this order. `relevance` returns how relevant
    the sentences of a branch are.
    """
    alone = {task for cause, tasks in zip(causes, likely, strict=True) if cause.either is None for task in tasks}
    branches: dict[int, dict[int, list[int]]] = {}
    for n, cause in enumerate(causes):
        if cause.either is not None:
            branches.setdefault(cause.either, {}).setdefault(cause.branch, []).append(n)
    counting = [n for n, cause in enumerate(causes) if cause.either is None]
    for group in branches.values():
        steps = [{task for n in branch for task in likely[n]} for branch in group.values()]
        ranks = [
            (not asked, -relevance(branch), len(asked - alone), branch[0])
            for branch, asked in zip(group.values(), steps, strict=True)
        ]
        counting += list(group.values())[ranks.index(min(ranks))]
    return sorted(counting)
