"""Event logs as CSV: a row is an event, or a task with its own start and end. The rows of a case may lie anywhere in the file."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

from opus_pipelines.errors import InputError
from opus_pipelines.history.assembler import Assembler
from opus_pipelines.history.csv_columns import tell_columns
from opus_pipelines.history.mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records import Case, Event
from opus_pipelines.history.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.times import TimeParser, day_comes_first, is_numeric_date
from opus_pipelines.history.values import BadValueError
from opus_pipelines.ids import canonical

FIELD_BYTES = 1 << 22
_DELIMITERS = ",;\t|"
_UNDECODED = re.compile("[\ud800-\udfff]")  # what the decoder makes of bytes that are no text


@dataclass(slots=True)
class Row:
    """The line on which it starts, its fields, or (None) why it cannot be split and how it stands there."""

    position: int
    fields: list[str] | None
    complaint: str = ""
    written: str = ""


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Hand every case to `sink` once the file is read; raises InputError where the columns cannot be told."""
    csv.field_size_limit(FIELD_BYTES)
    with open_file() as file:
        reader = _CsvReader(file, settings, sink)
        reader.times.day_first = _day_first(open_file, reader)
        for number, row in enumerate(reader.rows):
            reader.row(row)
            sink.passed(number)
    for case in reader.cases.values():
        if case.events:
            sink.case(case)


class _CsvReader:
    def __init__(self, file: BinaryIO, settings: SourceSettings, sink: Assembler) -> None:
        self.rows = _rows(file)
        self.header = _header(next(self.rows, None))
        names = tell_columns(self.header, settings.columns)
        for_case = case_names(settings, {k: v for k, v in names.items() if k in CaseNames.model_fields or k == "success"})
        self._case_key = for_case.pop("case")
        for_event = {k: v for k, v in names.items() if k in EventNames.model_fields}
        self.times = TimeParser(settings.timezone, settings.time_format)
        self.time_columns = [self.header.index(for_event[name]) for name in ("start", "end", "time") if name in for_event]
        case_map = CaseMap(for_case, settings.columns.attributes, settings.decimal)
        self._events = EventMap(for_event | {"case": self._case_key}, case_map, settings, self.times)
        self.cases: dict[str, Case] = {}
        self._sink = sink

    def row(self, row: Row) -> None:
        fields = row.fields or []
        if len(fields) != len(self.header):
            complaint = row.complaint or f"{len(fields)} fields, but the header has {len(self.header)}"
            return self._refuse_raw(row, "bad_row", complaint)
        if _UNDECODED.search("".join(fields)):
            return self._refuse_raw(row, "encoding", "the row is not UTF-8")
        raw = self._sink.redactor.flat(dict(zip(self.header, fields, strict=True)))
        try:
            self._event(row.position, raw)
        except BadValueError as error:
            self._sink.reject(row.position, error.code, error.reason, canonical({k: v for k, v in raw.items() if v != ""}))

    def _refuse_raw(self, row: Row, code: str, reason: str) -> None:
        self._sink.reject(row.position, code, reason, self._sink.redactor.raw(row.written or ",".join(row.fields or [])))

    def _event(self, position: int, raw: dict[str, Any]) -> None:
        case_id = raw.get(self._case_key, "")
        if not case_id.strip():
            raise BadValueError("no_case", f"{self._case_key} is empty")
        if self._sink.known(case_id):
            raise BadValueError("duplicate_case", f"the case {case_id} stands in another file of the source")
        case = self.cases.get(case_id) or Case(case_id, {}, [])
        event: Event = self._events.event(raw, position, case.fields)
        case.events.append(event)
        self.cases[case_id] = case


def _rows(file: BinaryIO) -> Iterator[Row]:
    """Every row that is not blank; after one that cannot be split it goes on with the next line."""
    with io.TextIOWrapper(file, encoding=_encoding(file), errors="surrogateescape", newline="") as text:
        first = text.readline(FIELD_BYTES)
        delimiter = max(_DELIMITERS, key=lambda d: (len(next(csv.reader([first], delimiter=d), [])), -_DELIMITERS.index(d)))
        read_lines: list[str] = []
        lines = csv.reader(_noted(chain([first], text), read_lines), delimiter=delimiter, strict=True)
        while True:
            position = lines.line_num + 1
            read_lines.clear()
            try:
                fields = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(position, None, f"the row cannot be split: {error}", "".join(read_lines))
                continue
            if fields:
                yield Row(position, fields)


def _noted(lines: Iterable[str], notes: list[str]) -> Iterator[str]:
    for line in lines:
        notes.append(line)
        yield line


def _encoding(file: BinaryIO) -> str:
    head = file.peek(4)[:4]  # type: ignore[attr-defined]
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def _header(first: Row | None) -> list[str]:
    """The column names; a nameless one is called by its place, a repeated one gets a number."""
    if first is None or first.fields is None:
        raise InputError("its first line is no header of columns" + (f" ({first.complaint})" if first else ""))
    if _UNDECODED.search("".join(first.fields)):
        raise InputError("its first line, the names of the columns, is not UTF-8")
    header: list[str] = []
    for place, name in enumerate(first.fields, start=1):
        plain = name.strip() or f"column {place}"
        header.append(plain if plain not in header else f"{plain} ({place})")
    return header


def _day_first(open_file: Callable[[], BinaryIO], reader: _CsvReader) -> bool | None:
    """Whether 03/04/2020 is in April: asked of the whole file, and only where its first row has a date of that form."""
    with open_file() as file:
        rows = _rows(file)
        next(rows)
        first = next(rows, None)
        if first is None or not any(is_numeric_date(value) for value in _times(first, reader.time_columns)):
            return None
        return day_comes_first(value for row in (first, *rows) for value in _times(row, reader.time_columns))


def _times(row: Row, columns: list[int]) -> list[str]:
    return [row.fields[c] for c in columns if row.fields is not None and c < len(row.fields)]


