"""Finds the paths of the case id, the tasks, and the name of a task in the records of a JSON Lines file."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.csv_columns import USUAL
from opus_pipelines.history.ingestion.onboarding.column_values import MOSTLY, time_values
from opus_pipelines.history.ingestion.onboarding.column_words import BAD, GOOD, NUMBERING, ROLES, names_role
from opus_pipelines.history.ingestion.onboarding.table_sample import Column
from opus_pipelines.history.records.activity_words import words_of
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.values import at_path

RECORDS = 1_000
_ID_USUAL = ("case_id", "case", "id", "trace_id")
_TASKS_USUAL = ("tasks", "steps", "events", "activities")
_NAME_USUAL = ("activity", "task", "name", "tool", "task_key")
_MOST_DEPTH = 3
WORDS = 3  # that a request has at least, on average


def find_records(file: Path) -> dict[str, dict[str, str | list[str]]]:
    """Returns the tables [record] and [task], empty if the usual names exist.

    Raises InputError without a list of tasks.
    """
    records = list(_records(file))
    if not records:
        raise InputError(f"{file}: none of its first lines is a JSON object")
    record: dict[str, str | list[str]] = {}
    task: dict[str, str | list[str]] = {}
    tasks = next((name for name in _TASKS_USUAL if any(isinstance(r.get(name), list) for r in records)), None)
    if tasks is None:
        tasks = record["tasks"] = _list_of_tasks(file, records)
    if not any(name in r for r in records for name in _ID_USUAL):
        record["case"] = _id(file, records)
    if (description := _record_description(records)) is not None:
        record["description"] = description
    elements = [e for r in records for e in at_path(r, tasks) or [] if isinstance(e, dict)]
    if elements and not any(name in e for e in elements for name in _NAME_USUAL):
        task["activity"] = _name(file, elements)
    return {name: table for name, table in (("record", record), ("task", task)) if table}


def find_moments(
    file: Path, tables: Mapping[str, Mapping[str, str | list[str]]]
) -> tuple[dict[str, str | list[str]], tuple[str, ...]]:
    """Returns the paths of start, end, time and actor in a task's object that the reader does not know by their names.

    The second value has the formats that `time_format` must state. `tables` is what `find_records` returned.
    """
    records = list(_records(file))
    stated = tables.get("record", {}).get("tasks")
    tasks = stated if isinstance(stated, str) else next(n for n in _TASKS_USUAL if any(n in r for r in records))
    elements = [e for r in records for e in at_path(r, tasks) or [] if isinstance(e, dict)]
    values: dict[str, list[str]] = defaultdict(list)
    for element in elements:
        for path, value in _paths(element):
            if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                values[path].append(str(value))
    usual = {name for role in ("start", "end", "time") for name in USUAL[role]}
    roles: dict[str, str | list[str]] = {}
    formats: list[str] = []
    for path, told in values.items() if not usual & set(values) else ():
        seen = time_values(Column(path, tuple(told)))
        role = _moment(path)
        if seen.readable >= MOSTLY and role not in roles:
            roles[role] = path
            formats += seen.formats
    if {"start", "end"} & roles.keys():
        roles.pop("time", None)
    if not set(USUAL["actor"]) & set(values):
        actors = [path for path in values if names_role(path.rpartition(".")[2], "actor")]
        roles |= {"actor": actors[0]} if actors else {}
    return roles, tuple(dict.fromkeys(formats))


def _moment(path: str) -> str:
    words = set(words_of(path.rpartition(".")[2]))
    return next((role for role in ("start", "end") if words & ROLES[role]), "time")


def _record_description(records: list[dict[str, Any]]) -> str | None:
    """Returns the name of a field that contains the request of the case in words."""
    for name, _ in _paths(records[0]):
        texts = [text for r in records if isinstance(text := at_path(r, name), str)]
        words = sum(len(text.split()) for text in texts)
        if names_role(name, "description") and words >= WORDS * max(1, len(texts)) and name != "description":
            return name
    return None


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with open_data(file) as opened:
        for line in islice(opened, RECORDS):
            try:
                record = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _list_of_tasks(file: Path, records: list[dict[str, Any]]) -> str:
    """Returns the path of the lists that contain most objects.

    If there are none, it is the list of names that repeat most, because tasks repeat and sentences do not.
    """
    objects: Counter[str] = Counter()
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for path, value in _paths(record):
            if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
                objects[path] += len(value)
            elif isinstance(value, list) and value and all(isinstance(v, str) for v in value):
                names[path].update(value)
    if objects:
        return max(sorted(objects), key=lambda path: objects[path])
    if names:
        return max(sorted(names), key=lambda path: names[path].total() / len(names[path]))
    raise InputError(f"{file}: no record holds a list of tasks; the names found are {', '.join(records[0])}")


def _paths(value: dict[str, Any], prefix: str = "", depth: int = _MOST_DEPTH) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        yield f"{prefix}{key}", inner
        if isinstance(inner, dict) and depth:
            yield from _paths(inner, f"{prefix}{key}.", depth - 1)


def _id(file: Path, records: list[dict[str, Any]]) -> str:
    """Returns a path whose values are all present and all different.

    A path that is named as an id is preferred, then short values.
    """
    names = [path for path, _ in _paths(records[0]) if all(isinstance(at_path(r, path), str | int) for r in records)]
    unique = [name for name in names if len({str(at_path(r, name)) for r in records}) == len(records)]
    if not unique:
        raise InputError(
            f"{file}: no name of a record has a different value in each; the names are {', '.join(records[0])}"
        )
    named = [name for name in unique if names_role(name, "case") or NUMBERING & set(words_of(name))]
    return min(named or unique, key=lambda name: max(len(str(at_path(r, name))) for r in records))


def _name(file: Path, elements: list[dict[str, Any]]) -> str:
    """Returns the name of a field with short texts that repeat: how a step ended ("success", "error") is none."""
    names = [name for name in elements[0] if all(isinstance(e.get(name), str) and e[name] for e in elements)]
    if not names:
        raise InputError(
            f"{file}: no name of a task's object holds a text everywhere; the names are {', '.join(elements[0])}"
        )
    values = {name: {e[name] for e in elements} for name in names}
    ended = {
        name for name in names if names_role(name, "outcome") or {v.casefold() for v in values[name]} <= GOOD | BAD
    }
    named = [name for name in names if names_role(name, "activity")]
    rest = [name for name in names if name not in ended] or names
    return next(iter(named), min(rest, key=lambda name: len(values[name])))
