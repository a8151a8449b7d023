"""Determines which column has which meaning: by `[columns]` in source.toml, else by the usual names of logs."""

import re

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.records.source_settings import Columns

USUAL: dict[str, tuple[str, ...]] = {
    "case": ("case_id", "case:concept:name", "caseid", "case", "case_concept_name", "case_key", "trace_id"),
    "activity": ("activity", "concept:name", "activity_name", "task", "task_name", "event", "event_name"),
    "start": ("start_time", "start_timestamp", "starttime", "start", "started_at", "start_date"),
    "end": (
        "end_time",
        "end_timestamp",
        "endtime",
        "end",
        "ended_at",
        "end_date",
        "complete_time",
        "complete_timestamp",
        "completed_at",
    ),
    "time": ("timestamp", "time:timestamp", "time", "datetime", "event_time", "date"),
    "transition": ("lifecycle:transition", "lifecycle", "transition", "lifecycle_transition"),
    "instance": ("concept:instance", "activity_instance_id", "activity_instance"),
    "actor": ("resource", "org:resource", "actor", "performer", "user"),
    "actor_kind": ("actor_kind",),
    "model": ("model_name",),
    "currency": ("currency", "currency_code", "cost_currency", "cost:currency"),
    "cost": ("cost_usd", "cost", "cost:total"),
    "client": ("client",),
    "contract": ("contract",),
    "industry": ("industry",),
}
_GUESSES = {
    "case": r"case|id\b|nr|no\b|number|key",
    "activity": r"activ|task|step|event|action",
    "time": r"time|date|when|stamp|day",
}


def tell_columns(header: list[str], stated: Columns) -> dict[str, str]:
    """Returns the column of each field.

    Raises InputError, with the names of the columns and the settings to add, if a required field is unclear.
    """
    names = {k: v for k, v in stated.model_dump(exclude_none=True).items() if isinstance(v, str)}
    missing = [column for column in names.values() if column not in header]
    if missing:
        raise InputError(f"it has no column {', '.join(missing)} as source.toml says; {_column_list(header)}")
    plain = {_plain(name): name for name in reversed(header)}
    taken = set(names.values()) | set(stated.attributes or ())
    for field, usual in USUAL.items():
        column = next((plain[u] for u in map(_plain, usual) if u in plain and plain[u] not in taken), None)
        if field not in names and column is not None and not _is_excluded(field, names):
            names[field] = column
            taken.add(column)
    if "case" not in names or "activity" not in names:
        raise InputError(_refusal(header, names))
    return names


def _is_excluded(field: str, names: dict[str, str]) -> bool:
    """Tells whether the stated columns exclude a usual name of the field.

    Start and end are more precise than one time, and a person who named one time excludes the others.
    """
    if field == "time":
        return "end" in names or ("start" in names and "time" in names)
    return field in ("start", "end") and "time" in names


def _plain(name: str) -> str:
    return re.sub(r"[\s_:.-]+", "_", name.strip().lower())


def _column_list(header: list[str]) -> str:
    return "the columns found are " + ", ".join(map(_cut, header[:40])) + (", ..." if len(header) > 40 else "")


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def _refusal(header: list[str], names: dict[str, str]) -> str:
    free = [name for name in header if name not in names.values()]
    guess = {field: names.get(field) or _guess(pattern, free) for field, pattern in _GUESSES.items()}
    lines = "\n".join(f'{field} = "{_cut(column)}"' for field, column in guess.items())
    lacking = " and ".join(field for field in ("case", "activity") if field not in names)
    return (
        f"it cannot be told which column is the {lacking}; {_column_list(header)}; under [columns] in source.toml say, "
        f"corrected:\n{lines}"
    )


def _guess(pattern: str, free: list[str]) -> str:
    """Returns the most likely of the remaining columns and removes it from them."""
    column = next((name for name in free if re.search(pattern, name, re.IGNORECASE)), free[0] if free else "...")
    free[:] = [name for name in free if name != column]
    return column
