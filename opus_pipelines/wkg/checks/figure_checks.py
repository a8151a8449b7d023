"""Checks the figures of a snapshot.

A corrupt figure blocks; a figure that is unknown (NULL with its reason) only warns.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.check_results import CheckResult, result
from opus_pipelines.core.schemas import CASES, EDGES, NEEDS, TASK_IMPLEMENTATIONS, TASKS, WAITS, Dataset
from opus_pipelines.wkg.estimates.unknown_figures import NO_INTERVAL, NOT_COMPUTED, ROUNDING

FINITE, ORDERED, RISING, WHOLE, EXPLAINED, TOLD = (
    "figures are finite",
    "intervals hold their figures",
    "quantiles never fall",
    "no figure is missing",
    "missing figures have a reason",
    "every figure could be told",
)
_SHARES = ("p_lower", "p", "p_upper"), ("q_lower", "q", "q_upper")
_QUANTILES = ("duration_ms_p50", "duration_ms_p90"), ("cost_usd_p50", "cost_usd_p90")
ORDER: dict[Dataset, tuple[tuple[str, ...], ...]] = {  # columns whose values never fall from left to right
    TASKS: (*_SHARES, *_QUANTILES),
    TASK_IMPLEMENTATIONS: (*_SHARES, *_QUANTILES),
    EDGES: (
        ("wait_ms_p50", "wait_ms_p90"),
        ("wait_with_work_n", "wait_n"),
        ("dst_p_successes", "dst_p_n", "transitions"),
        ("dst_q_successes", "dst_q_n", "transitions"),
    ),
    WAITS: (("wait_ms_p50", "wait_ms_p90"), ("with_work_n", "wait_n")),
    NEEDS: (("lift_lower", "lift", "lift_upper"), ("adjusted_lower", "adjusted_lift", "adjusted_upper")),
}
QUANTILES: dict[Dataset, str] = {TASK_IMPLEMENTATIONS: "duration_ms_quantiles", WAITS: "wait_ms_quantiles"}
# A row of these exists because something was counted: none of its figures may be NULL.
COUNTED: dict[Dataset, tuple[str, ...]] = {
    WAITS: ("wait_n", "with_work_n", "wait_ms_mean", "wait_ms_p50", "wait_ms_p90", "wait_ms_quantiles"),
}
# By figure the columns of which none may be NULL without `<figure>_reason`.
REASONS: dict[Dataset, dict[str, tuple[str, ...]]] = {
    TASKS: {
        "p": ("p", "p_lower", "p_upper"),
        "q": ("q", "q_lower", "q_upper"),
        "duration": ("duration_ms_mean", "duration_ms_p50", "duration_ms_p90"),
        "wait": ("wait_ms_mean",),
        "cost": ("cost_usd_mean", "cost_usd_p50", "cost_usd_p90"),
    },
    TASK_IMPLEMENTATIONS: {
        "p": ("p", "p_lower", "p_upper"),
        "q": ("q", "q_lower", "q_upper"),
        "duration": ("duration_ms_mean", "duration_ms_p50", "duration_ms_p90"),
        "cost": ("cost_usd_mean", "cost_usd_p50", "cost_usd_p90"),
    },
    NEEDS: {
        "lift": ("lift", "lift_lower", "lift_upper"),
        "adjusted_lift": ("adjusted_lift", "adjusted_lower", "adjusted_upper"),
    },
}
FIGURE_CHECKS: dict[str, tuple[Dataset, ...]] = {
    FINITE: (TASKS, TASK_IMPLEMENTATIONS, EDGES, WAITS, NEEDS, CASES),
    ORDERED: tuple(ORDER),
    RISING: tuple(QUANTILES),
    WHOLE: tuple(COUNTED),
    EXPLAINED: tuple(REASONS),
    TOLD: tuple(REASONS),
}
FIGURE_MEANINGS = {  # what must hold, by check
    FINITE: "No figure is infinite or not a number.",
    ORDERED: "A lower bound is at most its estimate, an estimate at most its upper bound, and a median "
    "at most its 90th percentile.",
    RISING: "The quantiles of a distribution never decrease.",
    WHOLE: "A row that was counted has all its figures.",
    EXPLAINED: "A figure that is NULL has its reason in the column beside it.",
    TOLD: "No estimator failed. This check warns and does not block.",
}


def check_figures(tables: Mapping[Dataset, pa.Table]) -> Iterator[CheckResult]:
    """One result for each of FIGURE_CHECKS and dataset among `tables`."""
    for dataset in (d for d in FIGURE_CHECKS[FINITE] if d in tables):
        columns = [c.name for c in dataset.columns if c.type in (pa.float64(), pa.list_(pa.float64()))]
        off = [name for name in columns if not _is_finite(tables[dataset][name])]
        yield result(FINITE, dataset, off, f"{len(columns)} columns")
    for dataset, rows in ((d, r) for d, r in ORDER.items() if d in tables):
        pairs = [pair for columns in rows for pair in pairwise(columns)]
        off = [
            f"{left} > {right}"
            for left, right in pairs
            if not _never_above(tables[dataset][left], tables[dataset][right])
        ]
        yield result(ORDERED, dataset, off, f"{len(rows)} figures")
    for dataset, name in ((d, n) for d, n in QUANTILES.items() if d in tables):
        falling = _falling(tables[dataset][name])
        yield result(
            RISING, dataset, [f"{name} in {falling} rows"] if falling else [], f"{tables[dataset].num_rows} rows"
        )
    for dataset, names in ((d, n) for d, n in COUNTED.items() if d in tables):
        lacking = [f"{name} in {n} rows" for name in names if (n := tables[dataset][name].null_count)]
        yield result(WHOLE, dataset, lacking, f"{len(names)} columns")
    for dataset, of in ((d, r) for d, r in REASONS.items() if d in tables):
        table = tables[dataset]
        missing = {
            figure: sum(_unexplained(table, name, f"{figure}_reason") for name in columns)
            for figure, columns in of.items()
        }
        yield result(
            EXPLAINED, dataset, [f"{figure} in {n} rows" for figure, n in missing.items() if n], f"{len(of)} figures"
        )
        untold = [f"{figure} in {n} rows" for figure in of if (n := _failed(table[f"{figure}_reason"]))]
        yield result(TOLD, dataset, untold, f"{table.num_rows} rows", blocking=False)


def _is_finite(column: pa.ChunkedArray) -> bool:
    values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    return pc.all(pc.is_finite(values)).as_py() is not False


def _never_above(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    most = pc.add(pc.abs(right), 1.0)
    return pc.all(pc.less_equal(left, pc.add(right, pc.multiply(most, ROUNDING)))).as_py() is not False


def _falling(lists: pa.ChunkedArray) -> int:
    """Rows whose list of quantiles falls anywhere."""
    whole = lists.combine_chunks()
    row, values = pc.list_parent_indices(whole), pc.list_flatten(whole)
    if len(values) < 2:
        return 0
    falls = pc.and_(pc.equal(row[1:], row[:-1]), pc.less(values[1:], values[:-1]))
    return len(pc.unique(row[1:].filter(falls)))


def _unexplained(table: pa.Table, column: str, reason: str) -> int:
    return int(pc.sum(pc.and_(pc.is_null(table[column]), pc.is_null(table[reason]))).as_py() or 0)


def _failed(reasons: pa.ChunkedArray) -> int:
    """Figures for which an estimator failed; a history that simply lacks times or costs is not among them."""
    return int(pc.sum(pc.is_in(reasons, pa.array([NOT_COMPUTED, NO_INTERVAL]))).as_py() or 0)
