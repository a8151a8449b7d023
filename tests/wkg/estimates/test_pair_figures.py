"""What a task comes to behind another one: standardised, drawn to the task's figure, and judged on held-out cases."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.wkg.estimates.aggregate_columns import PAIRS
from opus_pipelines.wkg.estimates.pair_figures import (
    Cells,
    effects,
    fitted_gammas,
    lambda_weights,
    log_likelihood,
    pair_figures,
)

TASKS = [
    {"task_id": t, "industries": ["claims"], "p": 0.8, "q": 0.4, "duration_ms_mean": 10.0, "cost_usd_mean": None}
    for t in "abv"
]
MODES = [
    {"task_id": t, "actor_kind": who, "model": None, "actor_group": None, "duration_ms_mean": 10.0}
    | {"p": p, "q": 0.4, "cost_usd_mean": None}
    for t in "abv"
    for who, p in (("human", 0.8), ("code", 0.6))
]


def row(src: str, fold: int, p: tuple[int, int] = (0, 0), who: str = "human", ms: tuple[int, float] = (0, 0.0)) -> Any:
    counts = {"count": max(p[1], ms[0]), "p_n": p[1], "p_successes": p[0], "q_n": 0, "q_successes": 0}
    times = {"duration_n": ms[0], "duration_sum": round(ms[1] * 1000), "cost_n": 0, "cost_sum": 0}
    key = {"src": src, "dst": "v", "actor_kind": who, "model": None, "actor_group": None, "fold": fold}
    return key | counts | times


def table(rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist(rows, PAIRS)


def cells(n: float, total: float, expected: float) -> Cells:
    return Cells(*(np.array([x], float) for x in (n, total, expected)))


def test_a_pair_that_fails_more_often_has_a_lower_p_and_the_other_a_higher_one() -> None:
    found = pair_figures(
        table([row(src, fold, (right, 20)) for fold in range(5) for src, right in (("a", 19), ("b", 10))]), TASKS, MODES
    )
    good, bad = found["a", "v"], found["b", "v"]
    assert (good["dst_p_n"], good["dst_p_successes"], bad["dst_p_successes"]) == (100, 95, 50)
    assert good["dst_p_gamma"] > 0.9
    assert good["dst_p"] == pytest.approx(0.8 + good["dst_p_gamma"] * 15 / 101)
    assert bad["dst_p"] == pytest.approx(0.8 - bad["dst_p_gamma"] * 30 / 101)
    assert (good["dst_q"], good["dst_q_n"], good["dst_duration_ms_mean"], good["dst_cost_n"]) == (None, 0, None, 0)


def test_chance_alone_leaves_every_pair_at_the_figure_of_its_task() -> None:
    draw = random.Random(5)
    rows = [row(f"u{u}", fold, (sum(draw.random() < 0.8 for _ in range(8)), 8)) for u in range(12) for fold in range(5)]
    tasks = [*TASKS, *(TASKS[0] | {"task_id": f"u{u}"} for u in range(12))]
    found = pair_figures(table(rows), tasks, MODES)
    assert {(x["dst_p"], x["dst_p_gamma"]) for x in found.values()} == {(0.8, 0.0)}


def test_a_pair_that_only_another_execution_mode_does_is_no_worse() -> None:
    rows = [
        row(src, fold, (right, 10), who)
        for fold in range(5)
        for src, right, who in (("a", 8, "human"), ("b", 6, "code"))
    ]
    found = pair_figures(table(rows), TASKS, MODES)
    assert found["a", "v"]["dst_p"] == found["b", "v"]["dst_p"] == 0.8


def test_times_are_a_ratio_to_the_expected_time() -> None:
    rows = [row(src, fold, ms=(30, 30 * mean)) for fold in range(5) for src, mean in (("a", 20.0), ("b", 5.0))]
    found = pair_figures(table(rows), TASKS, MODES)
    slow = found["a", "v"]
    assert (slow["dst_duration_n"], slow["dst_duration_ms_observed"]) == (150, pytest.approx(20.0))
    assert slow["dst_duration_ms_mean"] == pytest.approx(10.0 * (1 + slow["dst_duration_gamma"] * 150 / 151))
    assert found["b", "v"]["dst_duration_ms_mean"] < 7.0


def test_sources_add_up_in_any_order() -> None:
    rows = [row(src, fold, (right, 7)) for fold in range(5) for src, right in (("a", 7), ("b", 2), ("a", 6))]
    assert pair_figures(table(rows), TASKS, MODES) == pair_figures(table(rows[::-1]), TASKS, MODES)


def test_without_pairs_there_is_nothing() -> None:
    assert pair_figures(table([]), TASKS, MODES) == {}


def test_one_more_occurrence_at_the_expected_figure_keeps_a_rate_off_its_ends() -> None:
    assert 0.8 + effects(cells(4, 4, 3.2), is_rate=True)[0] == pytest.approx(0.96)
    assert effects(cells(0, 0, 0), is_rate=True)[0] == 0.0
    assert effects(cells(3, 60, 30), is_rate=False)[0] == pytest.approx(0.75)
    assert effects(cells(3, 60, 0), is_rate=False)[0] == 0.0  # free of charge: no ratio


def test_the_likelihood_is_largest_at_what_was_observed() -> None:
    rates = [log_likelihood(cells(10, 6, 8), np.array([e]), True)[0] for e in (-0.3, -0.2, -0.1)]
    times = [log_likelihood(cells(10, 200, 100), np.array([e]), False)[0] for e in (0.5, 1.0, 1.5)]
    assert max(rates) == rates[1]
    assert max(times) == times[1]
    assert log_likelihood(cells(0, 0, 0), np.array([0.5]), True)[0] == 0.0


def test_gamma_is_zero_without_any_outcome() -> None:
    none = np.zeros((3, 5))
    assert fitted_gammas(Cells(none, none, none), np.array([0, 0, 1]), is_rate=True).tolist() == [0.0, 0.0, 0.0]


def test_a_task_that_depends_on_the_one_before_it_and_one_that_does_not_have_their_own_lambda() -> None:
    n = np.full((102, 5), 8.0)
    chance = np.random.default_rng(0).binomial(8, 0.75, (100, 5))
    total = np.concatenate([n[:2] * np.array([[0.95], [0.55]]), chance])
    gammas = fitted_gammas(Cells(n, total, n * 0.75), np.array([0, 0, *[1] * 100]), is_rate=True)
    assert gammas[0] > 0.9
    assert gammas[2] < 0.2


def test_a_task_with_few_outcomes_has_the_lambda_of_the_others() -> None:
    gains = np.zeros((3, 4))
    gains[2, :3] = 8.0  # three tasks speak for the last λ, and the fourth says nothing
    weights = lambda_weights(gains)
    assert weights[2].min() > 0.95
    assert weights.sum(0) == pytest.approx(np.ones(4))
