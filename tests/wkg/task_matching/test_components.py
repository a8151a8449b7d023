"""Components, the guard against chains, and that no order of input matters."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.task_matching.duplicate_detection import components_of, tasks_of

Pairs = dict[tuple[int, int], float]


def grouped(
    size: int, alike: Pairs, apart: set[tuple[int, int]] = frozenset(), same: tuple[tuple[int, ...], ...] = ()
) -> list[list[int]]:  # type: ignore[assignment]
    atoms = components_of(size, ((group[0], other) for group in same for other in group[1:]))
    return tasks_of(
        atoms, alike, lambda a, b: alike.get((min(a, b), max(a, b))), lambda a, b: (min(a, b), max(a, b)) in apart
    )


def test_a_chain_whose_ends_are_not_alike_is_split_where_it_is_weakest() -> None:
    chain = {(0, 1): 0.95, (1, 2): 0.9, (2, 3): 0.96}
    assert grouped(4, chain) == [[0, 1], [2, 3]]
    assert grouped(3, {(0, 1): 0.95, (1, 2): 0.9}) == [[0, 1], [2]]
    assert grouped(3, {(0, 1): 0.95, (1, 2): 0.9, (0, 2): 0.88}) == [[0, 1, 2]]


def test_ties_go_by_number() -> None:
    assert grouped(3, {(1, 2): 0.9, (0, 1): 0.9}) == [[0, 1], [2]]


def test_what_a_pin_joins_counts_as_one_and_what_it_forbids_is_never_joined() -> None:
    assert grouped(3, {(1, 2): 0.9}, same=((0, 1),)) == [[0, 1, 2]]
    assert grouped(3, {(1, 2): 0.9}, {(0, 2)}, ((0, 1),)) == [[0, 1], [2]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Pairs, set[tuple[int, int]]]:
    size = draw(st.integers(1, 8))
    pairs = list(combinations(range(size), 2))
    alike = draw(st.dictionaries(st.sampled_from(pairs), st.sampled_from([0.85, 0.9, 0.95, 1.0]))) if pairs else {}
    apart = draw(st.sets(st.sampled_from(pairs), max_size=3)) if pairs else set()
    return size, alike, apart


@pytest.mark.long
@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_groups_are_a_partition_of_names_all_alike_whatever_the_order(
    graph: tuple[int, Pairs, set[tuple[int, int]]], draw: random.Random
) -> None:
    size, alike, apart = graph
    found = grouped(size, alike, apart)
    assert sorted(node for group in found for node in group) == list(range(size))
    for group in found:
        assert all(pair in alike and pair not in apart for pair in combinations(group, 2))
    items = list(alike.items())
    draw.shuffle(items)
    assert grouped(size, dict(items), apart) == found
    of = {node: i for i, group in enumerate(components_of(size, alike)) for node in group}
    assert all(len({of[node] for node in group}) == 1 for group in found)
