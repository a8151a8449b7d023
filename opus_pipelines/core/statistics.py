"""Turns counts into probabilities with intervals: Beta-smoothed rates, Wilson intervals, Newcombe's for differences.

Groups cases by their attributes, so that rates are compared among like ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95
Z = 1.959963984540054  # normal quantile at 97.5 %


@dataclass(frozen=True)
class Estimate:
    """A probability with its 95 % interval, its basis (observed, estimated or prior), and the count behind it."""

    value: float
    lower: float
    upper: float
    basis: str
    n: int


def smoothed(successes: int, n: int, prior: float, strength: float, basis: str = "observed") -> Estimate:
    """Estimates a success rate as the mean of Beta(strength·prior + successes, strength·(1 − prior) + failures).

    The interval is the central 95 % of that distribution, whose prior is never less than half a success and half a
    failure (Jeffreys), so that a count of 0 never looks certain. The basis is `prior` where n = 0.
    """
    yes, no = strength * prior, strength * (1 - prior)
    value = (yes + successes) / (strength + n)
    lower, upper = beta_interval(max(yes, 0.5) + successes, max(no, 0.5) + n - successes)
    return Estimate(value, min(lower, value), max(upper, value), basis if n else "prior", n)


def beta_interval(a: float, b: float) -> tuple[float, float]:
    """Returns the central 95 % of Beta(a, b), or a single point where a or b is 0."""
    if a <= 0 or b <= 0:
        return (0.0, 0.0) if a <= 0 else (1.0, 1.0)
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    return float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail))


def wilson(successes: Any, n: Any, z: Any = Z) -> tuple[Any, Any]:
    """Returns the Wilson interval of a rate, [0, 1] where n = 0.

    Takes numbers, whole or not, or arrays of one shape; `z` is the normal quantile, by default that of 95 %.
    """
    rate, z2 = rate_of(successes, n), z * z
    middle = (rate * n + z2 / 2) / (n + z2)
    half = z * np.sqrt(np.maximum(rate * (1 - rate), 0.0) * n + z2 / 4) / (n + z2)
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


def lift(successes_1: Any, n_1: Any, successes_2: Any, n_2: Any, z: Any = Z) -> tuple[Any, Any, Any]:
    """Returns rate 1 − rate 2 with its 95 % interval (Newcombe 1998, method 10, from the two Wilson intervals).

    Takes numbers, or arrays of one shape.
    """
    rate_1, rate_2 = rate_of(successes_1, n_1), rate_of(successes_2, n_2)
    low_1, high_1 = wilson(successes_1, n_1, z)
    low_2, high_2 = wilson(successes_2, n_2, z)
    difference = rate_1 - rate_2
    return (
        difference,
        difference - np.hypot(rate_1 - low_1, high_2 - rate_2),
        difference + np.hypot(high_1 - rate_1, rate_2 - low_2),
    )


def rate_of(successes: Any, n: Any) -> Any:
    """Returns successes / n, or 0.5 where n = 0."""
    return np.where(np.asarray(n) > 0, successes / np.where(np.asarray(n) > 0, n, 1), 0.5)[()]


LEAST_GROUP = 20  # cases with the same value of an attribute, from which they are a group
MOST_GROUPS = 40  # of an attribute, the most frequent values
BINS = 8  # of a number


def groups_of(cases: Sequence[dict[str, str]], least: int = LEAST_GROUP) -> np.ndarray:
    """[cases, attributes] the group of each case for each attribute: its value where that is frequent, the eighth that
    a number is in.

    An attribute that is the same for all cases, or different for each, has no column. `least` cases make a group.
    """
    names = sorted({key for one in cases for key in one})
    columns = [_groups([one.get(key) or "" for one in cases], least) for key in names]
    informative = [column for column in columns if (np.bincount(column)[1:] >= least).sum() > 1]
    return np.stack(informative, axis=1) if informative else np.zeros((len(cases), 0), np.int64)


def _groups(values: Sequence[str], least: int) -> np.ndarray:
    numbers = np.array([_number(v) for v in values])
    known = np.isfinite(numbers)
    if known.sum() >= 0.95 * sum(v != "" for v in values) and len(np.unique(numbers[known])) > BINS:
        edges = np.unique(np.quantile(numbers[known], np.linspace(0, 1, BINS + 1)[1:-1]))
        return np.where(known, np.searchsorted(edges, np.where(known, numbers, 0.0), side="right") + 1, 0)
    names, which, counts = np.unique(np.array(values, dtype=object), return_inverse=True, return_counts=True)
    frequent = sorted(np.flatnonzero(counts >= least).tolist(), key=lambda n: (-counts[n], names[n]))[:MOST_GROUPS]
    place = np.zeros(len(names), np.int64)
    place[frequent] = np.arange(1, len(frequent) + 1)
    return place[which]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
