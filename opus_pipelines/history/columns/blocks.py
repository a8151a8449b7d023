"""Converts whole cases to implementations, a block at a time, as `assembler` does case by case.

Both give the same values and counts. What a column cannot decide - a value to reject, an amount that is not in dollars,
settings that combine an event's attributes - is left to the reading by records: `add` then raises UnusualError.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.schemas import IMPLEMENTATIONS, TASK_IMPLEMENTATION
from opus_pipelines.history.columns.cases import CaseColumns, Maps, TasksOfCases, prices
from opus_pipelines.history.columns.tasks import (
    COMPLETE,
    NO_WORK,
    OTHER,
    START,
    Spans,
    Tasks,
    between,
    repeated_events,
    runs,
    tasks_of_block,
    waits,
)
from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.columns.values import (
    Coded,
    Level,
    UnusualError,
    dollars,
    later,
    maps,
    only_dollars,
)
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import Bools, Ints, Longs, array, repeated, strings
from opus_pipelines.history.records.assembler import Assembler, Block
from opus_pipelines.history.records.column_mapping import ATTRIBUTE
from opus_pipelines.history.records.costing import GROUP_ATTRIBUTES
from opus_pipelines.history.records.lifecycles import NOT_WORK
from opus_pipelines.history.records.source_settings import SourceSettings

_RECORDS_ONLY = frozenset({"model", "tokens_in", "tokens_out", "predecessors"})
_TRANSITIONS = {"start": START, "complete": COMPLETE} | dict.fromkeys(NOT_WORK, NO_WORK)
_AMOUNTS = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd")


class CaseBlocks:
    """Hands blocks of whole cases of one file to `sink`.

    `usable`: columns can do all that the settings require of single events, without intervals and combined values.
    """

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        self._settings, self._sink, self._events, self._id_key = settings, sink, maps.events, maps.id_key
        self._plan = maps.events.plan()
        self._cases = CaseColumns(settings, maps, sink)
        fields = {field for field, _, _ in self._plan.fields}
        self.usable = not (fields & _RECORDS_ONLY or self._plan.keys["event_id"])

    def ids(self, traces: Level) -> pa.Array:
        """Returns the id of every case. Raises UnusualError if one is missing or known already."""
        return self._cases.ids(traces, self._id_key)

    def add(self, traces: Level, events: Level, moments: Mapping[str, Longs], has_work: bool, dropped: int = 0) -> int:
        """Builds the implementations of whole cases and returns the number of their events.

        `moments` has the times of the events, by `time`, or by `start`, `end` and `time` if the events are intervals.
        `has_work`: the log has a start or a complete elsewhere. `dropped`: duplicates that are left out already. Raises
        UnusualError or BadValueError, before anything is handed on, if the events must be read one by one.
        """
        keys = self._plan.keys
        activity = events.coded(keys["activity"])
        if (activity.codes < 0).any() or not all(text.strip() for text in activity.values.to_pylist()):
            raise UnusualError
        kind = self.kinds(events.coded(keys["transition"]))
        has_work = bool(((kind == START) | (kind == COMPLETE)).any()) or has_work
        if not has_work and (kind == NO_WORK).any():
            raise UnusualError
        run = runs(activity, events.coded(keys["instance"]))
        case = events.event_trace
        spans = Spans.of(moments, self._plan.interval)
        repeated = repeated_events(case, spans, kind, run)
        if repeated.any():
            return self._without_duplicates(repeated, traces, events, moments, has_work)
        tasks = tasks_of_block(case, spans, kind, run, has_work)
        task_columns = self._task_columns(tasks, events, traces, activity)
        offsets = np.searchsorted(tasks.case, np.arange(traces.rows + 1)).astype(np.int32)
        of_tasks = Coded(activity.codes[tasks.own], activity.values)
        columns = self._cases.columns(traces, events, TasksOfCases(tasks, of_tasks, task_columns["cost_usd"], offsets))
        columns |= {
            "case_id": traces.scanned.values(traces.places(self._id_key)),
            "tasks": _lists(task_columns, offsets),
        }
        self._sink.block(Block(columns, events.rows + dropped, tasks.not_work, len(tasks.own), has_work, dropped))
        return events.rows + dropped

    def _without_duplicates(
        self, repeated: Bools, traces: Level, events: Level, moments: Mapping[str, Longs], has_work: bool
    ) -> int:
        """Does what `add` does without the events that equal an earlier one of their case in every column.

        Raises UnusualError where events are about the same and differ, or where the settings keep equal ones.
        """
        if self._settings.duplicates == "keep":
            raise UnusualError
        gone = events.twice(np.flatnonzero(repeated))
        if not len(gone):
            raise UnusualError
        kept = np.ones(events.rows, bool)
        kept[gone] = False
        rest = {name: times[kept] for name, times in moments.items()}
        return self.add(traces, events.some(kept), rest, has_work, len(gone))

    @staticmethod
    def kinds(transition: Coded) -> Ints:
        """Returns the kind of transition of every event."""
        kinds = [_TRANSITIONS.get(text.strip().lower(), OTHER) for text in transition.values.to_pylist()]
        return np.where(transition.codes >= 0, np.array([*kinds, OTHER], np.int32)[transition.codes], np.int32(OTHER))

    def _task_columns(self, tasks: Tasks, events: Level, traces: Level, activity: Coded) -> dict[str, pa.Array]:
        moment, number = pa.timestamp("us", "UTC"), pa.float64()
        key = activity.array(tasks.own)
        columns = {
            "task_key": key,
            "title": self._titles(tasks, events, key),
            "position": array(tasks.position(), pa.int32()),
        }
        parsed = self._parsed(tasks, events)
        stated = parsed.pop("duration_ms", None)
        spent, known = between(tasks.began, tasks.finished)
        if stated is not None:
            given, is_given = stated.numbers()
            spent, known = np.where(is_given, given, spent), known | is_given
        gaps, waited = waits(tasks)
        columns |= {
            "started_at": array(tasks.started, moment, tasks.started != NO_TIME),
            "ended_at": array(tasks.ended, moment, tasks.ended != NO_TIME),
            "duration_ms": array(spent, number, known),
            "wait_ms": array(gaps, number, waited),
        }
        columns |= {name: column.array() for name, column in parsed.items()}
        nobody = Coded(np.full(len(key), -1, np.int32), strings([]))
        amounts = {name: column.numbers() for name, column in self._amounts(tasks, events, traces).items()}
        names = (
            [self._key_of("actor"), *(n for n in GROUP_ATTRIBUTES if self._events.role(n) == ATTRIBUTE)]
            if self._settings.rates
            else []
        )
        actors = [self._later(tasks, events.coded(name)) for name in names if name in events.columns]
        columns |= prices(amounts, (spent, known), actors, parsed.get("actor_kind", nobody), self._settings.rates)
        attributes = [
            (k, later(c, tasks.own, tasks.done)) for k, c in events.columns.items() if self._events.role(k) == ATTRIBUTE
        ]
        columns["attributes"] = maps(events.scanned, attributes, len(tasks.own))
        for field, _, name in self._plan.fields:
            if field not in columns:
                columns[field] = events.scanned.values(later(events.places(name), tasks.own, tasks.done))
        return {
            c.name: columns[c.name] if c.name in columns else repeated(None, c.type, len(key))
            for c in TASK_IMPLEMENTATION
        }

    @staticmethod
    def _later(tasks: Tasks, column: Coded) -> Coded:
        """Returns the value of each task's last event."""
        return Coded(later(column.codes, tasks.own, tasks.done), column.values)

    def _titles(self, tasks: Tasks, events: Level, key: pa.Array) -> pa.Array:
        stated = events.places(self._plan.keys["task_title"])
        if not (stated >= 0).any():
            return key
        titles = np.where(stated >= 0, stated, events.places(self._plan.keys["activity"]))
        return events.scanned.values(titles[np.where(tasks.done >= 0, tasks.done, tasks.own)])

    def _parsed(self, tasks: Tasks, events: Level) -> dict[str, Coded]:
        """Returns the fields of the tasks that are not plain text."""
        kinds = {c.name: c.type for c in TASK_IMPLEMENTATION}
        fields = {}
        for field, parse, key in self._plan.fields:
            if parse is not values.text:
                column = events.parsed(key, parse, kinds[field])
                fields[field] = Coded(later(column.codes, tasks.own, tasks.done), column.values)
        return fields

    def _amounts(self, tasks: Tasks, events: Level, traces: Level) -> dict[str, Coded]:
        keys: Mapping[str, str] = {field: key for _, field, key in self._plan.amounts}
        amounts = {}
        for field in _AMOUNTS:
            key = keys.get(field)
            if key in events.columns:
                only_dollars(self._settings, events.coded(self._plan.currency), traces.coded(self._cases.currency))
            column = events.parsed(key, partial(dollars, self._sink.money, key or ""), pa.float64())
            amounts[field] = Coded(later(column.codes, tasks.own, tasks.done), column.values)
        return amounts

    def _key_of(self, field: str) -> str | None:
        return next((key for name, _, key in self._plan.fields if name == field), None)


def _lists(columns: dict[str, pa.Array], offsets: Ints) -> pa.ListArray:
    kind: Any = IMPLEMENTATIONS.schema.field("tasks").type
    structs = pa.StructArray.from_arrays([columns[f.name] for f in kind.value_type], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(array(offsets, pa.int32()), structs, type=kind)
