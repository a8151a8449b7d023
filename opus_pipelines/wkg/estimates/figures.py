"""Figures from histograms that merge: quantiles, means and standard deviations; and what is published where one is
unknown.

Quantiles from mergeable histograms with fixed logarithmic bins of integers. A measure is mined as integers
(microseconds, millionths of a dollar). Bin k holds the integers v with 2^(k/32) <= v < 2^((k+1)/32): 32 bins per
octave, each 2.19 % wide. The bin below zero holds 0 and negative values. A bin stores the smallest and the largest of
its values; the values inside are taken as evenly spaced between the two, so a quantile is off by less than the width
of a bin.

How far single values lie from their mean: standard deviations from histograms that merge. The variance of n values is
that of their bins' means plus what lies inside the bins, where values are taken to lie evenly between a bin's smallest
and largest: a bin is 2.19 % wide, so the guess is of less than a ten-thousandth of the squared mean.

Unknown figures: they are published as NULL with a reason, so that one of them never stops a rebuild. The estimators
should give finite figures for every log. `probability`, `difference` and `interval` are the last step before a figure
is written: a value that is not a number, outside its range or outside its own interval becomes NULL, and the row has
the reason.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.statistics import Estimate
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


def standard_deviations(histograms: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str | None, ...], dict[str, float]]:
    """Sample standard deviations (n - 1) by what `keys` tell apart and measure, in the measure's integer unit.

    `histograms`: rows of the aggregate of any number of sources. A measure without bins, or with one value only, has
    none.
    """
    binned = histograms.filter(pc.is_valid(histograms["bin"]))
    drop = [
        name
        for name in binned.schema.names
        if name not in (*keys, "measure", "bin", "count", "sum", "value_min", "value_max")
    ]
    rows = summed(binned.drop_columns(drop), (*keys, "measure", "bin"))
    names = list(zip(*(rows[name].to_pylist() for name in (*keys, "measure")), strict=True))
    starts = [i for i, name in enumerate(names) if not i or name != names[i - 1]]
    group = np.repeat(np.arange(len(starts)), np.diff([*starts, len(names)])) if names else np.zeros(0, int)
    count = rows["count"].to_numpy().astype(np.float64)
    mean = np.array([float(total) for total in rows["sum"].to_pylist()]) / count
    n = np.bincount(group, count)
    whole = np.bincount(group, mean * count) / n
    width = (rows["value_max"].to_numpy() - rows["value_min"].to_numpy()).astype(np.float64)
    squares = np.bincount(group, count * ((mean - whole[group]) ** 2 + width**2 / 12))
    found: dict[tuple[str | None, ...], dict[str, float]] = {}
    for place, (start, size) in enumerate(zip(starts, n.tolist(), strict=True)):
        if size > 1:
            *key, measure = names[start]
            found.setdefault(tuple(key), {})[measure] = float(np.sqrt(squares[place] / (size - 1)))
    return found


ROUNDING = 1e-9  # a figure may lie this far outside its range or interval by rounding; it is then moved to the border
NO_TIMES = "no occurrence has a known duration"
NO_COSTS = "no occurrence has a known cost"
NO_WAITS = "no occurrence has a known waiting time"
ALWAYS_DONE = "every case has the task, so there is nothing to compare with"
ALWAYS_DONE_AMONG_THE_REST = "every case that has the critical tasks found before has this one too"
NOT_COMPUTED = "the estimator gave no number for these outcomes"
NO_INTERVAL = "the estimator gave no 95 % interval for these outcomes"


def probability(name: str, estimate: Estimate) -> dict[str, Any]:
    """The columns of one probability: value, interval, basis, count and reason.

    A value that cannot be told takes its interval and its basis with it; an interval that cannot be told leaves the
    value.
    """
    value = _inside(estimate.value, 0.0, 1.0)
    ends = interval(value, estimate.lower, estimate.upper, 0.0, 1.0) if value is not None else None
    lower, upper = ends or (None, None)
    reason = None if ends else NO_INTERVAL if value is not None else NOT_COMPUTED
    return {
        name: value,
        f"{name}_lower": lower,
        f"{name}_upper": upper,
        f"{name}_basis": estimate.basis if value is not None else None,
        f"{name}_n": estimate.n,
        f"{name}_reason": reason,
    }


def difference(
    names: tuple[str, str, str], figures: tuple[float, float, float] | None, why_none: str
) -> dict[str, Any]:
    """The columns `names` (value, lower, upper) of a difference of two rates, in [-1, 1], and `<first name>_reason`.

    `figures`: None where there is nothing to compare; `why_none` is then the reason.
    """
    value = None if figures is None else _inside(figures[0], -1.0, 1.0)
    ends = interval(value, figures[1], figures[2], -1.0, 1.0) if figures is not None and value is not None else None
    reason = why_none if figures is None else None if ends else NO_INTERVAL if value is not None else NOT_COMPUTED
    return {**dict(zip(names, (value, *(ends or (None, None))), strict=True)), f"{names[0]}_reason": reason}


def interval(value: float, lower: float, upper: float, least: float, most: float) -> tuple[float, float] | None:
    """The interval within [least, most] and round `value`; None where it is no interval, or lies beside the value."""
    ends = _inside(lower, least, most), _inside(upper, least, most)
    if ends[0] is None or ends[1] is None or ends[0] > value + ROUNDING or ends[1] < value - ROUNDING:
        return None
    return min(ends[0], value), max(ends[1], value)


def _inside(value: float, least: float, most: float) -> float | None:
    """The value, moved to a border that it passes by rounding; None where it is not a number or lies outside."""
    if not math.isfinite(value) or not least - ROUNDING <= value <= most + ROUNDING:
        return None
    return min(max(value, least), most)
