"""How this kind of work was carried out in history: what a generated workflow is held against."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.optimization.cost import priced
from opus_pipelines.settings import Cost


@dataclass(frozen=True)
class Baseline:
    """Medians over the nearest cases, and their rate of success; None where no case tells."""

    cost_usd: float | None = None
    duration_ms: float | None = None
    success: float | None = None


def baseline(cases: Iterable[Mapping[str, Any]], settings: Cost) -> Baseline:
    """The baseline of rows of wkg/cases (`task_cost_usd`, `task_duration_ms`, `success`; `actor_kinds` where known).

    Each case is costed by EVAL (5) as the chain of tasks that it was, rework included: Σ costs + w_d · Σ durations, the settings' figures
    for what history does not know. What a case held is not recorded, so ⟨w_r, R^(r)⟩ is left out. Cases without tasks do not count.
    """
    rows = list(cases)
    costed = [_costed(row, settings) for row in rows if row["task_cost_usd"]]
    known = [bool(row["success"]) for row in rows if row["task_cost_usd"] and row["success"] is not None]
    if not costed:
        return Baseline()
    return Baseline(
        statistics.median(cost for cost, _ in costed),
        statistics.median(duration for _, duration in costed),
        statistics.fmean(known) if known else None,
    )


def paid(cases: Collection[Mapping[str, Any]]) -> dict[str, float]:
    """Mean dollars that a case paid for each task, repetitions included; a task for which none states a cost is left out.

    Rows have `tasks` and `task_cost_usd` in step.
    """
    costs: dict[str, list[float]] = {}
    for case in cases:
        for task, cost in zip(case["tasks"], case["task_cost_usd"], strict=True):
            if cost is not None:
                costs.setdefault(task, []).append(cost)
    return {task: math.fsum(found) / len(cases) for task, found in costs.items()}


def _costed(row: Mapping[str, Any], settings: Cost) -> tuple[float, float]:
    """Cost in dollars and duration in ms of one case."""
    costs, durations = row["task_cost_usd"], row["task_duration_ms"]
    kinds = row.get("actor_kinds") or [None] * len(costs)
    prices = [priced(kind, None, cost, ms, settings) for kind, cost, ms in zip(kinds, costs, durations, strict=True)]
    duration = sum(p.duration_ms for p in prices)
    return sum(p.cost_usd for p in prices) + time_usd(duration, settings), duration
