"""Finds the runs that contracts need.

One run takes one contiguous range of partitions, in the order in which Dagster got to know them.
"""

import itertools
from collections.abc import Iterable, Iterator

START, END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def ranges(order: Iterable[str], wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the first and last key of each span of wanted keys that is contiguous in `order`."""
    asked = set(wanted)
    for hit, span in itertools.groupby(order, key=asked.__contains__):
        if hit:
            keys = list(span)
            yield keys[0], keys[-1]


def order_with(known: Iterable[str], wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the order after the wanted keys are added, and the new keys, sorted."""
    there = list(known)
    new = sorted(set(wanted) - set(there))
    return [*there, *new], new


def tags(first: str, last: str) -> dict[str, str]:
    """Returns the tags by which Dagster knows that a run covers these partitions."""
    return {START: first, END: last}
