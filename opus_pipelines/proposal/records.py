"""Where the records of a JSON Lines file hold the case's id, its tasks, and what a task is called."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from opus_pipelines.errors import InputError
from opus_pipelines.history.files import open_data
from opus_pipelines.history.values import at_path
from opus_pipelines.proposal.column_words import names_role

RECORDS = 1_000
_ID_USUAL = ("case_id", "case", "id", "trace_id")
_TASKS_USUAL = ("tasks", "steps", "events", "activities")
_NAME_USUAL = ("activity", "task", "name", "tool", "task_key")
_MOST_DEPTH = 3


def find_records(file: Path) -> dict[str, dict[str, str | list[str]]]:
    """The tables [record] and [task], empty where the usual names are there; raises InputError where no list of tasks is found."""
    records = list(_records(file))
    if not records:
        raise InputError(f"{file}: none of its first lines is a JSON object")
    record: dict[str, str | list[str]] = {}
    task: dict[str, str | list[str]] = {}
    tasks = next((name for name in _TASKS_USUAL if any(isinstance(r.get(name), list) for r in records)), None)
    if tasks is None:
        tasks = record["tasks"] = _longest_list(file, records)
    if not any(name in r for r in records for name in _ID_USUAL):
        record["case"] = _id(file, records)
    elements = [e for r in records for e in at_path(r, tasks) or [] if isinstance(e, dict)]
    if elements and not any(name in e for e in elements for name in _NAME_USUAL):
        task["activity"] = _name(file, elements)
    return {name: table for name, table in (("record", record), ("task", task)) if table}


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with open_data(file) as opened:
        for line in islice(opened, RECORDS):
            try:
                record = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _longest_list(file: Path, records: list[dict[str, Any]]) -> str:
    """The path of the lists that hold most objects or names."""
    sizes: Counter[str] = Counter()
    for record in records:
        for path, value in _paths(record):
            if isinstance(value, list) and value and all(isinstance(v, dict | str) for v in value):
                sizes[path] += len(value) * (2 if isinstance(value[0], dict) else 1)
    if not sizes:
        raise InputError(f"{file}: no record holds a list of tasks; the names found are {', '.join(records[0])}")
    return max(sorted(sizes), key=lambda path: sizes[path])


def _paths(value: dict[str, Any], prefix: str = "", depth: int = _MOST_DEPTH) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        yield f"{prefix}{key}", inner
        if isinstance(inner, dict) and depth:
            yield from _paths(inner, f"{prefix}{key}.", depth - 1)


def _id(file: Path, records: list[dict[str, Any]]) -> str:
    """A name whose values are all there and all different."""
    names = [name for name in records[0] if all(isinstance(r.get(name), str | int) for r in records)]
    unique = [name for name in names if len({str(r[name]) for r in records}) == len(records)]
    if not unique:
        raise InputError(f"{file}: no name of a record has a different value in each; the names are {', '.join(records[0])}")
    return next((name for name in unique if names_role(name, "case")), unique[0])


def _name(file: Path, elements: list[dict[str, Any]]) -> str:
    """A name of short texts that repeat."""
    names = [name for name in elements[0] if all(isinstance(e.get(name), str) and e[name] for e in elements)]
    if not names:
        raise InputError(f"{file}: no name of a task's object holds a text everywhere; the names are {', '.join(elements[0])}")
    return next((name for name in names if names_role(name, "activity")), min(names, key=lambda n: len({e[n] for e in elements})))
