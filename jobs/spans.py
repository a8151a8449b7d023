"""The runs that contracts need: Dagster makes one contiguous range of partitions a run, in the order in which it got
to know them.
"""

import itertools
from collections.abc import Iterable, Iterator

START, END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def ranges(order: Iterable[str], wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """First and last key of each span of wanted keys that is contiguous in `order`."""
    asked = set(wanted)
    for hit, span in itertools.groupby(order, key=asked.__contains__):
        if hit:
            keys = list(span)
            yield keys[0], keys[-1]


def order_with(known: Iterable[str], wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """The order once the wanted keys are known too, and those that are new, sorted."""
    there = list(known)
    new = sorted(set(wanted) - set(there))
    return [*there, *new], new


def tags(first: str, last: str) -> dict[str, str]:
    """What tells Dagster that a run covers these partitions."""
    return {START: first, END: last}
