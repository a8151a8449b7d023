"""A contract's report tables, made from the tables of its workflows."""

import pyarrow as pa

from opus_pipelines.generation.contract import ContractResult, result_table
from opus_pipelines.generation.results.staged import columns_of
from opus_pipelines.reports import cost, reward
from opus_pipelines.schemas import COST_REPORT, OPTIMIZED, REWARD_REPORT, WORKFLOW_TASKS, Dataset


def report_tables(result: ContractResult, clear_share: float) -> dict[str, pa.Table]:
    """`reports/cost` and `reports/reward` of a contract's result, by dataset name."""
    best = _rows(result, OPTIMIZED, cost.OPTIMIZED_COLUMNS)
    costs = cost.cost_rows(best, _rows(result, WORKFLOW_TASKS, cost.TASK_COLUMNS))
    rewards = reward.reward_rows(_rows(result, OPTIMIZED, reward.COLUMNS), clear_share)
    return {
        COST_REPORT.name: result_table(result, COST_REPORT, costs), REWARD_REPORT.name: result_table(result, REWARD_REPORT, rewards),
    }


def _rows(result: ContractResult, dataset: Dataset, columns: tuple[str, ...]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = columns_of(result.tables, dataset.name, columns).to_pylist()
    return rows
