"""The rows behind the contracts' pages."""

from collections.abc import Iterator

import duckdb

from opus_pipelines.errors import LakeError
from opus_pipelines.query.sql import rows
from opus_pipelines.query.workflows import read_workflow
from opus_pipelines.reports.page.contract import ContractPage, largest_intentions


def contract_pages(connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None) -> Iterator[ContractPage]:
    """A page a contract with a result; raises LakeError naming what there is when the filter leaves none."""
    heads = rows(connection, "page_head", client=client, contract=contract)
    if not heads:
        there = connection.sql("SELECT client || ' / ' || contract FROM current_results ORDER BY ALL").fetchall()
        raise LakeError(
            "no results for that; there are results of: " + ", ".join(name for (name,) in there)
            if there else "no results yet; `opus generate` makes them"
        )
    for head in heads:
        of = {"client": head["client"], "contract": head["contract"]}
        workflows = rows(connection, "page_workflows", **of)
        yield ContractPage(
            head, workflows, rows(connection, "page_costs", **of), rows(connection, "page_refused", **of),
            rows(connection, "page_sources", **of), {name: read_workflow(connection, name) for name in largest_intentions(workflows)},
            rows(connection, "page_left_out", **of), rows(connection, "page_rules", **of),
        )
