"""From raw records - attribute name to value, flat - to events and the values of a case, by a source's column map."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from opus_pipelines.history import values
from opus_pipelines.history.records import Event, Task
from opus_pipelines.history.source_settings import SourceSettings
from opus_pipelines.history.times import TimeParser
from opus_pipelines.history.values import BadValueError

CASE_PREFIXES = ("case:", "(case)_")  # how pm4py and Disco mark a case's attributes in a flat table
OUTCOME = "outcome"                   # the raw value that [success].column names
_LAST_WINS = frozenset({"success", OUTCOME})
_UNIQUE = ("activity", "start", "end", "time", "transition", "instance", "task_title")
_ATTRIBUTE, _KNOWN, _OF_CASE = 1, 2, 3

Parse = Callable[[Any], Any]


def _parsers(decimal: str | None) -> dict[str, tuple[str, Parse]]:
    """Event-level name → field of Task, and how its value is read."""
    amount, count = partial(values.amount, decimal=decimal), partial(values.count, decimal=decimal)
    return {
        "task_description": ("description", values.text),
        "instructions": ("instructions", values.instructions),
        "actor": ("actor", values.text),
        "actor_kind": ("actor_kind", values.actor_kind),
        "model": ("model", values.text),
        "cost": ("cost_usd", amount),
        "cost_compute": ("cost_compute_usd", amount),
        "cost_model": ("cost_model_usd", amount),
        "cost_human": ("cost_human_usd", amount),
        "task_success": ("success", values.boolean),
        "inputs": ("inputs", values.texts),
        "outputs": ("outputs", values.texts),
        "duration_ms": ("duration_ms", partial(values.duration, decimal=decimal)),
        "tokens_in": ("tokens_in", count),
        "tokens_out": ("tokens_out", count),
        "memory_gb": ("memory_gb", amount),
        "threads": ("threads", amount),
        "predecessors": ("predecessors", values.places),
    }


def _case_parsers(decimal: str | None) -> dict[str, Parse]:
    plain = dict.fromkeys(("case", "title", "description", "process_context", "industry", "client", "contract"), values.text)
    amount = partial(values.amount, decimal=decimal)
    return plain | {"case_cost": amount, "expected_outcome": values.boolean, "success": values.boolean, OUTCOME: lambda value: value}


def case_names(settings: SourceSettings, stated: Mapping[str, str]) -> dict[str, str]:
    """Case-level name → raw key: what the settings state, with industry, client, contract and the success rule's column."""
    names = dict(stated)
    for name in ("industry", "client", "contract"):
        if settings.constant(name) is not None:
            names.pop(name, None)
        elif column := settings.column_of(name):
            names[name] = column
    if settings.success.column:
        names[OUTCOME] = settings.success.column
    return names


class CaseMap:
    """Collects the values that belong to a case, from its own record or from its events."""

    def __init__(self, names: Mapping[str, str], attributes: list[str] | None, decimal: str | None) -> None:
        parsers = _case_parsers(decimal)
        self._fields = [(name, key, parsers[name]) for name, key in names.items() if name in parsers]
        self.keys = frozenset(key for _, key, _ in self._fields)
        self.attributes = attributes

    def collect(self, fields: dict[str, Any], raw: Mapping[str, Any]) -> None:
        """Take from `raw` what `fields` lacks (an outcome: the last one stated); raises BadValueError."""
        for name, key, parse in self._fields:
            value = raw.get(key)
            if value is not None and value != "" and (name not in fields or name in _LAST_WINS):
                fields[name] = _parsed(key, parse, value)

    def collect_attributes(self, fields: dict[str, Any], raw: Mapping[str, Any]) -> None:
        """Take every attribute of a case's own record: those listed in the settings, or all that mean nothing else."""
        kept = fields.setdefault("attributes", {})
        for key, value in raw.items():
            if value is not None and value != "" and self._wanted(key):
                kept.setdefault(key, values.text(value))

    def _wanted(self, key: str) -> bool:
        if self.attributes is None:
            return key not in self.keys
        return any(key == name or key.startswith(f"{name}.") for name in self.attributes)


class EventMap:
    """Makes an event of each raw record."""

    def __init__(
        self, names: Mapping[str, str], case_map: CaseMap, settings: SourceSettings, times: TimeParser, attributes: list[str] | None = None
    ) -> None:
        parsers = _parsers(settings.decimal)
        self._key = {name: names.get(name, "") for name in _UNIQUE}
        if self._key["start"] and not self._key["end"]:
            self._key["end"], self._key["time"] = self._key["time"], ""
        self._interval = bool(self._key["start"] or self._key["end"])
        self._rest = [(*parsers[name], key) for name, key in names.items() if name in parsers]
        self._template = settings.activity
        self._times = times
        self._case_map = case_map
        self._listed = attributes
        self._kinds = dict.fromkeys(set(names.values()) | case_map.keys, _KNOWN)

    def event(self, raw: Mapping[str, Any], position: int, case_fields: dict[str, Any] | None = None) -> Event:
        """The event that `raw` says; what of it belongs to the case goes to `case_fields`. Raises BadValueError."""
        key = self._task_key(raw)
        task = Task(task_key=key, title=key)
        for field, parse, column in self._rest:
            value = raw.get(column)
            if value is not None and value != "":
                setattr(task, field, _parsed(column, parse, value))
        if title := raw.get(self._key["task_title"]):
            task.title = values.text(title)
        if task.model and task.actor_kind is None:
            task.actor_kind = "model"
        event = self._timed(Event(position, task, None), raw)
        if case_fields is not None:
            self._case_map.collect(case_fields, raw)
        self._sort_attributes(task, raw, case_fields)
        return event

    def _task_key(self, raw: Mapping[str, Any]) -> str:
        if self._template is not None:
            key = re.sub(r"\{([^{}]+)\}", lambda m: values.text(raw.get(m[1], "")), self._template)
        else:
            found = raw.get(self._key["activity"])
            key = "" if found is None else values.text(found)
        if not key.strip():
            raise BadValueError("no_activity", f"the record names no activity (looked for {self._template or self._key['activity']})")
        return key

    def _timed(self, event: Event, raw: Mapping[str, Any]) -> Event:
        moment = self._time(raw, "time")
        transition, instance = raw.get(self._key["transition"]), raw.get(self._key["instance"])
        event.transition = values.text(transition).strip().lower() if transition else None
        event.instance = values.text(instance) if instance else None
        if self._interval:
            event.interval = True
            event.time = _spread(event.task, self._time(raw, "start"), self._time(raw, "end"), moment)
        else:
            event.time = moment
        return event

    def _time(self, raw: Mapping[str, Any], name: str) -> int | None:
        value = raw.get(self._key[name])
        if value is None or value == "":
            return None
        return int(_parsed(self._key[name], self._times, value))

    def _sort_attributes(self, task: Task, raw: Mapping[str, Any], case_fields: dict[str, Any] | None) -> None:
        attributes = task.attributes
        for key, value in raw.items():
            if value is None or value == "":
                continue
            kind = self._kinds.get(key) or self._classify(key)
            if kind == _ATTRIBUTE:
                attributes[key] = values.text(value)
            elif kind == _OF_CASE and case_fields is not None:
                case_fields.setdefault("attributes", {}).setdefault(_unprefixed(key), values.text(value))

    def _classify(self, key: str) -> int:
        """What an attribute of no field is: the task's, the case's, or neither. Remembered, for it is asked at every event."""
        of_case = self._case_map.attributes
        if self._listed is not None:
            kind = _ATTRIBUTE if any(key == name or key.startswith(f"{name}.") for name in self._listed) else _KNOWN
        elif key in of_case if of_case is not None else key.startswith(CASE_PREFIXES):
            kind = _OF_CASE
        else:
            kind = _ATTRIBUTE
        self._kinds[key] = kind
        return kind


def _unprefixed(key: str) -> str:
    for prefix in CASE_PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _parsed(column: str, parse: Parse, value: Any) -> Any:
    try:
        return parse(value)
    except BadValueError as error:
        raise BadValueError(error.code, f"{column}: {error.reason}") from None


def _spread(task: Task, start: int | None, end: int | None, moment: int | None) -> int | None:
    """Start, end and duration of a record that states them itself; returns the time that orders it."""
    if start is not None and end is not None:
        if end < start:
            raise BadValueError("negative_duration", f"it ends {(start - end) / 1e6:,.0f} s before it starts")
        task.duration_ms = (end - start) / 1000 if task.duration_ms is None else task.duration_ms
    task.started_at = next((t for t in (start, end, moment) if t is not None), None)
    task.ended_at = end if start is not None or end is not None else moment
    return task.started_at
