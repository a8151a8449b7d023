"""How this kind of work was carried out in history: what a generated workflow is held against.

One definition of a saving, from the step up: the nearest cases are the compared cases, the steps of the workflow the
compared steps.
- The baseline of a step is what a compared case paid for its task on average, repetitions included; 0 where none of
  them did it.
- The saving of a step is its baseline less its cost; unknown where one of the two is. Time at a price, and what is
  held, are in no saving.
- The saving of a workflow is the sum over its steps, that of a contract the sum over its rank-1 workflows: tasks,
  workflows, contracts and
  the shipped queries all add up the same numbers. Steps of history that a workflow leaves out are no saving of it.
What a whole case cost and took stands beside it as a median (`Baseline`); it has no part in any saving.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opus_pipelines.core.settings import Cost
from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.optimization.node_cost import Price, price_of


@dataclass(frozen=True)
class Baseline:
    """Medians over the whole nearest cases, and their rate of success; None where no case tells."""

    cost_usd: float | None = None
    duration_ms: float | None = None
    success: float | None = None


def baseline(cases: Iterable[Mapping[str, Any]], settings: Cost) -> Baseline:
    """The baseline of rows of wkg/cases (`task_cost_usd`, `task_duration_ms`, `success`; `actor_kinds` where known).

    Each case is costed by EVAL (5) as the chain of tasks that it was, rework included: Σ costs + w_d · Σ durations, at
    stated prices where history has no cost. A case of which a cost, or a time, stays unknown is left out of that
    median: a part of it is no case's cost. What a case held is not recorded, so ⟨w_r, R^(r)⟩ is left out. Cases without
    tasks do not count.
    """
    rows = [row for row in cases if row["task_cost_usd"]]
    prices = [_prices(row, settings) for row in rows]
    times = [
        sum(known)
        for found in prices
        if len(known := [p.duration_ms for p in found if p.duration_ms is not None]) == len(found)
    ]
    known_outcomes = [bool(row["success"]) for row in rows if row["success"] is not None]
    costs = [cost for found in prices if (cost := _case_usd(found, settings)) is not None]
    return Baseline(
        statistics.median(costs) if costs else None,
        statistics.median(times) if times else None,
        statistics.fmean(known_outcomes) if known_outcomes else None,
    )


@dataclass(frozen=True)
class Paid:
    """What the compared cases paid for each task, in dollars a case."""

    usd: Mapping[str, float | None]
    compared: int

    def of(self, task: str | None) -> float | None:
        """Of a task: None where it is unknown, or where there is no case to compare with; 0.0 where no compared case
        did it.
        """
        if not self.compared:
            return None
        return self.usd.get(task, 0.0) if task is not None else 0.0


def paid(cases: Collection[Mapping[str, Any]], settings: Cost | None = None) -> Paid:
    """What a case paid for each task, repetitions included; rows have `tasks`, `task_cost_usd`, `task_duration_ms`,
    and who did each (`actor_kinds`, `models`, `actor_groups`), so that stated prices are the same on both sides of
    a saving.

    Where a task's cost is known of some of its occurrences alone, these stand for the others: their mean, times how
    often it was done.
    """
    done: dict[str, list[float | None]] = {}
    for case in cases:
        for task, price in zip(case["tasks"], _prices(case, settings or Cost()), strict=True):
            done.setdefault(task, []).append(price.cost_usd)
    return Paid({task: _mean(found, len(cases)) for task, found in done.items()}, len(cases))


def saving_usd(baseline_usd: float | None, cost_usd: float | None) -> float | None:
    """The saving of one step; None where one of the two is unknown."""
    return None if baseline_usd is None or cost_usd is None else baseline_usd - cost_usd


def total(figures: Iterable[float | None]) -> float | None:
    """The sum of what is known, exactly rounded; None where nothing is."""
    known = [x for x in figures if x is not None]
    return math.fsum(known) if known else None


def _mean(found: list[float | None], cases: int) -> float | None:
    known = [x for x in found if x is not None]
    return math.fsum(known) * (len(found) / len(known)) / cases if known else None


def _prices(row: Mapping[str, Any], settings: Cost) -> list[Price]:
    costs = row["task_cost_usd"]
    nothing = [None] * len(costs)
    others = [row.get(name) or nothing for name in ("actor_kinds", "models", "task_duration_ms", "actor_groups")]
    return [
        price_of(kind, model, cost, ms, settings, group)
        for cost, kind, model, ms, group in zip(costs, *others, strict=True)
    ]


def _case_usd(found: list[Price], settings: Cost) -> float | None:
    """What a whole case cost; None where a part of it is unknown."""
    costs = [p.cost_usd for p in found if p.cost_usd is not None]
    times = [p.duration_ms for p in found if p.duration_ms is not None]
    if len(costs) < len(found) or (settings.usd_per_hour_of_duration and len(times) < len(found)):
        return None
    return sum(costs) + time_usd(sum(times), settings)
