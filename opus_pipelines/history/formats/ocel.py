"""Reads object-centric event logs (OCEL): each object of one type is a case.

A record is an event. An event that names several of the objects is a task in each of their cases and is counted once.
An event that names none of them is no work.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.formats.ocel_forms import read_log
from opus_pipelines.history.formats.table_log import USUAL
from opus_pipelines.history.formats.whole_file import not_too_deep
from opus_pipelines.history.records.assembler import Assembler, event_record
from opus_pipelines.history.records.column_mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records.raw import Case, Cause
from opus_pipelines.history.records.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser, telling
from opus_pipelines.history.records.values import name as checked

JSON_BYTES, EVENTS = 1 << 26, 500_000  # so large a file of events that say anything holds fewer
# tasks an event on average, beyond which the type is no case: an order in every one of whose cases all events stand
FAN_OUT = 20
_TYPE, _TIME, _ID = "ocel:type", "ocel:time", "ocel:id"
_ADVICE = "write the events of one object type as CSV or Parquet"
_TOLD = ("actor", "actor_kind", "model", "cost", "currency")


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every object of the type into `sink`.

    Raises InputError if the file is no such log or the type is unclear.
    """
    with not_too_deep():
        log = sink.redactor.nested(read_log(open_file, JSON_BYTES, _ADVICE))
        if (
            not isinstance(log, dict)
            or not isinstance(log.get("events"), list)
            or not isinstance(log.get("objects"), list)
        ):
            raise InputError('it is no OCEL 2.0 log: an object with the lists "events" and "objects"')
        objects = [
            o
            for o in log["objects"]
            if isinstance(o, dict) and isinstance(o.get("id"), str) and isinstance(o.get("type"), str)
        ]
        if len(log["events"]) > EVENTS:
            raise InputError(f"it has more than {EVENTS:,} events; {_ADVICE}")
        kind = _object_type(objects, settings)
        reader = _OcelReader([o for o in objects if o["type"] == kind], log["events"], settings, sink)
        reader.events(log["events"])
        reader.finish()


def _object_type(objects: list[dict[str, Any]], settings: SourceSettings) -> str:
    counts: defaultdict[str, int] = defaultdict(int)
    for candidate in objects:
        counts[candidate["type"]] += 1
    wanted = settings.object_type
    if wanted is not None and wanted in counts:
        return wanted
    if wanted is None and len(counts) == 1:
        return next(iter(counts))
    types = ", ".join(f"{name[:60]} ({count:,})" for name, count in sorted(counts.items())[:40]) or "none"
    complaint = (
        "it must be told which objects are the cases" if wanted is None else f"it has no object of the type {wanted}"
    )
    raise InputError(
        f"{complaint}; the types found are {types}; in source.toml say:\nobject_type = "
        f'"{min(counts, default="...")[:60]}"'
    )


class _OcelReader:
    def __init__(
        self, cases: list[dict[str, Any]], events: list[Any], settings: SourceSettings, sink: Assembler
    ) -> None:
        stated = {k: v for k, v in settings.columns.model_dump(exclude_none=True).items() if isinstance(v, str)}
        of_case = {k: v for k, v in stated.items() if k in CaseNames.model_fields or k == "success"}
        self._case_map = CaseMap(
            case_names(settings, {"currency": "currency"} | of_case), settings.columns.attributes, sink.money
        )
        names = _usual_names(events, stated) | {"activity": _TYPE, "time": _TIME}
        names |= {
            k: v for k, v in stated.items() if k in EventNames.model_fields and k not in ("transition", "instance")
        }
        times = TimeParser(settings.timezone, settings.time_format)
        self._events = EventMap(names, CaseMap({}, [], sink.money), settings, times)
        self._objects = {o["id"]: o for o in cases}
        self._cases: dict[str, Case] = {}
        self._causes: dict[str, Cause] = {}
        self._sink = sink

    def events(self, listed: list[Any]) -> None:
        """Sorts every event into the cases that it names, the records that are no work, or the rejects."""
        idle = tasks = 0
        last = {str(event.get("id")): event for event in listed if isinstance(event, dict) and "id" in event}
        for position, event in enumerate(listed, start=1):
            if isinstance(event, dict) and (later := last.get(str(event.get("id")))) is not None and later is not event:
                self._sink.count_repeated(is_corrected=later != event)
                continue
            ids: list[str] = []
            try:
                ids = self._related(event)
                tasks += len(ids)
                if tasks > FAN_OUT * max(len(listed), 1000):
                    raise InputError(
                        f"an event names over {FAN_OUT} objects of that type on average: they are no cases; choose "
                        "another"
                    )
                self._event(event, ids, position)
                idle += not ids
            except BadValueError as error:
                cause = self._sink.reject(position, error.code, error.reason, canonical(event), ids[0] if ids else None)
                for case_id in ids:
                    self._causes.setdefault(case_id, cause)
            self._sink.report_progress(position)
        self._sink.not_work(idle)

    def _related(self, event: Any) -> list[str]:
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise BadValueError("bad_event", "the event is no object with a type")
        ids = (r.get("objectId") for r in _objects(event.get("relationships")))
        return list(dict.fromkeys(i for i in ids if isinstance(i, str) and i in self._objects))

    def _event(self, event: dict[str, Any], ids: list[str], position: int) -> None:
        raw = _attributes(event) | {_TYPE: event["type"], _TIME: event.get("time"), _ID: event.get("id")}
        cases = [self._case(case_id) for case_id in ids]
        # a case changes its tasks, so each has its own
        events = [self._events.event(raw, position) for _ in ids or [""]]
        for number, case in enumerate(cases):
            events[number].event_id = str(event["id"]) if "id" in event else None
            case.events.append(events[number])

    def _case(self, case_id: str) -> Case:
        checked(case_id)
        if self._sink.known(case_id):
            raise BadValueError("duplicate_case", f"the case {case_id} stands in another file of the source")
        if case_id not in self._cases:
            raw, fields = _attributes(self._objects[case_id]), dict[str, Any]()
            self._case_map.collect(fields, raw)
            self._case_map.collect_attributes(fields, raw)
            self._cases[case_id] = Case(case_id, fields, [])
        return self._cases[case_id]

    def finish(self) -> None:
        """Ends the file and hands over the cases. An object without events is no case."""
        counted: set[int] = set()  # positions: an event of several cases is one record
        for case in self._cases.values():
            if case.events and case.case_id not in self._causes:
                case.shared = sum(event.position in counted for event in case.events)
                counted.update(event.position for event in case.events)
                self._sink.case(case)
        for case_id, cause in self._causes.items():
            events = self._cases[case_id].events if case_id in self._cases else []
            for event in events:
                if event.position not in counted:
                    counted.add(event.position)
                    self._sink.reject_with_case(event.position, event_record(case_id, event), case_id, cause)
            self._sink.case(Case(case_id, {}, []), cause)


def _usual_names(events: list[Any], stated: dict[str, str]) -> dict[str, str]:
    """Returns the meaning of attributes with usual names, as in a CSV file."""
    names = {name for event in events[:1000] if isinstance(event, dict) for name in _attributes(event)} - set(
        stated.values()
    )
    usual = {field: next((name for name in USUAL[field] if name in names), None) for field in _TOLD}
    return {field: name for field, name in usual.items() if name is not None}


def _objects(listed: Any) -> list[dict[str, Any]]:
    return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []


def _attributes(element: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes by name. An attribute that changed has its first value, which was known at the start."""
    values: dict[str, Any] = {}
    for attribute in sorted(_objects(element.get("attributes")), key=lambda a: str(a.get("time", ""))):
        if isinstance(attribute.get("name"), str):
            values.setdefault(attribute["name"], attribute.get("value"))
    return telling(values)
