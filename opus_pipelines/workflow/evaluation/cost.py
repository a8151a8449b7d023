"""Computes the cost C(W) of EVAL (5): consumed resources by actor kind, time, and held resources."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.workflow.evaluation.schedule import Peaks
from opus_pipelines.workflow.model import TaskNode, Workflow

MS_PER_HOUR = 3_600_000.0


class Parts(NamedTuple):
    """A cost in dollars, split into compute, model and human cost."""

    compute_usd: float
    model_usd: float
    human_usd: float


@dataclass(frozen=True)
class WorkflowCost:
    """C(W) of EVAL (5) in dollars; `cost_usd` adds the five parts from left to right, so they sum to it exactly."""

    cost_compute_usd: float
    cost_model_usd: float
    cost_human_usd: float
    cost_time_usd: float
    cost_held_usd: float

    @property
    def cost_usd(self) -> float:
        """The total."""
        return (
            self.cost_compute_usd + self.cost_model_usd + self.cost_human_usd + self.cost_time_usd + self.cost_held_usd
        )


def split_cost(
    cost_usd: float, compute: float | None, model: float | None, human: float | None, actor_kind: str | None
) -> Parts:
    """Splits `cost_usd` into compute, model and human cost.

    The amount that the known parts leave open counts to the part of the task's actor kind (human, model, else compute).
    Parts whose sum exceeds the total, as means over different cases can, are scaled down to it.
    """
    known = [part or 0.0 for part in (compute, model, human)]
    stated = math.fsum(known)
    if stated > cost_usd:
        return Parts(*(part * (cost_usd / stated) for part in known))
    known[{"model": 1, "human": 2}.get(actor_kind or "", 0)] += cost_usd - stated
    return Parts(*known)


def time_usd(duration_ms: float, settings: Cost) -> float:
    """Returns w_d times a duration, in dollars."""
    return settings.usd_per_hour_of_duration * duration_ms / MS_PER_HOUR


def workflow_cost(workflow: Workflow, duration_ms: float, held: Peaks, settings: Cost) -> WorkflowCost:
    """Returns C(W) = <w_g, R^(g)> + w_d D + <w_r, R^(r)>, EVAL (5), with (1) in dollars (w_g = 1).

    Other cumulative resources count to the compute part at their stated unit price; raises WorkflowError where one has
    no price.
    """
    parts = [
        split_cost(t.cost_usd, t.cost_compute_usd, t.cost_model_usd, t.cost_human_usd, t.actor_kind)
        for t in workflow.tasks
    ]
    consumed = [consumed_usd(task, settings) for task in workflow.tasks]
    weights = weights_held(settings)
    return WorkflowCost(
        math.fsum([*(p.compute_usd for p in parts), *consumed]),
        math.fsum(p.model_usd for p in parts),
        math.fsum(p.human_usd for p in parts),
        time_usd(duration_ms, settings),
        math.fsum(weights.get(name, 0.0) * amount for name, amount in held.held.items()),
    )


def consumed_usd(task: TaskNode, settings: Cost) -> float:
    """Returns the price of the other resources that a task consumes, without its `cost_usd`.

    Raises WorkflowError where a resource has no price in the settings.
    """
    return math.fsum(_price(name, settings) * amount for name, amount in task.consumes.items())


def weighed_usd(task: TaskNode, settings: Cost) -> float:
    """Returns the cost of a task where workflows are compared: all that it consumes, and its imputed dollars."""
    return task.cost_usd + consumed_usd(task, settings) + task.imputed_usd


def _price(name: str, settings: Cost) -> float:
    if name not in settings.usd_per_unit:
        raise WorkflowError(
            f"the resource {name!r} has no price: set cost.usd_per_unit.{name} in opus.toml (0 where it costs nothing)"
        )
    return settings.usd_per_unit[name]


def weights_held(settings: Cost) -> dict[str, float]:
    """Returns w_r of EVAL (5) by name; a resource without a weight costs nothing to hold."""
    return {"memory_gb": settings.usd_per_gb_held, "threads": settings.usd_per_thread_held, **settings.usd_per_held}
