"""Pools: each draw counts once, what is alike draws closer, kinds of actor apart, ways of one task beside
one another.
"""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.estimates.success import BetaPool, by_group, expected, fit_beta

SETTINGS = BetaPool(0.2, 5.0)
COUNTS = st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=8)


def log_posterior(mean: float, strength: float, counts: list[tuple[int, int]], prior: BetaPool) -> float:
    """Written out anew: beta-binomial likelihood, prior counts of the mean, log-normal strength."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    a, b = mean * strength, (1 - mean) * strength
    likelihood = sum(log_beta(a + s, b + n - s) - log_beta(a, b) for s, n in counts)
    of_mean = prior.strength * (prior.mean * math.log(mean) + (1 - prior.mean) * math.log(1 - mean))
    return likelihood + of_mean - math.log(strength / prior.strength) ** 2 / 2


def test_no_counts_leave_the_prior() -> None:
    assert fit_beta([], [], SETTINGS) == SETTINGS
    assert fit_beta([0, 0], [0, 0], SETTINGS) == SETTINGS


def test_one_judged_step_counts_beside_the_priors_counts() -> None:
    """A single draw of one count tells nothing of the strength: (0.2 · 5 + 1) / (5 + 1)."""
    found = fit_beta([1], [1], SETTINGS)
    assert (found.mean, found.strength) == (pytest.approx(1 / 3), pytest.approx(5.0))


def test_a_way_done_often_does_not_speak_for_the_others() -> None:
    """A review mends 500 of 1000; twenty steps mend 1 of 10 each: pooled over steps 0.43, over draws 0.15."""
    found = fit_beta([500] + [1] * 20, [1000] + [10] * 20, SETTINGS)
    assert found.mean == pytest.approx(0.151, abs=0.001)


def test_what_is_alike_is_held_closer_than_what_is_not() -> None:
    alike, unlike = (
        fit_beta([95] * 20, [100] * 20, BetaPool(0.95, 5.0)),
        fit_beta([100] * 15 + [80] * 5, [100] * 20, BetaPool(0.95, 5.0)),
    )
    assert alike.mean == pytest.approx(0.9475, abs=0.0005)
    assert unlike.mean == pytest.approx(0.95, abs=0.02)
    assert alike.strength > 60 > 5 * unlike.strength / 2
    assert BetaPool(0.5, 3.0).deviation == 0.25


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(COUNTS, st.randoms(use_true_random=False))
def test_it_is_the_mode_whatever_the_order(counts: list[tuple[int, int]], random: Any) -> None:  # type: ignore[no-untyped-def]
    found = fit_beta([s for s, _ in counts], [n for _, n in counts], SETTINGS)
    best = log_posterior(found.mean, found.strength, counts, SETTINGS)
    for mean, strength in ((1.02, 1.0), (0.98, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert log_posterior(min(found.mean * mean, 0.9999), found.strength * strength, counts, SETTINGS) <= best + 1e-6
    random.shuffle(counts)
    assert fit_beta([s for s, _ in counts], [n for _, n in counts], SETTINGS) == found


def test_kinds_of_actor_are_pooled_apart() -> None:
    ways = [("code", 0)] * 10 + [("human", 5)] * 10
    found = expected(list(range(20)), [kind for kind, _ in ways], [s for _, s in ways], [10] * 20, SETTINGS)
    assert (found[0], found[10]) == (found[9], found[19])
    assert found[0].mean < 0.05
    assert 0.4 < found[10].mean < 0.5


def test_a_group_lies_within_the_pool_of_the_others_and_counts_once() -> None:
    alone = by_group(["a", "a"], [8, 9], [10, 10], SETTINGS)
    assert alone == {"a": fit_beta([8, 9], [10, 10], SETTINGS)}
    both = by_group(["a", "a", "b"], [8, 9, 0], [10, 10, 0], SETTINGS)
    assert both == {"a": alone["a"], "b": alone["a"]}
    assert by_group([], [], [], SETTINGS) == {}


def test_other_ways_of_a_task_speak_for_one_that_nobody_judged() -> None:
    """Tasks differ, their two ways hardly: the unjudged way of a good task is expected above that of a bad one, and
    stays in bounds.
    """
    tasks = [task for task in range(12) for _ in range(2)]
    successes = [s for task in range(12) for s in ([18, 18] if task % 2 else [2, 2])]
    n = [20] * 24
    successes[1] = n[1] = successes[3] = n[3] = 0
    found = expected(tasks, ["human"] * 24, successes, n, SETTINGS)
    assert found[1].mean < found[5].mean + 0.05 < found[3].mean
    assert all(0.05 < pool.mean < 0.95 and pool.strength >= 1 for pool in found)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(COUNTS, st.data())
def test_what_is_expected_is_a_chance(counts: list[tuple[int, int]], data: st.DataObject) -> None:
    tasks = data.draw(st.lists(st.integers(0, 2), min_size=len(counts), max_size=len(counts)))
    kinds = data.draw(st.lists(st.sampled_from(["code", "human", None]), min_size=len(counts), max_size=len(counts)))
    found = expected(tasks, kinds, [s for s, _ in counts], [n for _, n in counts], SETTINGS)
    assert len(found) == len(counts)
    assert all(0 < pool.mean < 1 and 1 <= pool.strength < math.inf for pool in found)
