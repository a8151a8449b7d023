"""What the lake holds now, what is stale, and what failed, for `opus status`.

Why a run failed: one line, in the words of the error that a person is meant to read. Reads Dagster's own record without
Dagster.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import duckdb

from opus_pipelines.core import errors
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.tasks import select

NO_REASON = "the run failed"
Link = tuple[str | None, str]  # an error's class name, and its message with the class before it


def reason_of(chain: Sequence[Link]) -> list[str]:
    """The lines of a chain of errors, outermost first: ours as they are, `dagster.Failure` by its description, others
    with their type.
    """
    if not chain:
        return [NO_REASON]
    ours = next((link for link in chain if link[0] and hasattr(errors, link[0])), None)
    name, message = ours or next((link for link in chain if link[0] == "Failure"), chain[-1])
    lines = message.strip().splitlines() if name == "Failure" else [message]
    told = [" ".join(line.split()) for line in lines]
    return [told[0].split(": ", 1)[-1], *told[1:]] if ours or name == "Failure" else told


def failure_reason(lake: Lake, run_id: str) -> str | None:
    """Why the run failed, on one line; None where the record does not tell."""
    path = lake.dagster_home / "history" / "runs" / f"{run_id}.db"
    if not path.is_file():
        return None
    query = "SELECT event FROM event_logs WHERE dagster_event_type = 'PIPELINE_FAILURE' ORDER BY id LIMIT 1"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as events:
            found = events.execute(query).fetchone()
    except sqlite3.OperationalError:  # the file is there before its table
        return None
    if found is None:
        return None
    event = json.loads(found[0])["dagster_event"]
    chain = list(_links((event.get("event_specific_data") or {}).get("error")))
    return "; ".join(reason_of(chain)) if chain else " ".join((event.get("message") or NO_REASON).split())


def _links(error: dict[str, Any] | None) -> Iterator[Link]:
    while error:
        yield error.get("cls_name"), error.get("message") or ""
        error = error.get("cause")


Block = tuple[str, list[str], list[tuple[Any, ...]]]
Changes = Mapping[tuple[str, str], Sequence[str]]


def contracts(connection: duckdb.DuckDBPyConnection, changes: Changes | None = None) -> duckdb.DuckDBPyRelation:
    """One row a contract with a result or a folder. `changes`: by client and contract what changed since the result
    was made; None where no folder was looked at.
    """
    rows = (
        None
        if changes is None
        else [{"client": a, "contract": b, "changed": list(found)} for (a, b), found in changes.items()]
    )
    return select(connection, "contracts", changes=None if rows is None else json.dumps(rows))


def report(connection: duckdb.DuckDBPyConnection, lake: Lake, changes: Changes | None = None) -> Iterator[Block]:
    """(title, columns, rows) of each block; an empty one says so in its title. `changes`: as in `contracts`."""
    left = ", ".join(lake.rolled_back_from())
    held = f" (rolled back from {left}: `opus rebuild --publish` publishes it again)" if left else ""
    yield _block(
        f"Lake {lake.root}: snapshot{held}", select(connection, "snapshot"), "none yet; `opus rebuild` makes one"
    )
    yield _block("Sources", select(connection, "sources"), "none read yet")
    yield _block("Contracts", contracts(connection, changes), "no results yet; `opus generate` makes them")
    yield _block("What could not be used", select(connection, "failures"), "nothing")
    runs = last_runs(lake)
    yield "Last runs" + ("" if runs else ": none"), ["job", "status", "started", "seconds", "run", "reason"], runs


def last_runs(lake: Lake) -> list[tuple[Any, ...]]:
    """The five latest runs of Dagster's own record, read without Dagster, a failed one with its reason; empty before
    the first.
    """
    path = lake.dagster_home / "history" / "runs.db"
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as runs:
        found = runs.execute(
            "SELECT pipeline_name, status, start_time, end_time, run_id FROM runs ORDER BY id DESC LIMIT 5"
        ).fetchall()
    return [
        (
            job,
            status.lower(),
            _time(start),
            _seconds(start, end),
            run,
            failure_reason(lake, run) if status == "FAILURE" else None,
        )
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
