"""Counts as probabilities with intervals: Beta-smoothed rates, Wilson's interval of a rate, Newcombe's of a difference."""

import math
from dataclasses import dataclass

CONFIDENCE = 0.95
Z = 1.959963984540054  # normal quantile at 97.5 %


@dataclass(frozen=True)
class Estimate:
    """A probability with its 95 % interval, the basis of datasets.md, and the count behind it."""

    value: float
    lower: float
    upper: float
    basis: str
    n: int

    def power(self, exponent: float) -> "Estimate":
        """The estimate of value ** exponent, a monotone change of scale."""
        return Estimate(self.value**exponent, self.lower**exponent, self.upper**exponent, self.basis, self.n)


def smoothed(successes: int, n: int, prior: float, strength: float, basis: str = "observed") -> Estimate:
    """Mean and 95 % interval of Beta(strength·prior + successes, strength·(1 − prior) + failures); basis `prior` where n = 0."""
    a, b = strength * prior + successes, strength * (1 - prior) + n - successes
    lower, upper = beta_interval(a, b)
    return Estimate(a / (a + b), lower, upper, basis if n else "prior", n)


def beta_interval(a: float, b: float) -> tuple[float, float]:
    """The central 95 % of Beta(a, b); a point where a or b is 0."""
    if a <= 0 or b <= 0:
        return (0.0, 0.0) if a <= 0 else (1.0, 1.0)
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    return float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail))


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate, n > 0."""
    rate, z2 = successes / n, Z * Z
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def newcombe(successes_1: int, n_1: int, successes_2: int, n_2: int) -> tuple[float, float, float]:
    """rate 1 − rate 2 with its 95 % interval (Newcombe 1998, method 10: from the two Wilson intervals)."""
    rate_1, rate_2 = successes_1 / n_1, successes_2 / n_2
    low_1, high_1 = wilson(successes_1, n_1)
    low_2, high_2 = wilson(successes_2, n_2)
    lift = rate_1 - rate_2
    return lift, lift - math.hypot(rate_1 - low_1, high_2 - rate_2), lift + math.hypot(high_1 - rate_1, rate_2 - low_2)
