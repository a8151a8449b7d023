"""Computes a contract's report tables from the tables of its workflows.

reports/cost has the cost of each task over the contract's rank-1 workflows, compared with what history paid.
reports/reward has the Reward of each Intention's best workflow, compared with the second rank and with history.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa

from opus_pipelines.core.schemas import COST_REPORT, OPTIMIZED, REWARD_REPORT, WORKFLOW_TASKS, Dataset
from opus_pipelines.generation.results.contract import ContractResult, columns_of, result_table
from opus_pipelines.generation.results.rows import Row
from opus_pipelines.generation.search.costs import total
from opus_pipelines.workflow.evaluation.cost import assumed_of


def report_tables(result: ContractResult) -> dict[str, pa.Table]:
    """Returns `reports/cost` and `reports/reward` of a contract's result, by dataset name."""
    best = _rows(result, OPTIMIZED, OPTIMIZED_COLUMNS)
    costs = cost_rows(best, _rows(result, WORKFLOW_TASKS, TASK_COLUMNS))
    rewards = reward_rows(_rows(result, OPTIMIZED, _COLUMNS))
    return {
        COST_REPORT.name: result_table(result, COST_REPORT, costs),
        REWARD_REPORT.name: result_table(result, REWARD_REPORT, rewards),
    }


def _rows(result: ContractResult, dataset: Dataset, columns: tuple[str, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = columns_of(result.tables, dataset.name, columns).to_pylist()
    return rows


OPTIMIZED_COLUMNS = ("workflow_id", "rank")
TASK_COLUMNS = (
    "workflow_id",
    "kind",
    "task_id",
    "title",
    "cost_usd",
    "cost_compute_usd",
    "cost_model_usd",
    "cost_human_usd",
    "duration_ms",
    "baseline_cost_usd",
    "saving_usd",
    "actor_kind",
    "p_basis",
    "q_basis",
    "cost_basis",
    "duration_basis",
)
_SUMMED = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "duration_ms", "saving_usd")
_BASES = ("p_basis", "q_basis", "cost_basis", "duration_basis")


def cost_rows(optimized: Iterable[Row], tasks: Iterable[Row]) -> list[Row]:
    """Returns one row for each task of a rank-1 workflow, from rows of workflows/optimized and workflows/tasks.

    Costs, times and savings are sums of what is known over those workflows, exactly rounded, so they depend on no
    order. Baselines are summed over the steps that have a saving, so that a saving is its baseline less the cost of
    these steps (`generation.search.costs`). Placed reviews belong to no task and make one row, `review`.
    """
    best = {row["workflow_id"] for row in optimized if row["rank"] == 1}
    rows_of_task: dict[str, list[Row]] = defaultdict(list)
    for row in tasks:
        if row["kind"] in ("task", "review") and row["workflow_id"] in best:
            rows_of_task[row["task_id"] or row["kind"]].append(row)
    whole = total(row["cost_usd"] for rows in rows_of_task.values() for row in rows)
    return [_row(task, rows, whole) for task, rows in sorted(rows_of_task.items())]


def _row(task: str, rows: Sequence[Row], whole: float | None) -> Row:
    sums = {name: total(row[name] for row in rows) for name in _SUMMED}
    compared = [row["baseline_cost_usd"] for row in rows if row["saving_usd"] is not None]
    assumed = assumed_of(
        ((row["cost_usd"], row["cost_basis"]) for row in rows),
        ((row["duration_ms"], row["duration_basis"]) for row in rows),
    )
    bases = [row[name] for row in rows for name in _BASES]
    return (
        sums
        | assumed.row()
        | {
            "task_id": task,
            "title": "Reviews" if task == "review" else min(row["title"] for row in rows),
            "workflows": len({row["workflow_id"] for row in rows}),
            "share": sums["cost_usd"] / whole if whole and sums["cost_usd"] is not None else None,
            "baseline_cost_usd": total(compared),
            "compared_steps": len(compared),
            "observed_share": bases.count("observed") / len(bases),
        }
    )


_COLUMNS = (
    "intake_id",
    "intention_id",
    "rank",
    "reward_usd",
    "penalty",
    "feasible",
    "gain_usd",
    "case_cost_usd",
    "baseline_success",
    "tasks",
    "new_tasks",
    "cost_assumed_share",
    "cost_unknown_steps",
    "duration_unknown_steps",
    "verdict",
)


def reward_rows(optimized: Iterable[Row]) -> list[Row]:
    """Returns one row for each Intention, from rows of workflows/optimized (`_COLUMNS`); distance by EVAL (14)."""
    ranked: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in optimized:
        if row["rank"] <= 2:
            ranked[row["intention_id"]][row["rank"]] = row
    return [_reward_row(by_rank[1], by_rank.get(2)) for _, by_rank in sorted(ranked.items())]


def _reward_row(best: Row, second: Row | None) -> Row:
    known = all(best[name] is not None for name in ("gain_usd", "case_cost_usd", "baseline_success"))
    earned = best["gain_usd"] * best["baseline_success"] - best["case_cost_usd"] if known else None
    return {
        "intake_id": best["intake_id"],
        "intention_id": best["intention_id"],
        "reward_usd": best["reward_usd"],
        "penalty": best["penalty"],
        "rank2_reward_usd": second["reward_usd"] if second else None,
        "distance": abs(best["reward_usd"] - second["reward_usd"])
        if second and best["reward_usd"] is not None
        else None,
        **{name: best[name] for name in ("cost_assumed_share", "cost_unknown_steps", "duration_unknown_steps")},
        "baseline_reward_usd": earned,
        "uplift_usd": None if earned is None else best["reward_usd"] - earned,
        "feasible": best["feasible"],
        "wkg_coverage": 1 - best["new_tasks"] / best["tasks"] if best["tasks"] else None,
        "verdict": best["verdict"],
    }
