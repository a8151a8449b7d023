"""Sequences from the probabilities of the next step: samples, beam search, and the rules of both."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.lwm.next_step.writing import NextStep, Rules, by_beam, sampled

LIKELY = np.array([0.5, 0.3, 0.15, 0.05])  # of three tasks and the end, whatever came before


def always(likely: np.ndarray) -> NextStep:
    """Return a model that expects the same after every prefix."""
    return lambda prefixes: np.tile(likely, (len(prefixes), 1))


def after_one_step(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return a model that ends after a step for certain."""
    return np.stack([np.array([0.6, 0.4, 0.0, 0.0] if not p else [0.0, 0.0, 0.0, 1.0]) for p in prefixes])


@pytest.mark.parametrize("write", [sampled, by_beam])
def test_the_likeliest_sequence_comes_first_with_its_probability(write: object) -> None:
    assert callable(write)
    found = write(after_one_step, Rules(3))
    assert [one.tasks for one in found] == [(0,), (1,)]
    assert [one.probability for one in found] == pytest.approx([0.6, 0.4])


def test_beam_search_asks_for_all_open_prefixes_at_once() -> None:
    asked: list[int] = []

    def counted(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        asked.append(len(prefixes))
        return always(LIKELY)(prefixes)

    by_beam(counted, Rules(3), width=2)
    assert asked == [1, 2, 2, 2]


@pytest.mark.parametrize("write", [sampled, by_beam])
@given(
    required=st.frozensets(st.integers(0, 4), max_size=2),
    forbidden=st.frozensets(st.integers(0, 4), max_size=2),
    first=st.integers(0, 4),
    seed=st.integers(0, 50),
)
@settings(max_examples=40, deadline=None)
def test_every_sequence_keeps_the_rules(
    write: object, required: frozenset[int], forbidden: frozenset[int], first: int, seed: int
) -> None:
    assert callable(write)
    likely = np.random.default_rng(seed).dirichlet(np.ones(6))
    needed = required - forbidden
    rules = Rules(5, needed, forbidden, frozenset({(first, (first + 1) % 5)}))
    for one in write(always(likely), rules):
        assert len(set(one.tasks)) == len(one.tasks) <= 5
        assert not forbidden & set(one.tasks)
        if {first, (first + 1) % 5} <= set(one.tasks):
            assert one.tasks.index(first) < one.tasks.index((first + 1) % 5)
        if first not in needed:
            assert needed <= set(one.tasks)


def test_a_sequence_ends_where_nothing_is_allowed() -> None:
    (one,) = by_beam(always(LIKELY), Rules(3, frozenset({0}), frozenset({1, 2})))
    assert one.tasks == (0,)
    (other,) = sampled(always(LIKELY), Rules(3, frozenset(), frozenset({0, 1, 2})))
    assert other.tasks == ()
