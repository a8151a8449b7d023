"""Reports what the lake holds, what is stale, and what failed, for `opus status`.

It reads Dagster's own record without Dagster. The reason of a failed run is one line, from the error that is written
for people.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from opus_pipelines.core import errors
from opus_pipelines.core.errors import STOPPED, LakeError
from opus_pipelines.lake import run_storage
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.tasks import select

NO_REASON = "the run failed"
_INTERRUPTED = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")  # Ctrl-C, or a signal to end
Link = tuple[str | None, str]  # an error's class name, and its message with the class before it


def reason_of(chain: Sequence[Link]) -> list[str]:
    """Returns the lines of a chain of errors, outermost first.

    An error of this package keeps its message, `dagster.Failure` its description; another error follows its type.
    """
    if not chain:
        return [NO_REASON]
    if any(name in _INTERRUPTED for name, _ in chain):
        return [STOPPED]
    ours = next((link for link in chain if link[0] and hasattr(errors, link[0])), None)
    name, message = ours or next((link for link in chain if link[0] == "Failure"), chain[-1])
    lines = message.strip().splitlines() if name == "Failure" else [message]
    texts = [" ".join(line.split()) for line in lines]
    return [texts[0].split(": ", 1)[-1], *texts[1:]] if ours or name == "Failure" else texts


def failure_reason(lake: Lake, run_id: str) -> str | None:
    """Returns why the run failed, on one line, or None where the record has no reason."""
    query = (
        "SELECT event FROM event_logs WHERE run_id = ? AND dagster_event_type = 'PIPELINE_FAILURE' ORDER BY id LIMIT 1"
    )
    try:
        rows = run_storage.rows(lake, query, run_id)
    except LakeError as error:
        return str(error)
    if not rows:
        return None
    event = json.loads(rows[0][0])["dagster_event"]
    chain = list(_links((event.get("event_specific_data") or {}).get("error")))
    return "; ".join(reason_of(chain)) if chain else " ".join((event.get("message") or NO_REASON).split())


def _links(error: dict[str, Any] | None) -> Iterator[Link]:
    while error:
        yield error.get("cls_name"), error.get("message") or ""
        error = error.get("cause")


Block = tuple[str, list[str], list[tuple[Any, ...]]]
Changes = Mapping[tuple[str, str], Sequence[str]]
Declared = Mapping[tuple[str, str], int]


def contracts(
    connection: duckdb.DuckDBPyConnection, changes: Changes | None = None, declared: Declared | None = None
) -> duckdb.DuckDBPyRelation:
    """Returns one row for each contract with a result or a folder.

    `changes`: what changed since the result was made, by client and contract; None where no folder was read.
    `declared`: how many tasks the contract's catalogue declares, of those that have one.
    """
    rows = (
        None
        if changes is None
        else [{"client": a, "contract": b, "changed": list(changed)} for (a, b), changed in changes.items()]
    )
    counts = [{"client": a, "contract": b, "declared_tasks": n} for (a, b), n in (declared or {}).items()]
    return select(
        connection,
        "contracts",
        changes=None if rows is None else json.dumps(rows),
        declared=json.dumps(counts),
    )


def report(
    connection: duckdb.DuckDBPyConnection, lake: Lake, changes: Changes | None = None, declared: Declared | None = None
) -> Iterator[Block]:
    """Yields title, columns and rows of each block; the title of an empty block says so.

    `changes`, `declared`: as in `contracts`.
    """
    left = ", ".join(lake.rolled_back_from())
    held = f" (rolled back from {left}: `opus rebuild --publish` publishes it again)" if left else ""
    yield _block(
        f"Lake {lake.root}: snapshot{held}", select(connection, "snapshot"), "none yet; `opus rebuild` makes one"
    )
    yield _block("Sources", select(connection, "sources"), "none read yet")
    yield _block("Contracts", contracts(connection, changes, declared), "no results yet; `opus generate` makes them")
    yield _block("What could not be used", select(connection, "failures"), "nothing")
    yield _block("The last night beside up to thirty before it", select(connection, "nights"), "none recorded yet")
    yield _block("Nights that failed", select(connection, "failed_nights"), "none of the last 31")
    try:
        failed = connection.execute("SELECT run, checks_failed FROM ops_runs WHERE checks_failed > 0").fetchall()
        runs, note = with_failed_checks(last_runs(lake), dict(failed)), ": none"
    except LakeError as error:
        runs, note = [], f" are not known: {error}"
    yield "Last runs" + ("" if runs else note), ["job", "status", "started", "seconds", "run", "reason"], runs


def last_runs(lake: Lake) -> list[tuple[Any, ...]]:
    """Returns the five latest runs of Dagster's record, a failed one with its reason.

    The record is read without Dagster. The list is empty before the first run. Raises LakeError where it is damaged
    or cannot be reached.
    """
    records = run_storage.rows(
        lake, "SELECT pipeline_name, status, start_time, end_time, run_id FROM runs ORDER BY id DESC LIMIT 5"
    )
    return [
        (
            job,
            status.lower(),
            None if start is None else datetime.fromtimestamp(int(start), UTC),
            round(end - start, 1) if start and end else None,
            run,
            failure_reason(lake, run) if status == "FAILURE" else None,
        )
        for job, status, start, end, run in records
    ]


def with_failed_checks(runs: list[tuple[Any, ...]], failed: Mapping[str, int]) -> list[tuple[Any, ...]]:
    """Returns the rows of `last_runs` with the number of failed checks as reason of those that did not fail otherwise.

    `failed` has the number of failed checks by run. A rebuild that holds a source back is such a run: it publishes the
    other sources, so Dagster calls it a success.
    """
    told = {run: f"{n} check{'' if n == 1 else 's'} failed: see what could not be used" for run, n in failed.items()}
    return [(*row[:-1], row[-1] or told.get(row[4])) for row in runs]


def has_unfinished_runs(lake: Lake) -> bool:
    """Returns whether Dagster's record has a run that has not ended: it still runs, or its process died.

    Raises LakeError where the record is damaged.
    """
    unfinished = "('NOT_STARTED', 'STARTING', 'STARTED', 'CANCELING')"
    query = f"SELECT 1 FROM runs WHERE status IN {unfinished} LIMIT 1"
    return bool(run_storage.rows(lake, query))


def _block(title: str, relation: duckdb.DuckDBPyRelation, nothing: str) -> Block:
    rows = relation.fetchall()
    return title if rows else f"{title}: {nothing}", relation.columns, rows
