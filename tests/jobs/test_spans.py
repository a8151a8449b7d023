"""Which runs cover which contracts: one contiguous range of Dagster's order each."""

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from jobs.generate import requests
from jobs.spans import order_with, ranges, tags

KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(KEYS, st.sets(st.sampled_from("abcdefgh")))
def test_the_spans_hold_each_wanted_key_once_and_no_other(known: list[str], wanted: set[str]) -> None:
    order, new = order_with(known, wanted)
    covered = [
        key for first, last in ranges(order, wanted) for key in order[order.index(first) : order.index(last) + 1]
    ]
    assert sorted(covered) == sorted(wanted)
    assert order[: len(known)] == known
    assert new == sorted(wanted - set(known))


def test_known_keys_keep_their_order_and_new_ones_follow_sorted() -> None:
    assert order_with(["z", "a"], {"c", "b", "a"}) == (["z", "a", "b", "c"], ["b", "c"])


def test_a_run_is_told_its_range_by_dagsters_own_tags() -> None:
    covered: list[str] = []

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(list("abcd")))
    def letters(context: dg.AssetExecutionContext) -> None:
        covered.extend(context.partition_keys)

    assert tags("b", "c") == {"dagster/asset_partition_range_start": "b", "dagster/asset_partition_range_end": "c"}
    assert dg.materialize([letters], tags=tags("b", "c")).success
    assert covered == ["b", "c"]


def test_what_is_requested_is_a_run_each_span_and_the_new_keys() -> None:
    runs, new = requests(["a", "b", "c"], {"a", "c", "d"})
    assert [run.tags for run in runs] == [tags("a", "a"), tags("c", "d")]
    assert [(request.partitions_def_name, list(request.partition_keys)) for request in new] == [("contract", ["d"])]
    assert requests(["a"], {"a"})[1] == []
