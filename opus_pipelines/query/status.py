"""What the lake holds now, what is stale, and what failed, for `opus status`."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import duckdb

from opus_pipelines.lake import Lake
from opus_pipelines.query.run_reasons import failure_reason
from opus_pipelines.query.sql import select

Block = tuple[str, list[str], list[tuple[Any, ...]]]
Changes = Mapping[tuple[str, str], Sequence[str]]


def contracts(connection: duckdb.DuckDBPyConnection, changes: Changes | None = None) -> duckdb.DuckDBPyRelation:
    """One row a contract with a result or a folder. `changes`: by client and contract what changed since the result was made; None where
    no folder was looked at."""
    rows = None if changes is None else [{"client": a, "contract": b, "changed": list(found)} for (a, b), found in changes.items()]
    return select(connection, "contracts", changes=None if rows is None else json.dumps(rows))


def report(connection: duckdb.DuckDBPyConnection, lake: Lake, changes: Changes | None = None) -> Iterator[Block]:
    """(title, columns, rows) of each block; an empty one says so in its title. `changes`: as in `contracts`."""
    left = ", ".join(lake.rolled_back_from())
    held = f" (rolled back from {left}: `opus rebuild --publish` publishes it again)" if left else ""
    yield _block(f"Lake {lake.root}: snapshot{held}", select(connection, "snapshot"), "none yet; `opus rebuild` makes one")
    yield _block("Sources", select(connection, "sources"), "none read yet")
    yield _block("Contracts", contracts(connection, changes), "no results yet; `opus generate` makes them")
    yield _block("What could not be used", select(connection, "failures"), "nothing")
    runs = last_runs(lake)
    yield "Last runs" + ("" if runs else ": none"), ["job", "status", "started", "seconds", "run", "reason"], runs


def last_runs(lake: Lake) -> list[tuple[Any, ...]]:
    """The five latest runs of Dagster's own record, read without Dagster, a failed one with its reason; empty before the first."""
    path = lake.dagster_home / "history" / "runs.db"
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as runs:
        found = runs.execute("SELECT pipeline_name, status, start_time, end_time, run_id FROM runs ORDER BY id DESC LIMIT 5").fetchall()
    return [
        (job, status.lower(), _time(start), _seconds(start, end), run, failure_reason(lake, run) if status == "FAILURE" else None)
        for job, status, start, end, run in found
    ]


def has_unfinished_runs(lake: Lake) -> bool:
    """Does Dagster's record know a run that has not ended: one under way now, or one whose process died?"""
    path = lake.dagster_home / "history" / "runs.db"
    if not path.is_file():
        return False
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as runs:
        unfinished = "('NOT_STARTED', 'STARTING', 'STARTED', 'CANCELING')"
        return bool(runs.execute(f"SELECT 1 FROM runs WHERE status IN {unfinished} LIMIT 1").fetchall())


def _block(title: str, found: duckdb.DuckDBPyRelation, nothing: str) -> Block:
    rows = found.fetchall()
    return title if rows else f"{title}: {nothing}", found.columns, rows


def _seconds(start: float | None, end: float | None) -> float | None:
    return round(end - start, 1) if start and end else None


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
