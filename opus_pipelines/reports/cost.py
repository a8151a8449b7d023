"""reports/cost: where a contract's money goes, task by task over its rank-1 workflows, against what history paid."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from opus_pipelines.generation.results.rows import Row

OPTIMIZED_COLUMNS = ("workflow_id", "rank")
TASK_COLUMNS = (
    "workflow_id", "kind", "task_id", "title", "cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "duration_ms",
    "baseline_cost_usd", "actor_kind", "p_basis", "q_basis", "cost_basis", "duration_basis",
)
_SUMMED = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "duration_ms")
_BASES = ("p_basis", "q_basis", "cost_basis", "duration_basis")


def cost_rows(optimized: Iterable[Row], tasks: Iterable[Row]) -> list[Row]:
    """A row a task that stands in some rank-1 workflow, from rows of workflows/optimized and workflows/tasks (`*_COLUMNS`).

    Costs and durations are sums over those workflows, exactly rounded: they depend on no order. Reviews that were placed are of no task:
    they make one row, `review`.
    """
    best = {row["workflow_id"] for row in optimized if row["rank"] == 1}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in tasks:
        if row["kind"] in ("task", "review") and row["workflow_id"] in best:
            found[row["task_id"] or row["kind"]].append(row)
    total = math.fsum(row["cost_usd"] for rows in found.values() for row in rows)
    return [_row(task, rows, total) for task, rows in sorted(found.items())]


def _row(task: str, rows: Sequence[Row], total: float) -> Row:
    sums = {name: math.fsum(row[name] or 0.0 for row in rows) for name in _SUMMED}
    paid = [row["baseline_cost_usd"] for row in rows]
    baseline = None if None in paid else math.fsum(paid)
    bases = [row[name] for row in rows for name in _BASES]
    return sums | {
        "task_id": task, "title": "Reviews" if task == "review" else min(row["title"] for row in rows),
        "workflows": len({row["workflow_id"] for row in rows}),
        "share": sums["cost_usd"] / total if total else None, "baseline_cost_usd": baseline,
        "saving_usd": None if baseline is None else baseline - sums["cost_usd"],
        "observed_share": bases.count("observed") / len(bases),
    }
