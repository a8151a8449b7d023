"""A contract's report tables, made from the same records as its workflows."""

import pyarrow as pa

from opus_pipelines.generation.contract import ContractResult, result_table
from opus_pipelines.reports.cost import cost_rows
from opus_pipelines.reports.reward import reward_rows
from opus_pipelines.schemas import COST_REPORT, REWARD_REPORT


def report_tables(result: ContractResult) -> dict[str, pa.Table]:
    """`reports/cost` and `reports/reward` of a contract's result, by dataset name."""
    return {
        COST_REPORT.name: result_table(result, COST_REPORT, cost_rows(result.made)),
        REWARD_REPORT.name: result_table(result, REWARD_REPORT, reward_rows(result.made)),
    }
