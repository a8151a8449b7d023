"""Reads XES event logs (IEEE 1849) as a stream, with one trace in memory at a time.

A record is an event, and its position counts from 1. A file with a document type is refused, because no log needs one
and entity attacks require one.
"""

from collections.abc import Callable
from typing import Any, BinaryIO

from opus_pipelines.core.ids import canonical
from opus_pipelines.history.columns.cases import Maps
from opus_pipelines.history.formats.xes_columns.stream import read_stream
from opus_pipelines.history.formats.xes_columns.traces import ColumnarTraces
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records.records import Case, Cause
from opus_pipelines.history.records.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.records.times import TimeParser
from opus_pipelines.history.records.values import BadValueError

_CASE_DEFAULTS = {
    "case": "concept:name",
    "title": "title",
    "description": "concept:description",
    "currency": "cost:currency",
}
_EVENT_DEFAULTS = {
    "activity": "concept:name",
    "time": "time:timestamp",
    "transition": "lifecycle:transition",
    "instance": "concept:instance",
    "actor": "org:resource",
    "cost": "cost:total",
    "currency": "cost:currency",
}


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every trace into `sink`. Raises InputError if the XML is malformed or no log."""
    read_stream(open_file, XesReader(settings, sink))


class XesReader:
    """Reads the traces of a log into a sink: plain ones by columns, the others one by one."""

    def __init__(self, settings: SourceSettings, sink: Assembler) -> None:
        columns = settings.columns.model_dump(exclude_none=True, exclude={"attributes"})
        stated_case = {k: v for k, v in columns.items() if k in CaseNames.model_fields or k == "success"}
        stated_event = {k: v for k, v in columns.items() if k in EventNames.model_fields}
        names = case_names(settings, _CASE_DEFAULTS | stated_case)
        self._id_key = names.pop("case")
        event_names = _EVENT_DEFAULTS | stated_event
        own = _without(
            names, {"title", "description"} - stated_case.keys()
        )  # a trace's defaults mean other things in an event
        self._trace_map = CaseMap(names | {"case": self._id_key}, settings.columns.attributes, sink.money)
        own_map = CaseMap(own, settings.columns.attributes, sink.money)
        self._events = EventMap(event_names, own_map, settings, TimeParser(settings.timezone, settings.time_format))
        self._sink = sink
        self._position = sink.skipped
        self._columnar = ColumnarTraces(settings, Maps(self._trace_map, own_map, self._events, self._id_key), sink)

    def plain(self, text: bytes) -> bool:
        """Reads whole traces by columns. Returns False, without reading anything, if they must be read one by one."""
        count = self._columnar.read(text)
        self._position += count or 0
        return count is not None

    def trace(self, element: Any) -> None:
        """Reads one trace."""
        raw = self._sink.redactor.flat(_attributes(element))
        events = [child for child in element if _is_event(child)]
        case_id = raw.get(self._id_key)
        if not case_id:
            self._reject_all(
                events, "no_case", f"its trace has no {self._id_key}; [columns] case in source.toml names the id"
            )
            return None
        if self._sink.is_repeated(case_id):
            self._position += len(events)  # the source reads the file again and puts the case together
            return None
        fields: dict[str, Any] = {}
        try:
            self._trace_map.collect(fields, raw)
            self._trace_map.collect_attributes(fields, raw)
        except BadValueError as error:
            cause = self._reject_all(events, error.code, f"its trace: {error.reason}", case_id)
            return None if cause is None else self._sink.case(Case(case_id, {}, []), cause)
        case = Case(case_id, fields, [])
        return self._sink.case(case, self._read_events(events, case, self._trace_map.currency(raw)))

    def stray(self, element: Any) -> None:
        """Rejects an event outside of all traces."""
        self._reject_all([element], "no_case", "the event stands outside every trace")

    def _read_events(self, elements: list[Any], case: Case, currency: Any) -> Cause | None:
        """Adds the usable events to the case, and returns the cause of the first rejected one."""
        cause: Cause | None = None
        is_held = self._sink.is_held(case.case_id)
        for element in elements:
            self._position += 1
            raw = self._sink.redactor.flat(_attributes(element))
            own: dict[str, Any] | None = {} if is_held else None
            try:
                event = self._events.event(raw, self._position, case.fields if own is None else own, currency)
            except BadValueError as error:
                rejected = self._sink.reject(self._position, error.code, error.reason, canonical(raw), case.case_id)
                cause = cause or rejected
            else:
                event.fields = own
                case.events.append(event)
        return cause

    def _reject_all(self, elements: list[Any], code: str, reason: str, case_id: str | None = None) -> Cause | None:
        """Rejects every event, and returns the cause of the first."""
        cause: Cause | None = None
        for element in elements:
            self._position += 1
            record = canonical(self._sink.redactor.flat(_attributes(element)))
            rejected = self._sink.reject(self._position, code, reason, record, case_id)
            cause = cause or rejected
        return cause


def _without(names: dict[str, str], left_out: set[str]) -> dict[str, str]:
    return {name: key for name, key in names.items() if name not in left_out}


def _is_event(element: Any) -> bool:
    tag = element.tag
    return isinstance(tag, str) and tag.rpartition("}")[2] == "event"


def _attributes(element: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the attributes of an element by key. A nested attribute has the key of its parent as a prefix."""
    attributes: dict[str, Any] = {}
    for child in element:
        key, value = child.get("key"), child.get("value")
        if key is None:
            if len(child) and isinstance(child.tag, str) and child.tag.rpartition("}")[2] == "values":
                attributes |= _attributes(child, prefix)
            continue
        if value is not None:
            attributes[prefix + key] = value
        if len(child):
            attributes |= _attributes(child, f"{prefix}{key}.")
    return attributes
