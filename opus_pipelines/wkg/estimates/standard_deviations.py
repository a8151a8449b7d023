"""How far single values lie from their mean: standard deviations from histograms that merge.

The variance of n values is that of their bins' means plus what lies inside the bins, where values are taken to lie
evenly between a bin's smallest and largest (`histograms`): a bin is 2.19 % wide, so the guess is of less than a
ten-thousandth of the squared mean.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.wkg.estimates.aggregate_columns import summed


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
