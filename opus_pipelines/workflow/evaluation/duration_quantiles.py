"""Represents distributions of waiting and working times as quantiles at fixed levels, and draws from them.

A snapshot keeps quantiles instead of a histogram, because the list is short, has no parameters to fit, and its inverse
is a linear interpolation. The levels are denser at both ends, because the 90th percentile of a sum depends on the tails
of its parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

PER_LEVEL = 1_000
LEVELS = (  # in thousandths
    0,
    5,
    10,
    20,
    50,
    100,
    150,
    200,
    250,
    300,
    350,
    400,
    450,
    500,
    550,
    600,
    650,
    700,
    750,
    800,
    850,
    900,
    950,
    980,
    990,
    995,
    1_000,
)
_SHARES = np.array(LEVELS) / PER_LEVEL

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DurationQuantiles:
    """One distribution of times in milliseconds: its quantiles at LEVELS and the number n of times.

    `with_work_n` counts the times that contain the work of the task that was waited for; it is 0 for working times.
    Raises ValueError for quantiles that are not one per level and ascending.
    """

    quantiles: tuple[float, ...]
    n: int
    with_work_n: int = 0

    def __post_init__(self) -> None:
        if len(self.quantiles) != len(LEVELS) or any(
            a > b for a, b in zip(self.quantiles, self.quantiles[1:], strict=False)
        ):
            raise ValueError(f"{len(self.quantiles)} quantiles; {len(LEVELS)} that never fall are needed")

    @classmethod
    def of(cls, values: Sequence[float] | Floats, with_work_n: int = 0) -> "DurationQuantiles":
        """Returns the distribution of these times, in milliseconds; raises ValueError where there are none."""
        if not len(values):
            raise ValueError("no times to make a distribution of")
        return cls(tuple(np.quantile(np.asarray(values, dtype=np.float64), _SHARES).tolist()), len(values), with_work_n)

    @classmethod
    def constant(cls, value: float) -> "DurationQuantiles":
        """Returns the distribution of one constant time."""
        return cls((value,) * len(LEVELS), 0)

    @cached_property
    def _points(self) -> Floats:
        return np.array(self.quantiles)

    def at(self, shares: Floats) -> Floats:
        """Returns the times at these shares (0 to 1) of the distribution, in the same shape."""
        return np.interp(shares, _SHARES, self._points)

    def draws(self, n: int) -> Floats:
        """Returns n times that represent the distribution: its quantiles at n even shares."""
        return self.at((np.arange(n) + 0.5) / n)

    @property
    def p50(self) -> float:
        """The median in ms."""
        return self.quantiles[LEVELS.index(500)]

    @property
    def p90(self) -> float:
        """The 90th percentile in ms."""
        return self.quantiles[LEVELS.index(900)]

    @property
    def with_work_share(self) -> float:
        """The share of the times that contain the work of the task that was waited for."""
        return self.with_work_n / self.n if self.n else 0.0
