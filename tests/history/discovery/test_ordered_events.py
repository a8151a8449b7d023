"""Tests of the order of events: by one number for each event where that is possible, and otherwise the same order."""

from typing import Any

import numpy as np
import pytest

from opus_pipelines.history.discovery.edge_log import in_order

TOP = 1 << 63


def _events(case: list[int], time: list[int], activity: list[int]) -> dict[str, np.ndarray[Any, Any]]:
    return {
        "case": np.array(case, np.uint64),
        "time": np.array(time, np.int64),
        "activity": np.array(activity, np.int32),
    }


def _steps(events: dict[str, np.ndarray[Any, Any]], has_ties: bool = False) -> list[tuple[list[int], list[int]]]:
    found = in_order(events, interval=False, has_work=False, has_ties=has_ties)
    bounds = np.cumsum(found.lengths)[:-1]
    of_cases = zip(np.split(found.activity, bounds), np.split(found.seen, bounds), strict=True)
    return [(activity.tolist(), seen.tolist()) for activity, seen in of_cases]


@pytest.mark.parametrize(
    ("case", "time"),
    [
        ([7, 3, 7, 3], [120_000_000, 0, 60_000_000, 60_000_000]),
        ([TOP + 7, TOP + 3, TOP + 7, TOP + 3], [5, 1, 2, 9]),
        ([TOP + 1, 1, TOP + 1, 1], [-(10**16), 10**16, -(10**17), 10**17 + 1]),  # no room for 64 bits of a case
        ([6, 2, 6, 2], [-(4 * 10**18), 0, -(4 * 10**18) - 1, 4 * 10**18]),  # nor for the times
    ],
    ids=["whole minutes", "high numbers", "wide numbers", "wide times"],
)
def test_events_are_ordered_by_case_and_time(case: list[int], time: list[int]) -> None:
    events = _events(case, time, [0, 1, 2, 3])
    expected = [([1, 3], [time[1], time[3]]), ([2, 0], [time[2], time[0]])]
    assert _steps(events) == expected
    assert _steps(events, has_ties=True) == expected


def test_events_of_one_time_keep_their_places_in_the_file() -> None:
    events = _events([5, 5, 5, 4], [60_000_000, 60_000_000, 0, 0], [2, 1, 0, 1])
    assert _steps(events) == [([1], [0]), ([0, 2, 1], [0, 60_000_000, 60_000_000])]
    assert in_order(events, interval=False, has_work=False).has_ties
    assert not in_order(_events([5, 5], [0, 1], [0, 0]), interval=False, has_work=False).has_ties


def test_a_case_whose_event_may_occur_twice_is_left_out() -> None:
    events = _events([5, 5, 4], [0, 0, 0], [1, 1, 1])
    found = in_order(events, interval=False, has_work=False)
    assert (found.lengths.tolist(), found.unusual.tolist(), found.has_ties) == ([1], [5], True)


def test_no_events_have_no_steps() -> None:
    found = in_order(_events([], [], []), interval=False, has_work=False)
    assert (found.lengths.tolist(), found.activity.tolist()) == ([], [])
