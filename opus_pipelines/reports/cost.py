"""reports/cost: where a contract's money goes, task by task over its rank-1 workflows, against what history paid."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from opus_pipelines.evaluation.assumed import assumed_of
from opus_pipelines.generation.results.rows import Row
from opus_pipelines.optimization.baseline import total

OPTIMIZED_COLUMNS = ("workflow_id", "rank")
TASK_COLUMNS = (
    "workflow_id", "kind", "task_id", "title", "cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "duration_ms",
    "baseline_cost_usd", "saving_usd", "actor_kind", "p_basis", "q_basis", "cost_basis", "duration_basis",
)
_SUMMED = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "duration_ms", "saving_usd")
_BASES = ("p_basis", "q_basis", "cost_basis", "duration_basis")


def cost_rows(optimized: Iterable[Row], tasks: Iterable[Row]) -> list[Row]:
    """A row a task that stands in some rank-1 workflow, from rows of workflows/optimized and workflows/tasks (`*_COLUMNS`).

    Costs, times and savings are sums of what is known over those workflows, exactly rounded: they depend on no order. Baselines are summed
    over the steps that have a saving, so that a saving is its baseline less the cost of these steps (`optimization.baseline`). Reviews
    that were placed are of no task: they make one row, `review`.
    """
    best = {row["workflow_id"] for row in optimized if row["rank"] == 1}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in tasks:
        if row["kind"] in ("task", "review") and row["workflow_id"] in best:
            found[row["task_id"] or row["kind"]].append(row)
    whole = total(row["cost_usd"] for rows in found.values() for row in rows)
    return [_row(task, rows, whole) for task, rows in sorted(found.items())]


def _row(task: str, rows: Sequence[Row], whole: float | None) -> Row:
    sums = {name: total(row[name] for row in rows) for name in _SUMMED}
    compared = [row["baseline_cost_usd"] for row in rows if row["saving_usd"] is not None]
    beside = assumed_of(
        ((row["cost_usd"], row["cost_basis"]) for row in rows), ((row["duration_ms"], row["duration_basis"]) for row in rows)
    )
    bases = [row[name] for row in rows for name in _BASES]
    return sums | beside.row() | {
        "task_id": task, "title": "Reviews" if task == "review" else min(row["title"] for row in rows),
        "workflows": len({row["workflow_id"] for row in rows}),
        "share": sums["cost_usd"] / whole if whole and sums["cost_usd"] is not None else None,
        "baseline_cost_usd": total(compared), "compared_steps": len(compared),
        "observed_share": bases.count("observed") / len(bases),
    }
