"""Computes the as-soon-as-possible schedule: start and finish (16), (17), duration (2), and peaks (3), (18)."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from opus_pipelines.workflow.model import TaskNode, Workflow


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
