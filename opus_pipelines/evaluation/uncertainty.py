"""How sure a Reward is: drawn from what is believed of p, q and cost of each task, seeded, many draws in one pass.

What two workflows do alike they do alike in every draw: a task done in one way has one draw for all of them, so that
the probability that one beats the other rests on their differences alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.evaluation.batch import Figures, Floats, evaluate_batch
from opus_pipelines.ids import digest
from opus_pipelines.settings import Cost
from opus_pipelines.workflow.model import TaskNode, Workflow

DRAWS = 2_000
Z = 1.959963984540054           # normal quantile at 97.5 %
LEAST_STRENGTH = 2.0  # of a Beta: the uniform distribution's; less would be two peaks at 0 and 1


@dataclass(frozen=True)
class Share:
    """A probability with its 95 % interval."""

    value: float
    lower: float
    upper: float

    def draws(self, random: np.random.Generator, n: int) -> Floats:
        """From the Beta of this mean and of the interval's width; the value itself where it is 0 or 1, or the interval has no width."""
        deviation = (self.upper - self.lower) / (2 * Z)
        if not 0 < self.value < 1 or deviation <= 0:
            return np.full(n, self.value)
        strength = max(LEAST_STRENGTH, self.value * (1 - self.value) / deviation**2 - 1)
        return random.beta(self.value * strength, (1 - self.value) * strength, n)


@dataclass(frozen=True)
class Belief:
    """What is believed of one task done in one way. `cost_deviation_usd`: standard deviation of its mean cost, 0 where that is sure."""

    p: Share
    q: Share
    cost_deviation_usd: float = 0.0


@dataclass(frozen=True)
class Interval:
    """The 5th and the 95th percentile of a Reward in dollars."""

    p05: float
    p95: float


def reward_draws(workflow: Workflow, beliefs: Mapping[str, Belief], cost: Cost, seed: int, n: int = DRAWS) -> Floats:
    """n Rewards, EVAL (7), of the workflow; `beliefs` by node, a node without one is taken as sure. Costs are drawn log-normal."""
    columns = [_drawn(task, beliefs.get(task.id), seed, n) for task in workflow.tasks]
    figures = Figures.of(workflow, cost)
    if columns:
        p, q, spent = (np.column_stack(c) for c in zip(*columns, strict=True))
        further = figures.cost_usd - np.array([[t.cost_usd for t in workflow.tasks]])
        figures = replace(figures, p=p, q=q, cost_usd=spent + further)
    found = evaluate_batch(workflow, figures, cost).reward_usd
    return found if len(found) == n else np.full(n, found[0])


def interval(draws: Floats) -> Interval:
    """The central 90 %."""
    low, high = np.quantile(draws, [0.05, 0.95])
    return Interval(float(low), float(high))


def beats(first: Floats, second: Floats) -> float:
    """The share of draws in which the first earns more; draws in which they earn the same count half."""
    return float(np.mean(first > second) + np.mean(first == second) / 2)


def _drawn(task: TaskNode, belief: Belief | None, seed: int, n: int) -> tuple[Floats, Floats, Floats]:
    if belief is None:
        return np.full(n, task.p), np.full(n, task.q), np.full(n, task.cost_usd)
    random = np.random.default_rng(int(digest("reward", seed, task.task_id, task.actor_kind, task.model)[:12], 16))
    return belief.p.draws(random, n), belief.q.draws(random, n), _costs(task.cost_usd, belief.cost_deviation_usd, random, n)


def _costs(mean: float, deviation: float, random: np.random.Generator, n: int) -> Floats:
    if mean <= 0 or deviation <= 0:
        return np.full(n, mean)
    sigma2 = math.log1p((deviation / mean) ** 2)
    return random.lognormal(math.log(mean) - sigma2 / 2, math.sqrt(sigma2), n)
