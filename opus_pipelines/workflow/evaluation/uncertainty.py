"""Draws the uncertainty of a Reward from the posteriors of p, q, cost and time of each task, seeded and in one pass.

A task in one execution mode has the same draws in all workflows, so the probability that one workflow is better than
another depends on their differences alone. The rule is this project's own; the formulas are EVAL's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Cost
from opus_pipelines.workflow.evaluation.cost import weights_held
from opus_pipelines.workflow.evaluation.reward import Figures, evaluate_batch
from opus_pipelines.workflow.evaluation.success import Floats
from opus_pipelines.workflow.model import TaskNode, Workflow

_DRAWS = 1_000
Z = 1.959963984540054  # normal quantile at 97.5 %
# of a Beta from an interval: that of the uniform distribution; below it the Beta has peaks at 0 and 1
LEAST_STRENGTH = 2.0
_CACHED_TASKS = 1_024  # draws of tasks in the cache: many intakes need the same ones


@dataclass(frozen=True)
class BetaDistribution:
    """The distribution Beta(mean·strength, (1 - mean)·strength) of a probability.

    `strength` counts cases of evidence and prior; inf means certain.
    """

    mean: float
    strength: float = math.inf

    @classmethod
    def within(cls, mean: float, lower: float, upper: float, z: float = Z) -> "BetaDistribution":
        """Returns the distribution with this mean and the spread of an interval.

        Its standard deviation is that of a normal distribution whose quantiles at -z and z are `lower` and `upper`; the
        default z is that of a 95 % interval.
        """
        deviation = (upper - lower) / (2 * z)
        if deviation <= 0:
            return cls(mean)
        return cls(mean, max(LEAST_STRENGTH, mean * (1 - mean) / deviation**2 - 1))

    @property
    def is_certain(self) -> bool:
        """Whether every draw is the mean; this holds for 0 and 1 too, because no other Beta has that mean."""
        return not 0 < self.mean < 1 or math.isinf(self.strength)

    def with_error(self, error: float) -> "BetaDistribution":
        """Returns the distribution with this standard error more: the variances add up."""
        if error <= 0 or not 0 < self.mean < 1:
            return self
        own = self.mean * (1 - self.mean) / (self.strength + 1)
        return BetaDistribution(self.mean, max(LEAST_STRENGTH, self.mean * (1 - self.mean) / (own + error**2) - 1))

    def draws(self, random: np.random.Generator, n: int) -> Floats:
        """Returns (n,) draws."""
        if self.is_certain:
            return np.full(n, self.mean)
        return random.beta(self.mean * self.strength, (1 - self.mean) * self.strength, n)


@dataclass(frozen=True)
class Posterior:
    """The posterior of one task in one execution mode.

    The deviations are standard deviations of its *mean* cost and *mean* time, 0 where they are certain. `paid_by_time`:
    its cost is its time at a price, so that both are one draw.
    """

    p: BetaDistribution
    q: BetaDistribution
    cost_deviation_usd: float = 0.0
    duration_deviation_ms: float = 0.0
    paid_by_time: bool = False


@dataclass(frozen=True)
class Interval:
    """The 5th and the 95th percentile of a Reward in dollars."""

    p05: float
    p95: float


@dataclass(frozen=True)
class Draws:
    """How a Reward is drawn: the seed, the number n of draws, and how success is inferred (`evaluate_batch`)."""

    seed: int
    n: int = _DRAWS
    inference: Literal["product", "exact"] = "exact"


def worth_draws(workflow: Workflow, posteriors: Mapping[str, Posterior], cost: Cost, draws: Draws) -> Floats:
    """Returns (n,) draws of `Batch.worth`: Rewards, EVAL (7), or success probabilities without a stated gain.

    `posteriors` are by node; a node without one is certain. Costs and times are log-normal. Raises WorkflowError where
    exact inference is too wide.
    """
    seed, n = draws.seed, draws.n
    figures = Figures.of(workflow, cost)
    tasks = workflow.tasks
    if not any(task.id in posteriors for task in tasks):
        return np.full(n, evaluate_batch(workflow, figures, cost, draws.inference).worth[0])
    drawn = [_drawn(_Drawn.of(task), posteriors.get(task.id), seed, n) for task in tasks]
    timed = cost.usd_per_hour_of_duration > 0 or any(weights_held(cost).values())
    p, q, spent, *took = (np.stack(column).T for column in zip(*(d if timed else d[:3] for d in drawn), strict=True))
    further = figures.cost_usd - np.array([[t.cost_usd for t in tasks]])
    none = np.zeros_like(figures.imputed_usd)  # imputed costs are part of the drawn costs
    took_ms = took[0] if timed else figures.duration_ms
    figures = replace(figures, p=p, q=q, cost_usd=spent + further, duration_ms=took_ms, imputed_usd=none)
    return evaluate_batch(workflow, figures, cost, draws.inference).worth


def middle_interval(draws: Floats) -> Interval:
    """Returns the central 90 % of the draws."""
    low, high = np.quantile(draws, [0.05, 0.95])
    return Interval(float(low), float(high))


def p_better(first: Floats, second: Floats, quantum: float = 0.0, tie_share: float = 0.5) -> float:
    """Returns the share of draws in which the first workflow earns more.

    A draw in which both earn the same counts `tie_share`. Two Rewards are the same where they are equal to the last
    bit, or in one step of the quantum, as EVAL (13) compares them.
    """
    if quantum:
        first, second = np.rint(first / quantum), np.rint(second / quantum)
    return float(np.mean(first > second) + np.mean(first == second) * tie_share)


@dataclass(frozen=True)
class _Drawn:
    """All that the draws of a task depend on except its posterior; the cost includes the imputed dollars."""

    mode: tuple[str | None, ...]
    p: float
    q: float
    cost_usd: float
    duration_ms: float

    @classmethod
    def of(cls, task: TaskNode) -> "_Drawn":
        mode = task.task_id, task.actor_kind, task.model, task.actor_group
        return cls(mode, task.p, task.q, task.cost_usd + task.imputed_usd, task.duration_ms)


@lru_cache(_CACHED_TASKS)
def _drawn(task: _Drawn, posterior: Posterior | None, seed: int, n: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Returns p, q, cost and time, each (n,) and read-only."""
    if posterior is None:
        columns = tuple(np.full(n, value) for value in (task.p, task.q, task.cost_usd, task.duration_ms))
    else:
        random = np.random.default_rng(int(digest("reward", seed, task.mode)[:12], 16))
        p, q = posterior.p.draws(random, n), posterior.q.draws(random, n)
        took = _log_normal(task.duration_ms, posterior.duration_deviation_ms, random, n)
        if posterior.paid_by_time and task.duration_ms > 0:
            columns = p, q, took * (task.cost_usd / task.duration_ms), took
        else:
            columns = p, q, _log_normal(task.cost_usd, posterior.cost_deviation_usd, random, n), took
    for values in columns:
        values.setflags(write=False)
    return columns  # type: ignore[return-value]


def _log_normal(mean: float, deviation: float, random: np.random.Generator, n: int) -> Floats:
    if mean <= 0 or deviation <= 0:
        return np.full(n, mean)
    sigma2 = math.log1p((deviation / mean) ** 2)
    return random.lognormal(math.log(mean) - sigma2 / 2, math.sqrt(sigma2), n)
