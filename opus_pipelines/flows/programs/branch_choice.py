"""Chooses the branch of a decision for an answer: the key itself first, then the most similar key, then the first."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import sqrt

from opus_pipelines.flows.programs.interpreter import Choice
from opus_pipelines.workflow.blocks.formats.core_flow import OTHER

Similarity = Callable[[str, str], float]
LEAST_SIMILAR = 0.3  # cosine below which a key is not meant
_WORD = re.compile(r"\w+")


def choose(answer: str, keys: Sequence[str], similarity: Similarity | None = None) -> Choice:
    """Returns the branch that an answer means.

    A key that is the whole answer, its first words or one of its words wins (Yes and No above all); then the key with
    the largest similarity; then the branch `other`; then the first, as the published interpreter does.
    """
    text = _words(answer)
    plain = [_words(key) for key in keys]
    for place, key in enumerate(plain):
        if key == text:
            return Choice(place, "key")
    begins = [place for place, key in enumerate(plain) if key and text[: len(key)] == key]
    if begins:
        return Choice(max(begins, key=lambda place: len(plain[place])), "key")
    inside = [place for place, key in enumerate(plain) if key and _contains(text, key)]
    if len(inside) == 1:
        return Choice(inside[0], "key")
    if similarity is not None and text:
        scores = [similarity(answer, key) for key in keys]
        best = max(range(len(keys)), key=lambda place: (scores[place], -place))
        if scores[best] >= LEAST_SIMILAR:
            return Choice(best, "similar")
    other = next((place for place, key in enumerate(keys) if key.lower() in OTHER), None)
    return Choice(0, "first") if other is None else Choice(other, "other")


def letter_cosine(one: str, two: str) -> float:
    """Returns the cosine of the counts of three letters in a row: a similarity that needs no model."""
    a, b = _threes(one), _threes(two)
    length = sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[key] for key, n in a.items()) / length if length else 0.0


def _threes(text: str) -> Counter[str]:
    padded = f"  {' '.join(_words(text))}  "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _contains(words: list[str], part: list[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))
