"""Computes the baseline: how similar cases of history carried out this kind of work, and what they paid.

A saving is defined once, for a step, and added up from there. The compared cases are the nearest similar cases.

- The baseline of a step is the mean amount that a compared case paid for its task, repetitions included; it is 0 where
  no compared case did the task.
- The saving of a step is its baseline less its cost. It is unknown where one of the two is unknown. The price of time
  and of held resources is part of no saving.
- The saving of a workflow is the sum over its steps. The saving of a contract is the sum over its rank-1 workflows.
  Tasks, workflows, contracts and the shipped queries therefore add up the same numbers. A step of history that a
  workflow leaves out is not a saving of the workflow.

`Baseline` also gives the median cost and duration of a whole case. These medians are part of no saving.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from opus_pipelines.core.ids import SameSettings
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.node_cost import Price, price_of
from opus_pipelines.workflow.evaluation.cost import time_usd
from opus_pipelines.workflow.model import Actor

# cases whose prices are kept, 1 kB each: most intakes of a contract are compared with the same ones
_CASES_KEPT = 10_000


class CaseFigures(NamedTuple):
    """The figures of the tasks of a case, in their order."""

    costs_usd: tuple[float | None, ...]
    actor_kinds: tuple[str | None, ...]
    models: tuple[str | None, ...]
    times_ms: tuple[float | None, ...]
    actor_groups: tuple[str | None, ...]


@dataclass(frozen=True)
class Baseline:
    """The medians over the whole nearest cases and their success rate; None where no case states the figure."""

    cost_usd: float | None = None
    duration_ms: float | None = None
    success: float | None = None


def baseline(cases: Iterable[Mapping[str, Any]], settings: Cost) -> Baseline:
    """Returns the baseline of rows of wkg/cases.

    The rows have `task_cost_usd`, `task_duration_ms` and `success`, and `actor_kinds` where it is known. EVAL (5) gives
    the cost of each case as the chain of its tasks, rework included: Σ costs + w_d · Σ durations, at stated prices
    where history has no cost.

    A case with an unknown cost or time is left out of that median, because a partial sum is not the cost of a case.
    History does not record held resources, so ⟨w_r, R^(r)⟩ is left out. Cases without tasks are ignored.
    """
    rows = [row for row in cases if row["task_cost_usd"]]
    stated = SameSettings.of(settings)
    prices = [_prices(row, stated) for row in rows]
    times = [
        sum(known)
        for case_prices in prices
        if len(known := [p.duration_ms for p in case_prices if p.duration_ms is not None]) == len(case_prices)
    ]
    known_outcomes = [bool(row["success"]) for row in rows if row["success"] is not None]
    costs = [cost for case_prices in prices if (cost := _case_usd(case_prices, settings)) is not None]
    return Baseline(
        statistics.median(costs) if costs else None,
        statistics.median(times) if times else None,
        statistics.fmean(known_outcomes) if known_outcomes else None,
    )


@dataclass(frozen=True)
class TaskBaselines:
    """The mean amount in dollars that a compared case paid for each task; `compared` counts the cases."""

    usd: Mapping[str, float | None]
    compared: int

    def of(self, task: str | None) -> float | None:
        """Returns the dollars per case for a task, 0.0 where no compared case did it.

        Returns None where the amount is unknown, or where there is no case to compare with.
        """
        if not self.compared:
            return None
        return self.usd.get(task, 0.0) if task is not None else 0.0


def task_baselines(cases: Collection[Mapping[str, Any]], settings: Cost | None = None) -> TaskBaselines:
    """Returns what a case paid on average for each task, repetitions included.

    The rows have `tasks`, `task_cost_usd` and `task_duration_ms`, and the actors of each task (`actor_kinds`, `models`,
    `actor_groups`), so that both sides of a saving use the same stated prices.

    Where the cost of a task is known for some of its occurrences only, the mean of these occurrences stands for the
    others.
    """
    done: dict[str, list[float | None]] = {}
    stated = SameSettings.of(settings or Cost())
    for case in cases:
        for task, price in zip(case["tasks"], _prices(case, stated), strict=True):
            done.setdefault(task, []).append(price.cost_usd)
    return TaskBaselines({task: _mean(costs, len(cases)) for task, costs in done.items()}, len(cases))


def saving_usd(baseline_usd: float | None, cost_usd: float | None) -> float | None:
    """Returns the saving of one step in dollars; None where one of the two amounts is unknown."""
    return None if baseline_usd is None or cost_usd is None else baseline_usd - cost_usd


def total(figures: Iterable[float | None]) -> float | None:
    """Returns the exactly rounded sum of the known figures; None where no figure is known."""
    known = [x for x in figures if x is not None]
    return math.fsum(known) if known else None


def _mean(costs: list[float | None], cases: int) -> float | None:
    known = [x for x in costs if x is not None]
    return math.fsum(known) * (len(costs) / len(known)) / cases if known else None


def _prices(row: Mapping[str, Any], stated: SameSettings[Cost]) -> tuple[Price, ...]:
    costs = tuple(row["task_cost_usd"])
    nothing = (None,) * len(costs)
    others = (tuple(row.get(name) or nothing) for name in ("actor_kinds", "models", "task_duration_ms", "actor_groups"))
    return _prices_of(CaseFigures(costs, *others), stated)


@lru_cache(_CASES_KEPT)
def _prices_of(case: CaseFigures, stated: SameSettings[Cost]) -> tuple[Price, ...]:
    """Returns the price of each task of a case."""
    return tuple(
        price_of(Actor(kind, model, group), cost, ms, stated.settings)
        for cost, kind, model, ms, group in zip(*case, strict=True)
    )


def _case_usd(prices: Sequence[Price], settings: Cost) -> float | None:
    """Returns the cost of a whole case; None where a part of it is unknown."""
    costs = [p.cost_usd for p in prices if p.cost_usd is not None]
    times = [p.duration_ms for p in prices if p.duration_ms is not None]
    if len(costs) < len(prices) or (settings.usd_per_hour_of_duration and len(times) < len(prices)):
        return None
    return sum(costs) + time_usd(sum(times), settings)
