"""Why a run failed: one line, in the words of the error that a person is meant to read. Reads Dagster's own record without Dagster."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from opus_pipelines import errors
from opus_pipelines.lake import Lake

NO_REASON = "the run failed"
Link = tuple[str | None, str]  # an error's class name, and its message with the class before it


def reason_of(chain: Sequence[Link]) -> list[str]:
    """The lines of a chain of errors, outermost first: ours as they are, `dagster.Failure` by its description, others with their type."""
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
