"""Quantiles from mergeable histograms with fixed logarithmic bins of integers.

A measure is mined as integers (microseconds, millionths of a dollar). Bin k holds the integers v with 2^(k/32) <= v <
2^((k+1)/32): 32 bins per octave, each 2.19 % wide. The bin below zero holds 0 and negative values. A bin stores the
smallest and the largest of its values; the values inside are taken as evenly spaced between the two, so a quantile is
off by less than the width of a bin.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import isqrt

import numpy as np
import pyarrow as pa

from opus_pipelines.wkg.estimates.aggregate_columns import summed
from opus_pipelines.workflow.evaluation.lead_time import LEVELS, PER_LEVEL

PER_OCTAVE = 32
OCTAVES = 63  # of an int64
QUANTILES = {"p50": (1, 2), "p90": (9, 10)}


@dataclass(frozen=True)
class Figures:
    """The number of values of a measure, their exact sum in its integer unit, and quantiles (None: not binned)."""

    n: int
    total: Decimal
    p50: float | None = None
    p90: float | None = None


NOTHING = Figures(0, Decimal(0))


def _border(k: int) -> int:
    """The smallest integer that is at least 2^(k/32): five square roots, each rounded up, are exact."""
    value = 2**k
    for _ in range(5):
        value = isqrt(value - 1) + 1
    return value


BORDERS = [_border(k) for k in range(PER_OCTAVE * OCTAVES)]


def figures(histograms: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str | None, ...], dict[str, Figures]]:
    """Measures by what `keys` tell apart: rows of the `histograms` aggregate of any number of sources, added up."""
    drop = [
        name
        for name in histograms.schema.names
        if name not in (*keys, "measure", "bin", "count", "sum", "value_min", "value_max")
    ]
    rows = summed(histograms.drop_columns(drop), (*keys, "measure", "bin"))
    whole = summed(rows.drop_columns(["bin", "value_min", "value_max"]), (*keys, "measure"))
    found: dict[tuple[str | None, ...], dict[str, Figures]] = defaultdict(dict)
    quantiles = [column.tolist() for column in _quantiles(rows, whole["count"].to_numpy(), QUANTILES.values())]
    names = zip(*(whole[key].to_pylist() for key in keys), strict=True)
    columns = (whole[c].to_pylist() for c in ("measure", "count", "sum"))
    for name, measure, n, total, *at in zip(names, *columns, *quantiles, strict=True):
        found[name][measure] = Figures(n, total, *(None if np.isnan(value) else value for value in at))
    return found


def grids(histograms: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str | None, ...], tuple[float, ...]]:
    """Returns the quantiles at LEVELS, in the integer unit of the measure, for each value of `keys`.

    The rows are histograms of one measure, all with bins.
    """
    rows = summed(histograms.select([*keys, "bin", "count", "value_min", "value_max"]), (*keys, "bin"))
    sizes = summed(rows.drop_columns(["bin", "value_min", "value_max"]), keys)
    points = np.array(_quantiles(rows, sizes["count"].to_numpy(), [(level, PER_LEVEL) for level in LEVELS]))
    names = zip(*(sizes[key].to_pylist() for key in keys), strict=True)
    return {name: tuple(column.tolist()) for name, column in zip(names, np.maximum.accumulate(points).T, strict=True)}


def _quantiles(rows: pa.Table, sizes: np.ndarray, shares: Iterable[tuple[int, int]]) -> list[np.ndarray]:
    """Returns the quantiles of each group of rows; NaN when the measure has no bins.

    The counts of a group add up to `sizes`, its bins ascend. The quantile at share s of n values lies at position (n -
    1)·s, between the values at the positions before and after it.
    """
    ends = np.cumsum(rows["count"].to_numpy())
    first = np.cumsum(sizes) - sizes
    binned = (
        rows["bin"].is_valid().to_numpy()[np.searchsorted(ends, first, "right")] if len(sizes) else np.zeros(0, bool)
    )
    found = []
    for share, of in shares:
        place, rest = np.divmod((sizes - 1) * share, of)
        low = _value_at(rows, ends, first + place)
        high = _value_at(rows, ends, first + np.minimum(place + 1, sizes - 1))
        found.append(np.where(binned, low + (high - low) * (rest / of), np.nan))
    return found


def _value_at(rows: pa.Table, ends: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The values at these places in the order of all rows, counted from 0."""
    row = np.searchsorted(ends, places, "right")
    count = rows["count"].to_numpy()[row]
    low, high = (rows[c].to_numpy()[row].astype(np.float64) for c in ("value_min", "value_max"))
    inside = places - (ends[row] - count)
    return low + (high - low) * (inside / np.maximum(count - 1, 1))
