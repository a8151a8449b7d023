"""Standard deviations from bins, against the exact ones."""

import statistics
from collections import defaultdict
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.estimates.aggregate_columns import HISTOGRAMS
from opus_pipelines.wkg.estimates.figures import standard_deviations
from tests.wkg.estimates.bins import bin_of


def histogram(values: list[int], task: str = "t", measure: str = "cost", binned: bool = True) -> pa.Table:
    """Values as rows of the aggregate."""
    bins: dict[int | None, list[int]] = defaultdict(list)
    for value in values:
        bins[bin_of(value) if binned else None].append(value)
    rows = [
        {
            "task_id": task,
            "measure": measure,
            "bin": b,
            "count": len(of),
            "sum": Decimal(sum(of)),
            "value_min": min(of),
            "value_max": max(of),
        }
        for b, of in bins.items()
    ]
    return pa.Table.from_pylist(rows, schema=HISTOGRAMS)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=60))
def test_it_is_the_deviation_of_the_values_but_for_what_a_bin_hides(values: list[int]) -> None:
    found = standard_deviations(histogram(values), ("task_id",))["t",]["cost"]
    assert found == pytest.approx(statistics.stdev(values), abs=0.012 * max(values))


def test_values_in_bins_of_their_own_are_exact() -> None:
    assert standard_deviations(histogram([100, 200, 300, 400]), ("task_id",)) == {
        ("t",): {"cost": pytest.approx(129.0994449)}
    }


def test_one_value_and_a_measure_without_bins_have_none() -> None:
    rows = pa.concat_tables(
        [histogram([5]), histogram([5, 9], measure="wait", binned=False), histogram([7, 7], measure="duration")]
    )
    assert standard_deviations(rows, ("task_id",)) == {("t",): {"duration": 0.0}}
    assert standard_deviations(HISTOGRAMS.empty_table(), ("task_id",)) == {}


def test_ways_stand_apart_and_sources_add_up_to_the_last_bit() -> None:
    one, two = histogram([100, 450, 7000]), histogram([120, 466, 90_001])
    whole = standard_deviations(histogram([100, 450, 7000, 120, 466, 90_001]), ("task_id", "model"))
    assert standard_deviations(pa.concat_tables([two, one]), ("task_id", "model")) == whole
    assert set(standard_deviations(pa.concat_tables([one, histogram([1, 2], task="u")]), ("task_id", "model"))) == {
        ("t", None),
        ("u", None),
    }
