"""Pairs of consecutive steps of flat cases, and distinct whole numbers."""

import numpy as np
import pyarrow as pa

from opus_pipelines.history.records.arrow_arrays import consecutive, distinct, distinct_counts, numbered

PLACES = pa.list_(pa.int32())


def pairs(lengths: list[int], stated: list[list[int | None] | None]) -> list[tuple[int, int]]:
    before, after = consecutive(np.array(lengths, np.int64), pa.array(stated, PLACES))
    return sorted(zip(before.tolist(), after.tolist(), strict=True))


def test_steps_follow_each_other_by_position() -> None:
    assert pairs([3, 0, 1, 2], [None] * 6) == [(0, 1), (1, 2), (4, 5)]


def test_a_step_that_states_its_predecessors_follows_them_alone() -> None:
    # The second case begins at step 2: places are counted within it.
    assert pairs([2, 4], [None, None, None, [0], [0, 0, 1], []]) == [(0, 1), (2, 3), (2, 4), (3, 4)]


def test_a_place_outside_of_the_case_and_an_unknown_one_are_left_out() -> None:
    assert pairs([2, 2], [None, [-1, 2, None, 0], None, [1]]) == [(0, 1), (3, 3)]


def test_distinct_numbers_are_sorted_and_counted() -> None:
    assert distinct(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    values, counts = distinct_counts(np.array([3, 1, 3, 2, 1, 3]))
    assert (values.tolist(), counts.tolist()) == ([1, 2, 3], [2, 1, 3])


def test_no_numbers_and_no_cases() -> None:
    assert distinct(np.array([], np.int64)).tolist() == []
    values, counts = distinct_counts(np.array([], np.int64))
    assert (values.tolist(), counts.tolist()) == ([], [])
    assert pairs([], []) == []


def test_distinct_values_are_numbered_in_ascending_order() -> None:
    number, place = numbered(np.array([7, 3, 7, 9, 3]))
    assert number.tolist() == [1, 0, 1, 2, 0]
    assert np.array([7, 3, 7, 9, 3])[place].tolist() == [3, 7, 9]


def test_no_values_have_no_numbers() -> None:
    number, place = numbered(np.array([], np.int64))
    assert (number.tolist(), place.tolist()) == ([], [])
