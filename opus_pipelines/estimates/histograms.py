"""Quantiles from histograms that merge: fixed logarithmic bins of integers, and the value that stands at a share of
their counts.

A measure is mined as integers (microseconds, millionths of a dollar); bin k holds the integers v with 2^(k/32) <= v <
2^((k+1)/32), so 32 bins an octave, each 2.19 % wide, and the bin below zero what is 0 or less. A bin keeps the smallest
and the largest value it saw: inside it values are taken to lie evenly between the two, so a quantile is off by less
than a bin's width.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import isqrt

import numpy as np
import pyarrow as pa

from opus_pipelines.estimates.aggregate_columns import summed
from opus_pipelines.evaluation.duration_quantiles import LEVELS, PER_LEVEL

PER_OCTAVE = 32
OCTAVES = 63  # of an int64
QUANTILES = {"p50": (1, 2), "p90": (9, 10)}


@dataclass(frozen=True)
class Figures:
    """What is known of one measure, in its integer unit: how many values, their exact sum, and quantiles (None: not
    binned).
    """

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
    """Quantiles at LEVELS, in the measure's integer unit, by what `keys` tell apart: rows of histograms of one
    measure, all with bins.
    """
    rows = summed(histograms.select([*keys, "bin", "count", "value_min", "value_max"]), (*keys, "bin"))
    sizes = summed(rows.drop_columns(["bin", "value_min", "value_max"]), keys)
    points = np.array(_quantiles(rows, sizes["count"].to_numpy(), [(level, PER_LEVEL) for level in LEVELS]))
    names = zip(*(sizes[key].to_pylist() for key in keys), strict=True)
    return {name: tuple(column.tolist()) for name, column in zip(names, np.maximum.accumulate(points).T, strict=True)}


def _quantiles(rows: pa.Table, sizes: np.ndarray, shares: Iterable[tuple[int, int]]) -> list[np.ndarray]:
    """Per group of rows (its counts add up to `sizes`, its bins ascend) the quantiles; NaN where the measure has no
    bins.

    The quantile at share s of n values lies at place (n - 1)·s, between the values at the places before and after it.
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
