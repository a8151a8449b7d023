"""Intervals of Rewards: what they cover, what two workflows share, and that a seed gives the same draws."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.evaluation.uncertainty import (
    BetaDistribution,
    Draws,
    Posterior,
    middle_interval,
    p_better,
    worth_draws,
)
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def chain(*tasks: TaskNode, gain: float = 100.0) -> Workflow:
    return Workflow.of(
        [InputNode("in", "In"), *tasks, OutputNode("out", "Out", gain)],
        pairwise(["in", *(t.id for t in tasks), "out"]),
    )


def side_by_side(*tasks: TaskNode, gain: float = 100.0) -> Workflow:
    edges = [edge for t in tasks for edge in (("in", t.id), (t.id, "out"))]
    return Workflow.of([InputNode("in", "In"), *tasks, OutputNode("out", "Out", gain)], edges)


SURE = BetaDistribution(1.0)
ZERO = BetaDistribution(0.0)
TASK = TaskNode("a", "a", "A", p=0.8, cost_usd=10.0, duration_ms=3_600_000.0)
HOURLY = Cost(usd_per_hour_of_duration=5.0)


def test_a_beta_has_the_mean_and_the_strength_of_what_is_believed() -> None:
    draws = BetaDistribution(0.8, 99).draws(np.random.default_rng(0), 200_000)
    assert (draws.mean(), draws.std()) == (pytest.approx(0.8, abs=1e-3), pytest.approx(0.04, rel=0.01))


def test_a_beta_from_an_interval_has_its_mean_and_width() -> None:
    draws = BetaDistribution.within(0.8, 0.7, 0.88).draws(np.random.default_rng(0), 200_000)
    assert draws.mean() == pytest.approx(0.8, abs=2e-3)
    assert draws.std() == pytest.approx(0.18 / (2 * 1.96), rel=0.02)
    assert BetaDistribution.within(0.5, 0.0, 1.0).strength == pytest.approx(2.8414588)
    assert BetaDistribution.within(0.95, 0.0, 1.0).strength == 2.0


@pytest.mark.parametrize(
    "share",
    [
        BetaDistribution.within(0.0, 0.0, 1.0),
        BetaDistribution.within(0.3, 0.3, 0.3),
        BetaDistribution(1.0, 5.0),
        BetaDistribution(0.3),
    ],
)
def test_what_is_sure_is_always_the_same(share: BetaDistribution) -> None:
    assert set(share.draws(np.random.default_rng(0), 3)) == {share.mean}


def test_one_more_error_adds_to_the_variance() -> None:
    own = BetaDistribution(0.8, 99.0)  # a standard deviation of .04
    assert own.with_error(0.03).strength == pytest.approx(0.16 / 0.05**2 - 1)
    assert own.with_error(0.0) == own
    assert own.with_error(2.0).strength == 2.0, "never less than uniform"
    assert BetaDistribution(1.0).with_error(0.1) == BetaDistribution(1.0)


def test_a_workflow_without_beliefs_has_no_interval() -> None:
    draws = worth_draws(chain(TASK), {}, Cost(), Draws(0, 10))
    assert draws.shape == (10,)
    assert middle_interval(draws).p05 == middle_interval(draws).p95 == pytest.approx(70.0)


def test_the_interval_is_that_of_the_belief() -> None:
    draws = worth_draws(
        chain(TASK), {"a": Posterior(BetaDistribution.within(0.8, 0.7, 0.9), ZERO)}, Cost(), Draws(0, 100_000)
    )
    found = middle_interval(draws)
    deviation = 100 * 0.2 / (2 * 1.96)
    assert (found.p05, found.p95) == (
        pytest.approx(70 - 1.645 * deviation, abs=1.0),
        pytest.approx(70 + 1.645 * deviation, abs=1.0),
    )


def test_costs_are_drawn_around_their_mean() -> None:
    draws = 80 - worth_draws(
        chain(TASK), {"a": Posterior(BetaDistribution(0.8), ZERO, cost_deviation_usd=2.0)}, Cost(), Draws(0, 100_000)
    )
    assert (draws.mean(), draws.std()) == (pytest.approx(10.0, abs=0.05), pytest.approx(2.0, abs=0.05))
    assert (draws > 0).all()


def test_time_costs_where_it_has_a_price_and_a_cost_by_time_goes_with_it() -> None:
    late = Posterior(BetaDistribution(0.8), ZERO, duration_deviation_ms=360_000.0)
    free, timed = (80 - worth_draws(chain(TASK), {"a": late}, cost, Draws(0, 50_000)) for cost in (Cost(), HOURLY))
    assert free.std() == pytest.approx(0, abs=1e-9)
    assert (timed.mean(), timed.std()) == (pytest.approx(15, abs=0.02), pytest.approx(0.5, rel=0.02))
    by_time = 80 - worth_draws(chain(TASK), {"a": replace(late, paid_by_time=True)}, HOURLY, Draws(0, 50_000))
    assert (by_time.mean(), by_time.std()) == (pytest.approx(15, abs=0.05), pytest.approx(1.5, rel=0.02))


def test_the_mean_of_draws_is_the_reward_of_the_figures_in_any_shape() -> None:
    one, two = replace(TASK, q=0.3), replace(TASK, id="b", task_id="b", p=0.6, q=0.1)
    beliefs = {
        "a": Posterior(BetaDistribution(0.8, 20), BetaDistribution(0.3, 5), 3.0),
        "b": Posterior(BetaDistribution(0.6, 8), BetaDistribution(0.1, 5), 1.0),
    }
    for workflow in (chain(one, two), side_by_side(one, two)):
        draws = worth_draws(workflow, beliefs, Cost(), Draws(3, 200_000))
        assert draws.mean() == pytest.approx(evaluate(workflow, Cost(), Reward()).reward_usd, abs=0.2)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    beliefs = {"a": Posterior(BetaDistribution(0.8, 50), ZERO)}
    one, two, other = (worth_draws(chain(TASK), beliefs, Cost(), Draws(seed)) for seed in (1, 1, 2))
    assert (one == two).all()
    assert not (one == other).any()
    grouped = worth_draws(chain(replace(TASK, actor_group="north")), beliefs, Cost(), Draws(1))
    assert not (one == grouped).any()


def test_what_two_workflows_share_decides_nothing() -> None:
    wide = Posterior(BetaDistribution.within(0.5, 0.05, 0.95), ZERO)
    small, dear = (
        replace(TASK, id="b", task_id="b", cost_usd=cost, actor_kind=kind)
        for cost, kind in ((1.0, "code"), (1.5, "human"))
    )
    first, second = (
        worth_draws(chain(TASK, t), {"a": wide, "b": Posterior(SURE, ZERO)}, Cost(), Draws(0)) for t in (small, dear)
    )
    assert p_better(first, second) == 1.0
    assert middle_interval(first).p95 > middle_interval(second).p05
    assert p_better(first, first) == 0.5


def test_rewards_in_one_step_of_the_quantum_are_ties() -> None:
    first, second = np.array([1.004, 1.02, 0.5, 2.0]), np.array([1.001, 1.0, 0.9, 1.0])
    assert p_better(first, second) == 0.75
    assert [p_better(first, second, 0.01, tie) for tie in (0.0, 0.5, 1.0)] == [0.5, 0.625, 0.75]


def test_workflows_that_differ_in_an_uncertain_task_are_undecided() -> None:
    belief = {"a": Posterior(BetaDistribution.within(0.8, 0.6, 0.95), ZERO)}
    one = worth_draws(chain(TASK), belief, Cost(), Draws(0))
    two = worth_draws(
        chain(replace(TASK, task_id="z", p=0.81)),
        {"a": Posterior(BetaDistribution.within(0.81, 0.6, 0.95), ZERO)},
        Cost(),
        Draws(0),
    )
    assert 0.3 < p_better(one, two) < 0.6


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0.0, 1.0))
def test_one_of_two_beats_the_other(rewards: list[float], tie: float) -> None:
    first, second = np.array(rewards), np.array(rewards[::-1])
    assert p_better(first, second, 0.01, tie) + p_better(second, first, 0.01, 1 - tie) == pytest.approx(1)
