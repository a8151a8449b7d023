"""Sequences from the probabilities of the next step: a sample."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.lwm.next_step import NextStep, sampled


def model_of(likely: np.ndarray) -> NextStep:
    """Return a model that expects the same after every prefix, but for what the prefix has."""

    def next_step(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        rows = np.tile(likely, (len(prefixes), 1))
        for row, prefix in zip(rows, prefixes, strict=True):
            row[list(prefix) if prefix else -1] = 0.0
        return np.asarray(rows / rows.sum(1, keepdims=True))

    return next_step


def after_one_step(prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return a model that ends after a step for certain."""
    return np.stack([np.array([0.6, 0.4, 0.0, 0.0] if not p else [0.0, 0.0, 0.0, 1.0]) for p in prefixes])


def test_the_likeliest_sequence_comes_first_with_its_probability() -> None:
    found = sampled(after_one_step, 3)
    assert [one.tasks for one in found] == [(0,), (1,)]
    assert [one.probability for one in found] == pytest.approx([0.6, 0.4])


@given(longest=st.integers(1, 6), seed=st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_no_sequence_is_empty_or_too_long_or_has_a_task_twice(longest: int, seed: int) -> None:
    found = sampled(model_of(np.random.default_rng(seed).dirichlet(np.ones(6))), longest)
    assert sum(one.probability for one in found) == pytest.approx(1.0)
    assert all(1 <= len(one.tasks) == len(set(one.tasks)) <= longest for one in found)
