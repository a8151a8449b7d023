"""Bins and the quantiles read from them, against the exact ones."""

from collections import defaultdict
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.estimates.aggregate_columns import HISTOGRAMS
from opus_pipelines.wkg.estimates.figures import BORDERS, figures
from tests.wkg.estimates.bins import bin_of

WIDTH = 2 ** (1 / 32) - 1


def histogram(
    values: list[tuple[int, int]], task: str = "t", measure: str = "duration", binned: bool = True
) -> pa.Table:
    """Values with their weights as rows of the aggregate."""
    bins: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for value, weight in values:
        bins[bin_of(value) if binned else None].append((value, weight))
    rows = [
        {
            "task_id": task,
            "measure": measure,
            "bin": b,
            "count": sum(w for _, w in of),
            "sum": Decimal(sum(v * w for v, w in of)),
            "value_min": min(v for v, _ in of),
            "value_max": max(v for v, _ in of),
        }
        for b, of in bins.items()
    ]
    return pa.Table.from_pylist(rows, schema=HISTOGRAMS)


def test_borders_are_the_first_integers_of_their_bins() -> None:
    assert BORDERS[:3] == [1, 2, 2]
    assert [BORDERS[32 * k] for k in (1, 2, 10, 62)] == [2, 4, 1024, 2**62]
    assert all((b - 1) ** 32 < 2**k <= b**32 for k, b in enumerate(BORDERS))
    assert [bin_of(v) for v in (-5, 0, 1, 2, 3, 4, 1023, 1024, 2**63 - 1)] == [-1, -1, 0, 32, 50, 64, 319, 320, 2015]


@settings(deadline=None)
@given(st.integers(1, 2**63 - 1))
def test_a_bin_holds_what_its_borders_say(value: int) -> None:
    k = bin_of(value)
    assert 2**k <= value**32
    assert value**32 < 2 ** (k + 1)


def test_figures_by_hand() -> None:
    found = figures(histogram([(0, 1), (1_000, 2), (3_000, 1)]), ("task_id",))["t",]["duration"]
    assert (found.n, found.total, found.p50, found.p90) == (4, Decimal(5_000), 1_000.0, pytest.approx(2_400.0))
    assert figures(histogram([(7, 3)], binned=False), ("task_id",))["t",]["duration"].p50 is None
    assert figures(HISTOGRAMS.empty_table(), ("task_id",)) == {}


values = st.lists(
    st.tuples(st.one_of(st.integers(0, 100), st.integers(1, 10**12)), st.integers(1, 5)), min_size=1, max_size=60
)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(values, values)
def test_quantiles_are_within_a_bins_width_of_the_exact_ones(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    table = pa.concat_tables([histogram(some), histogram(others, "u"), histogram(others, measure="cost")])
    found = figures(table, ("task_id",))
    for weighted, got in (
        (some, found["t",]["duration"]),
        (others, found["u",]["duration"]),
        (others, found["t",]["cost"]),
    ):
        exact = np.quantile(np.repeat(*np.array(weighted, np.int64).T), [0.5, 0.9])
        assert got.n == sum(w for _, w in weighted)
        assert [got.p50, got.p90] == pytest.approx(exact.tolist(), rel=WIDTH, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(values, values)
def test_adding_histograms_up_is_binning_all_at_once(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    parts = pa.concat_tables([histogram(others), histogram(some)])
    assert figures(parts, ("task_id",)) == figures(histogram(some + others), ("task_id",))
