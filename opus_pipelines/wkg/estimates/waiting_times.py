"""Waiting times of edges, execution modes, tasks and resources: the rows of wkg/waits."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.wkg.estimates.aggregate_columns import summed
from opus_pipelines.wkg.estimates.histograms import grids
from opus_pipelines.workflow.evaluation.lead_time import LEVELS

PER_MS = 1_000  # microseconds a millisecond
MODE_COLUMNS = ("actor_kind", "model", "actor_group")
# What each level tells apart. A plan asks from the first to the last: the most specific that history has.
LEVEL_KEYS = {
    "edge_way": ("src", "dst", *MODE_COLUMNS),
    "edge": ("src", "dst"),
    "way": ("dst", *MODE_COLUMNS),
    "task": ("dst",),
    "resource": MODE_COLUMNS,
}
_P50, _P90 = LEVELS.index(500), LEVELS.index(900)
Row = dict[str, Any]


@dataclass(frozen=True)
class WaitFigures:
    """One distribution of waiting time, in milliseconds; `quantiles` at LEVELS."""

    n: int
    with_work_n: int
    mean: float
    quantiles: tuple[float, ...]

    @property
    def columns(self) -> Row:
        """As wkg/waits and wkg/edges name them."""
        return {
            "wait_n": self.n,
            "wait_ms_mean": self.mean,
            "wait_ms_p50": self.quantiles[_P50],
            "wait_ms_p90": self.quantiles[_P90],
        }


def wait_figures(waits: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str | None, ...], WaitFigures]:
    """Returns the distribution of waiting times for each value of `keys`.

    `waits` are rows of the aggregate of any number of sources, not added up yet.
    """
    whole = summed(waits.select([*keys, "count", "sum"]), keys)
    with_work = waits.filter(pc.equal(waits["with_work"], True))
    work = summed(with_work.select([*keys, "count"]), keys)
    counted = dict(zip(_names(work, keys), work["count"].to_pylist(), strict=True))
    quantiles = grids(waits, keys)
    return {
        name: WaitFigures(
            n, counted.get(name, 0), float(Decimal(total) / (n * PER_MS)), tuple(q / PER_MS for q in quantiles[name])
        )
        for name, n, total in zip(
            _names(whole, keys), whole["count"].to_pylist(), whole["sum"].to_pylist(), strict=True
        )
    }


def wait_rows(waits: pa.Table) -> list[Row]:
    """Returns the rows of wkg/waits, sorted by key."""
    none = dict.fromkeys(("src", "dst", *MODE_COLUMNS))
    rows = [
        none
        | dict(zip(keys, name, strict=True))
        | of.columns
        | {"level": level, "with_work_n": of.with_work_n, "wait_ms_quantiles": list(of.quantiles)}
        for level, keys in sorted(LEVEL_KEYS.items())
        for name, of in wait_figures(waits, keys).items()
    ]
    return sorted(rows, key=lambda row: (row["level"], *((row[k] is not None, row[k] or "") for k in none)))


def edge_waits(waits: pa.Table) -> Mapping[tuple[str | None, ...], WaitFigures]:
    """Returns the distributions by (src, dst)."""
    return wait_figures(waits, LEVEL_KEYS["edge"])


def _names(table: pa.Table, keys: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    return list(zip(*(table[key].to_pylist() for key in keys), strict=True))
