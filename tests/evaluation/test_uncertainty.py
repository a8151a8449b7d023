"""Intervals of Rewards: what they cover, what two workflows share, and that a seed gives the same draws."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from opus_pipelines.evaluation.uncertainty import Belief, Share, beats, interval, reward_draws
from opus_pipelines.settings import Cost
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def chain(*tasks: TaskNode, gain: float = 100.0) -> Workflow:
    return Workflow.of(
        [InputNode("in", "In"), *tasks, OutputNode("out", "Out", gain)], pairwise(["in", *(t.id for t in tasks), "out"]),
    )


SURE = Share(1.0, 1.0, 1.0)
ZERO = Share(0.0, 0.0, 0.0)
TASK = TaskNode("a", "a", "A", p=0.8, cost_usd=10.0)


def test_a_beta_has_the_mean_and_the_width_of_what_is_believed() -> None:
    draws = Share(0.8, 0.7, 0.88).draws(np.random.default_rng(0), 200_000)
    assert draws.mean() == pytest.approx(0.8, abs=2e-3)
    assert draws.std() == pytest.approx(0.18 / (2 * 1.96), rel=0.02)
    assert set(Share(0.0, 0.0, 1.0).draws(np.random.default_rng(0), 3)) == {0.0}
    assert set(Share(0.3, 0.3, 0.3).draws(np.random.default_rng(0), 3)) == {0.3}


def test_what_is_sure_has_no_interval() -> None:
    draws = reward_draws(chain(TASK), {}, Cost(), seed=0, n=10)
    assert draws.shape == (10,)
    assert interval(draws).p05 == interval(draws).p95 == pytest.approx(70.0)


def test_the_interval_is_that_of_the_belief() -> None:
    draws = reward_draws(chain(TASK), {"a": Belief(Share(0.8, 0.7, 0.9), ZERO)}, Cost(), seed=0, n=100_000)
    found = interval(draws)
    deviation = 100 * 0.2 / (2 * 1.96)
    assert (found.p05, found.p95) == (pytest.approx(70 - 1.645 * deviation, abs=1.0), pytest.approx(70 + 1.645 * deviation, abs=1.0))


def test_costs_are_drawn_around_their_mean() -> None:
    draws = 80 - reward_draws(chain(TASK), {"a": Belief(Share(0.8, 0.8, 0.8), ZERO, cost_deviation_usd=2.0)}, Cost(), seed=0, n=100_000)
    assert (draws.mean(), draws.std()) == (pytest.approx(10.0, abs=0.05), pytest.approx(2.0, abs=0.05))
    assert (draws > 0).all()


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    beliefs = {"a": Belief(Share(0.8, 0.7, 0.9), ZERO)}
    one, two, other = (reward_draws(chain(TASK), beliefs, Cost(), seed) for seed in (1, 1, 2))
    assert (one == two).all()
    assert not (one == other).any()


def test_what_two_workflows_share_decides_nothing() -> None:
    wide = Belief(Share(0.5, 0.05, 0.95), ZERO)
    small, dear = (replace(TASK, id="b", task_id="b", cost_usd=cost, actor_kind=kind) for cost, kind in ((1.0, "code"), (1.5, "human")))
    first, second = (reward_draws(chain(TASK, t), {"a": wide, "b": Belief(SURE, ZERO)}, Cost(), seed=0) for t in (small, dear))
    assert beats(first, second) == 1.0
    assert interval(first).p95 > interval(second).p05
    assert beats(first, first) == 0.5


def test_workflows_that_differ_in_an_uncertain_task_are_undecided() -> None:
    belief = {"a": Belief(Share(0.8, 0.6, 0.95), ZERO)}
    one = reward_draws(chain(TASK), belief, Cost(), seed=0)
    two = reward_draws(chain(replace(TASK, task_id="z", p=0.81)), {"a": Belief(Share(0.81, 0.6, 0.95), ZERO)}, Cost(), seed=0)
    assert 0.3 < beats(one, two) < 0.6
