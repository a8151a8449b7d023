"""Event logs that are tables, whatever holds them: a row is an event, and the rows of a case may lie anywhere."""

from typing import Any

from opus_pipelines.errors import InputError
from opus_pipelines.history import values
from opus_pipelines.history.assembler import Assembler
from opus_pipelines.history.mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.readers.csv_columns import tell_columns
from opus_pipelines.history.records import Case
from opus_pipelines.history.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.times import TimeParser
from opus_pipelines.history.values import BadValueError
from opus_pipelines.ids import canonical


class TableLog:
    """Takes the rows of one file; `finish` hands its cases over. Raises InputError where the columns cannot be told."""

    def __init__(self, header: list[str], settings: SourceSettings, sink: Assembler) -> None:
        names = tell_columns(header, settings.columns)
        for_case = case_names(settings, {k: v for k, v in names.items() if k in CaseNames.model_fields or k == "success"})
        for_event = {k: v for k, v in names.items() if k in EventNames.model_fields}
        self._case_key = for_case.pop("case")
        case_map = CaseMap(for_case, settings.columns.attributes, sink.money)
        self.header = header
        self.times = TimeParser(settings.timezone, settings.time_format)
        self.time_columns = [header.index(for_event[name]) for name in ("start", "end", "time") if name in for_event]
        self._events = EventMap(for_event | {"case": self._case_key}, case_map, settings, self.times)
        self._cases: dict[str, Case] = {}
        self._sink = sink
        self._used = 0

    def row(self, position: int, fields: dict[str, Any]) -> None:
        """One row by its columns' names; empty texts and None are no values."""
        raw = self._sink.redactor.flat(fields)
        try:
            self._event(position, raw)
        except BadValueError as error:
            self.refuse(position, error.code, error.reason, canonical({k: v for k, v in raw.items() if v not in ("", None)}))
        else:
            self._used += 1

    def refuse(self, position: int, code: str, reason: str, record: str) -> None:
        """A row that cannot be used; raises InputError where hardly any can."""
        self._sink.reject(position, code, reason, record)
        if self._sink.counts.hopeless(self._used):
            raise InputError(f"hardly a row can be used of the first {position:,}; the last: {reason}")

    def finish(self) -> None:
        """The file is at its end: every case is whole."""
        for case in self._cases.values():
            if case.events:
                self._sink.case(case)

    def _event(self, position: int, raw: dict[str, Any]) -> None:
        found = raw.get(self._case_key)
        case_id = "" if found is None else values.name(found)
        if not case_id.strip():
            raise BadValueError("no_case", f"{self._case_key} is empty")
        if self._sink.known(case_id):
            raise BadValueError("duplicate_case", f"the case {case_id} stands in another file of the source")
        case = self._cases.get(case_id) or Case(case_id, {}, [])
        case.events.append(self._events.event(raw, position, case.fields))
        self._cases[case_id] = case
