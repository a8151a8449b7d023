"""The ranked workflows, for `opus best`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import duckdb

from opus_pipelines.errors import LakeError
from opus_pipelines.query.sql import select
from opus_pipelines.query.words import hours, number

COLUMNS = ("intake", "rank", "workflow", "reward $", "success", "cost $", "history $", "time", "history", "observed", "verdict", "steps")


def ranked(
    connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None, intake: str | None, top: int | None
) -> duckdb.DuckDBPyRelation:
    """One row a ranked workflow down to rank `top`; raises LakeError naming what there is when the filter leaves none."""
    found = select(connection, "ranked", client=client, contract=contract, intake=intake, top=top)
    if not found.limit(1).fetchall():
        there = connection.sql("SELECT client || ' / ' || contract FROM current_results ORDER BY ALL").fetchall()
        raise LakeError(
            "no ranked workflows for that; there are results of: " + ", ".join(name for (name,) in there)
            if there else "no ranked workflows yet; `opus generate` makes them"
        )
    return found


def by_contract(found: duckdb.DuckDBPyRelation) -> Iterator[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]]:
    """(title, columns, rows) a contract, as a person reads them."""
    all_rows = (dict(zip(found.columns, row, strict=True)) for row in found.fetchall())
    for (client, contract), group in groupby(all_rows, key=lambda r: (r["client"], r["contract"])):
        yield f"{client} / {contract}", COLUMNS, [_row(r) for r in group]


def _row(r: dict[str, Any]) -> tuple[Any, ...]:
    return (
        r["intake"] if r["rank"] == 1 else "", r["rank"], r["workflow_id"],
        number(r["reward_usd"]), number(r["success_probability"], 3), number(r["cost_usd"]), number(r["baseline_cost_usd"]),
        hours(r["duration_ms"]), hours(r["baseline_duration_ms"]), number(r["observed_share"]),
        r["verdict"] if r["feasible"] else "infeasible: " + "; ".join(r["violations"] or ["?"]),
        " > ".join(r["steps"] or []),
    )
