"""The chances of what follows an activity: silent cases, groups of cases that never go on, the time beyond the log."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.statistics import groups_of
from opus_pipelines.wkg.estimates.next_activity import Horizon, NextActivity, Silences, Spells

SEND, PAY = 1, 2
NONE = np.zeros(0, np.int64)


def behind(
    following: list[Any],
    waits: Any,
    silent: list[Any],
    went: list[Any] | None = None,
    stayed: list[Any] | None = None,
    share: float = 0.03,
    folds: float = 8.0,
) -> Any:
    codes = lambda rows, n: np.zeros((n, 0), np.int64) if rows is None else np.array(rows, np.int64).reshape(n, 1)
    return NextActivity(
        Spells(np.array(following), np.array(waits, float), codes(went, len(following))),
        Silences(np.array(silent, float), codes(stayed, len(silent))),
        Horizon(share, folds),
    )


def test_without_silent_cases_the_chances_are_the_counts() -> None:
    found = behind([SEND, SEND, PAY, SEND], [1, 2, 3, 4], [])
    assert found.following.tolist() == [SEND, PAY]
    assert found.incidence(NONE) == pytest.approx([0.75, 0.25])


def test_a_silent_case_counts_as_long_as_it_was_watched() -> None:
    # Aalen-Johansen by hand: 1 of 4 goes to SEND at 1, then 1 of the 2 that are still watched goes to PAY at 3.
    found = behind([SEND, PAY], [1, 3], [2, 4])
    assert found.incidence(NONE) == pytest.approx([0.25, 0.75 / 2])
    assert found.given(NONE, 2.0) == pytest.approx([0.0, 0.5])  # silent for 2: SEND would have come
    assert found.given(NONE, 4.0) == pytest.approx([0.0, 0.0])


def test_an_activity_that_nothing_follows_ends_every_case() -> None:
    found = behind([], [], [5, 6])
    assert found.incidence(NONE).tolist() == found.given(NONE, 5.0).tolist() == []


def test_a_group_that_never_goes_on_is_told_from_those_that_do() -> None:
    # 60 cases of department 1 were sent within 60 days; 60 cases of department 2 are silent for as long, and 60 of
    # department 1 are fresh.
    waits, silent = list(range(1, 61)), [*range(1, 61), *[1] * 60]
    found = behind([SEND] * 60, waits, silent, went=[[1]] * 60, stayed=[*[[2]] * 60, *[[1]] * 60])
    assert found.incidence(np.array([1]))[0] > 0.8
    assert found.incidence(np.array([2])) == pytest.approx([0.0])
    together = behind([SEND] * 60, waits, silent)
    assert together.incidence(NONE) == pytest.approx([1.0])  # not told apart, the second department would go on, too


def test_a_small_group_is_not_told_apart() -> None:
    found = behind([SEND] * 40, range(1, 41), [20.0] * 5, went=[[1]] * 40, stayed=[[2]] * 5)
    assert found.incidence(np.array([2])) == found.incidence(np.array([1]))


def test_beyond_the_horizon_a_high_hazard_goes_on_and_a_low_one_ends() -> None:
    # A tenth of the cases goes on every day until the log ends on day 10: the rest will go on, too.
    waits = [day for day in range(1, 11) for _ in range(10)]
    high = behind([SEND] * 100, waits, [10.0] * 60)
    assert high.incidence(NONE)[0] > 0.95
    # All that went on did so at once, and nobody within the following 99 days: the rest has ended.
    low = behind([SEND] * 100, [0.01] * 100, [100.0] * 60)
    assert low.incidence(NONE) == pytest.approx([100 / 160])
    assert behind([SEND] * 100, waits, [10.0] * 60, folds=0.0).incidence(NONE) == pytest.approx([100 / 160])


def test_groups_are_frequent_values_and_eighths_of_numbers() -> None:
    cases = [
        {"kind": "a" if n % 2 else "b", "id": str(n), "same": "x", "rare": "r" if n < 3 else ""} for n in range(200)
    ]
    codes = groups_of(cases)
    assert codes.shape == (200, 2)  # `id`: eighths of a number, `kind`: two names; `same` and `rare` tell nothing
    assert np.bincount(codes[:, 1]).tolist() == [0, 100, 100]
    assert np.bincount(codes[:, 0]).tolist() == [0] + [25] * 8


def test_no_attribute_no_group() -> None:
    assert groups_of([{}, {}]).shape == (2, 0)
    assert groups_of([]).shape == (0, 0)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e6), st.integers(0, 2)), max_size=40),
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 2)), max_size=40),
    st.floats(0, 1e7),
)
def test_chances_are_chances(spells: list[Any], silent: list[Any], asked: float) -> None:
    found = behind(
        [k for k, _, _ in spells],
        [w for _, w, _ in spells],
        [s for s, _ in silent],
        went=[[g] for *_, g in spells],
        stayed=[[g] for _, g in silent],
    )
    for group in range(3):
        for chances in (found.incidence(np.array([group])), found.given(np.array([group]), asked)):
            assert np.isfinite(chances).all()
            assert (chances >= 0).all()
            assert chances.sum() <= 1 + 1e-9


def test_one_batch_that_goes_on_together_is_not_taken_to_go_on_beyond_the_horizon() -> None:
    # As in a hospital's billing: of 75 bills the oldest are 60 days old, 8 were cancelled together after 32 days, none
    # before or after.
    silent = [float(day) for day in np.linspace(1, 60, 75)]
    batch = behind([SEND] * 8, [32.1, 32.2, 32.2, 32.3, 32.3, 32.4, 32.4, 32.5], silent)
    assert batch.incidence(NONE)[0] < 0.25  # what was seen, and no more
    spread = behind([SEND] * 8, [16, 22, 28, 33, 38, 44, 49, 54], silent)  # as many, at any age: it goes on
    assert spread.incidence(NONE)[0] > 0.9
