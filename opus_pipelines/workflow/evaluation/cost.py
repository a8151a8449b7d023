"""Computes schedule and cost of a workflow, and which share of them is assumed.

The schedule is as soon as possible: start and finish (16), (17), duration (2), and peaks (3), (18) of EVAL. The cost
C(W) of EVAL (5) has consumed resources by actor kind, time, and held resources. The assumed share and the number of
steps with an unknown figure stand next to every total; a success probability is unknown where no outcome of any of its
steps was ever observed.
"""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.workflow.model import UNKNOWN, TaskNode, Workflow


@dataclass(frozen=True)
class Schedule:
    """The start and finish of each node, in ms from the workflow's start; inputs and outputs take no time."""

    start_ms: dict[str, float]
    finish_ms: dict[str, float]

    @property
    def duration_ms(self) -> float:
        """D(W), EVAL (2), in ms: the longest path, which is the last finish."""
        return max(self.finish_ms.values(), default=0.0)


@dataclass(frozen=True)
class Peaks:
    """R^(r)(W), EVAL (3): the largest amount of each resource that is held at one moment, by name."""

    held: Mapping[str, float]

    @property
    def memory_gb(self) -> float:
        """The peak of memory in gigabytes."""
        return self.held.get("memory_gb", 0.0)

    @property
    def threads(self) -> float:
        """The peak number of threads."""
        return self.held.get("threads", 0.0)


def schedule(workflow: Workflow) -> Schedule:
    """Schedules every node as soon as its parents have finished, EVAL (16), (17)."""
    start: dict[str, float] = {}
    finish: dict[str, float] = {}
    for node in workflow.topological():
        data = workflow.by_id[node]
        start[node] = max((finish[u] for u in workflow.predecessors(node)), default=0.0)
        finish[node] = start[node] + (data.duration_ms if isinstance(data, TaskNode) else 0.0)
    return Schedule(start, finish)


def known_schedule(workflow: Workflow) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Returns start and finish of every node as `schedule` does; None from the first step of unknown duration on."""
    start: dict[str, float | None] = {}
    finish: dict[str, float | None] = {}
    for node in workflow.topological():
        data = workflow.by_id[node]
        before = [finish[u] for u in workflow.predecessors(node)]
        known = [at for at in before if at is not None]
        took = data.known_duration_ms if isinstance(data, TaskNode) else 0.0
        start[node] = begins = max(known, default=0.0) if len(known) == len(before) else None
        finish[node] = None if begins is None or took is None else begins + took
    return start, finish


def peaks(workflow: Workflow, times: Schedule | None = None) -> Peaks:
    """Returns the componentwise maximum of EVAL (3) over the active sets (18), in O(n log n) with a heap of finishes.

    Intervals are half open: a task that finishes at t releases its resources before a task that starts at t holds its
    own, and a task without duration holds nothing.
    """
    times = schedule(workflow) if times is None else times
    start, finish = times.start_ms, times.finish_ms
    active = sorted((t for t in workflow.tasks if finish[t.id] > start[t.id]), key=lambda t: (start[t.id], t.id))
    running: list[tuple[float, str]] = []
    by_id = {t.id: t for t in active}
    names = sorted({name for task in active for name in task.held})
    now, best = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for position, task in enumerate(active):
        while running and running[0][0] <= start[task.id]:
            for name, amount in by_id[heapq.heappop(running)[1]].held.items():
                now[name] -= amount
        if not running:
            now = dict.fromkeys(names, 0.0)  # what rounding left behind
        heapq.heappush(running, (finish[task.id], task.id))
        for name, amount in task.held.items():
            now[name] += amount
        if position + 1 == len(active) or start[active[position + 1].id] > start[task.id]:
            best = {name: max(best[name], now[name]) for name in names}
    return Peaks(best)


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


ASSUMED = frozenset(
    {"prior", "estimated", "declared"}
)  # bases of figures that were neither observed nor an observed time at a stated price


@dataclass(frozen=True)
class AssumedShares:
    """The assumed share of the known part of a total (None where nothing is known), and its steps of unknown figure."""

    cost_assumed_share: float | None
    cost_unknown_steps: int
    duration_assumed_share: float | None
    duration_unknown_steps: int

    def row(self) -> dict[str, float | int | None]:
        """Returns the fields as columns of a table."""
        return asdict(self)


def assumed(tasks: Iterable[TaskNode]) -> AssumedShares:
    """Returns the assumed shares of the steps of a workflow, reviews included."""
    steps = list(tasks)
    return assumed_of(
        ((t.known_cost_usd, t.cost_basis) for t in steps), ((t.known_duration_ms, t.duration_basis) for t in steps)
    )


def assumed_of(
    costs: Iterable[tuple[float | None, str | None]], times: Iterable[tuple[float | None, str | None]]
) -> AssumedShares:
    """Returns the assumed shares of figures with their bases; a figure of None is unknown."""
    return AssumedShares(*_share(costs), *_share(times))


def total_usd(tasks: Iterable[TaskNode], total: float) -> float | None:
    """Returns the total; None where no step has a known cost and nothing else was added, because unknown is not 0."""
    steps = list(tasks)
    return None if steps and not total and all(t.cost_basis == UNKNOWN for t in steps) else total


def total_ms(tasks: Iterable[TaskNode], total: float) -> float | None:
    """Returns the total duration; None where no step has a known duration and nothing else was added."""
    steps = list(tasks)
    return None if steps and not total and all(t.duration_basis == UNKNOWN for t in steps) else total


def known_success(tasks: Iterable[TaskNode], success: float) -> float | None:
    """Returns the probability that a workflow of these steps succeeds.

    Returns None where the p of every step is a prior, because a product of priors is not an estimate.
    """
    steps = list(tasks)
    return None if steps and success_unknown_steps(steps) == len(steps) else success


def success_unknown_steps(tasks: Iterable[TaskNode]) -> int:
    """Returns how many steps have a p without an observed outcome."""
    return sum(task.p_basis == "prior" for task in tasks)


def _share(figures: Iterable[tuple[float | None, str | None]]) -> tuple[float | None, int]:
    """Returns the assumed share of the known total, and the number of unknown figures.

    Where the known total is 0, the share is that of the steps.
    """
    entries = list(figures)
    known = [(value, basis in ASSUMED) for value, basis in entries if value is not None]
    if not known:
        return None, len(entries)
    total = math.fsum(value for value, _ in known)
    part = math.fsum(value for value, is_assumed in known if is_assumed)
    share = min(1.0, part / total) if total > 0 else sum(is_assumed for _, is_assumed in known) / len(known)
    return share, len(entries) - len(known)
