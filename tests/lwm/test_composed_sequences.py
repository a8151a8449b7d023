"""Sequences of several kinds of work made one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lwm.history_backend import combined_sequence, merge_sequences
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase


def work(needed: list[str], *sequences: Any, success: bool = True) -> Any:
    empty = (None,)
    cases = [
        SimilarCase(s, 0.9, 1.0, success, None, None, None, tuple(s), tuple(s), empty, empty, empty) for s in sequences
    ]
    return ProcessDemand(cases, [frozenset(group) for group in needed])


def ways(*works: Any) -> Any:
    return [[c.tasks for c in w.cases] for w in works]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abcz", "abdz", "abdcz"),  # behind the last task that both do before it
        ("abz", "xaz", "xabz"),  # what comes first in the other comes first
        ("abz", "azy", "abzy"),
        ("ab", "cd", "cdab"),  # nothing in common: the other goes first, being behind nothing
        ("abc", "cba", "abc"),  # the first one's order stays
    ],
)
def test_the_other_ones_tasks_come_behind_what_it_does_before(one: str, other: str, expected: str) -> None:
    assert "".join(merge_sequences(tuple(one), tuple(other))) == expected


@given(st.permutations("abcdef"), st.permutations("defghi"))
def test_a_merge_holds_each_task_once_and_keeps_the_first_order(one: list[str], other: list[str]) -> None:
    found = merge_sequences(tuple(one), tuple(other))
    assert sorted(found) == list("abcdefghi")
    assert [t for t in found if t in one] == list(one)


def test_each_work_brings_what_it_needs_and_leaves_its_extras() -> None:
    storm, water = work(["r", "w", "i"], "rwiz"), work(["r", "d", "i"], "rdsiz")
    assert combined_sequence([storm, water], ways(storm, water)) == tuple("rdwiz")


def test_a_model_holds_all_that_its_work_needs() -> None:
    storm, water = work(["r", "w"], "rwz"), work(["r", "d"], "rz", "rdz")
    assert combined_sequence([storm, water], ways(storm, water)) == tuple("rdwz")
    lacking = work(["r", "d", "x"], "rdz")
    assert combined_sequence([storm, lacking], ways(storm, lacking)) is None


def test_one_work_needs_no_composing() -> None:
    assert combined_sequence([work(["r"], "rz")], [[tuple("rz")]]) is None
    assert combined_sequence([], []) is None


def test_what_goes_with_a_work() -> None:
    assert work(["r", "d"], "rdz", "rz").supports("z")
    assert not work(["r", "d"], "rd", "rz").supports("z")
    assert not work(["r"], "rz", success=False).supports("z")
