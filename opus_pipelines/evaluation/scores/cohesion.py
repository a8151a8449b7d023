"""Cohesion Ch of EVAL A3, 0 best: how unlike the things are that one task is told to do.

The papers do not say how it is measured; this rule, `words`, is this project's own. A statement is the task's name, a sentence of its
description, of its objective or of its instructions (of the way in which it is done), or the names of its data. Two statements are alike
by the square root of the cosine of their sets of words, a word being the first five letters of one with four or more. The score is 1
less the mean over all pairs. On the sample it tells two tasks made into one from a task of its own at least as well as the sentence
encoder does (README), and needs no model: the same on every machine, to the last bit.
"""

import itertools
import math
import re
from collections.abc import Iterable
from functools import lru_cache

from opus_pipelines.evaluation.scores.facts import Facts, Surroundings

SHORTEST, STEM = 4, 5
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|[\r\n]+")
_WORD = re.compile(r"[^\W\d_]+")


def words(facts: Facts, _node: str, _around: Surroundings) -> float | None:
    """The rule; None where fewer than two statements have words."""
    return unlikeness(facts.statements)


def statements(names: Iterable[str], texts: Iterable[str | None]) -> tuple[str, ...]:
    """What is said of a task, each thing once: names as they stand, texts by sentence."""
    sentences = (part.strip() for text in texts if text for part in _SENTENCE.split(text))
    return tuple(dict.fromkeys(s for s in (*names, *sentences) if s))


@lru_cache(1 << 14)
def unlikeness(said: tuple[str, ...]) -> float | None:
    """1 - the mean likeness of all pairs, in [0, 1]; None where there is no pair. The order of the statements means nothing."""
    sets = [found for text in said if (found := _stems(text))]
    pairs = [likeness(a, b) for a, b in itertools.combinations(sets, 2)]
    return max(0.0, 1 - math.fsum(pairs) / len(pairs)) if pairs else None


def likeness(first: frozenset[str], second: frozenset[str]) -> float:
    """The square root of the cosine of two sets that are not empty: a shared word of many counts for more than its share."""
    return math.sqrt(len(first & second) / math.sqrt(len(first) * len(second)))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in _WORD.findall(text.casefold()) if len(word) >= SHORTEST)
