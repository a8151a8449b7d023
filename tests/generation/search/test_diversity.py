"""How many swaps two workflows lie apart, and which of a ranking differ enough: literal cases and laws."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.generation.search.problem import (
    StepKey,
    is_diverse,
    jaccard_distance,
    select_diverse,
    steps_of,
    swaps,
)
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def step(task: str, kind: str = "human", model: str | None = None, group: str | None = None) -> StepKey:
    return task, kind, model, group


@dataclass(frozen=True)
class Candidate:
    steps: frozenset[StepKey]

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(sorted({task for task, *_ in self.steps}))


def candidate(*steps: str) -> Candidate:
    """`b:code` is b done by code."""
    return Candidate(frozenset(step(*s.split(":")) for s in steps))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a b", 1),  # one left out
        ("a b", "a b c d", 2),  # two more
        ("a b c", "a b d", 1),  # one in the place of another is one swap, not two
        ("a b c", "a d e f", 3),
        ("a b c", "a b:code c", 1),  # the same task by someone else
        ("a b c", "a b:code c:code", 2),
        ("a b c", "a b:code d", 2),
        ("a b c", "a b:code c d", 2),  # one by someone else and one more
        ("a b", "a a_review b", 1),  # a review is a step
        ("a a_review b", "a a_review:model b", 1),
        ("", "", 0),
        ("", "a b", 2),
    ],
)
def test_swaps(first: str, second: str, expected: int) -> None:
    one, other = candidate(*first.split()), candidate(*second.split())
    assert swaps(one.steps, other.steps) == swaps(other.steps, one.steps) == expected


def test_the_model_and_the_group_tell_ways_apart_and_the_order_does_not() -> None:
    small, large = step("a", "model", "small"), step("a", "model", "large")
    assert swaps({small}, {large}) == 1
    assert swaps({step("a", "human", None, "claims")}, {step("a", "human", None, "payments")}) == 1
    nodes = [TaskNode("a", "a", "A", actor_kind="human"), TaskNode("b", "b", "B", actor_kind="code", cost_usd=3.0)]
    chain = Workflow((InputNode("i", "I"), *nodes, OutputNode("o", "O", 1.0)), (("a", "b"), ("b", "o"), ("i", "a")))
    beside = Workflow(
        (InputNode("i", "I"), *nodes[::-1], OutputNode("o", "O", 1.0)), (("a", "o"), ("b", "o"), ("i", "a"), ("i", "b"))
    )
    assert steps_of(chain) == steps_of(beside) == {step("a"), step("b", "code")}


def test_jaccard() -> None:
    assert jaccard_distance("abc", "bcd") == 0.5
    assert jaccard_distance("ab", "ba") == 0.0
    assert jaccard_distance("", "") == 0.0


def test_the_first_stays_and_what_is_near_a_better_one_goes() -> None:
    ranked = [
        candidate(*s.split()) for s in ("a b c", "a b c d", "a b c d e", "a b:code c:code", "a b:code c e", "x y z")
    ]
    assert select_diverse(ranked, 2) == [ranked[0], ranked[2], ranked[3], ranked[4], ranked[5]]
    assert select_diverse(ranked, 3) == [ranked[0], ranked[5]]
    assert select_diverse(ranked, 1) == ranked
    assert select_diverse([], 2) == []


def test_the_share_of_tasks_is_asked_for_beside_the_swaps() -> None:
    ranked = [candidate(*s.split()) for s in ("a b", "a:code b:code", "a c d", "x y")]
    assert select_diverse(ranked, 2) == ranked
    assert select_diverse(ranked, 2, 0.1) == [ranked[0], ranked[2], ranked[3]]
    assert select_diverse(ranked, 2, 0.75) == [ranked[0], ranked[2], ranked[3]]  # a c d and a b: one of four in common
    assert select_diverse(ranked, 2, 1.0) == [ranked[0], ranked[3]]


sets = st.frozensets(st.builds(step, st.sampled_from("abcd"), st.sampled_from(["human", "code"])), max_size=5)


@given(sets, sets, sets)
def test_swaps_are_a_metric(a: frozenset[Any], b: frozenset[Any], c: frozenset[Any]) -> None:
    assert (swaps(a, b) == 0) == (a == b)
    assert swaps(a, b) == swaps(b, a)
    assert swaps(a, c) <= swaps(a, b) + swaps(b, c)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.lists(st.builds(Candidate, sets), max_size=8), st.integers(1, 4), st.sampled_from([0.0, 0.3, 1.0]))
def test_rank_one_stays_no_two_are_nearer_than_the_least_and_none_that_fits_is_left_out(
    ranked: list[Any], least: int, share: float
) -> None:
    kept = select_diverse(ranked, least, share)
    assert kept[:1] == ranked[:1]
    assert all(is_diverse(a, b, least, share) for i, a in enumerate(kept) for b in kept[:i])
    numbers = iter(range(len(ranked)))
    places = [next(i for i in numbers if ranked[i] is one) for one in kept]  # in the order of the ranking
    for i, one in enumerate(ranked):
        better = [k for k, place in zip(kept, places, strict=True) if place < i]
        assert (i in places) == all(is_diverse(one, k, least, share) for k in better)
