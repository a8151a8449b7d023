"""Event logs as CSV: a row is an event, or a task with its own start and end. The rows of a case may lie anywhere in the file."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO

from opus_pipelines.errors import InputError
from opus_pipelines.history.assembler import Assembler
from opus_pipelines.history.readers.table_log import TableLog
from opus_pipelines.history.readers.text_lines import UNDECODED, TextLines
from opus_pipelines.history.source_settings import SourceSettings
from opus_pipelines.history.times import day_comes_first, is_numeric_date

FIELD_BYTES = 1 << 22
_LOOKED_AT = 1_000  # rows by which it is told whether the file's dates are of a form whose meaning the column must show


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
    text = TextLines(open_file, settings)
    sink.encoding, sink.mixed_encodings = text.encoding, text.mixed
    delimiter = text.delimiter(open_file)
    with open_file() as file:
        rows = _rows(text.lines(file), delimiter)
        table = TableLog(_header(next(rows, None), text), settings, sink)
        table.times.day_first = _day_first(open_file, text, delimiter, table.time_columns, sink)
        for number, row in enumerate(rows):
            _take(row, table, text, delimiter, sink)
            sink.passed(number)
    table.finish()


def _take(row: Row, table: TableLog, text: TextLines, delimiter: str, sink: Assembler) -> None:
    fields = row.fields or []
    if len(fields) != len(table.header):
        reason = row.complaint or f"{len(fields)} fields, but the header has {len(table.header)}"
        return _refuse(row, "bad_row", reason, table, delimiter, sink)
    if complaint := text.misread(" ".join(fields)):
        return _refuse(row, "encoding", f"the row cannot be read: {complaint}", table, delimiter, sink)
    table.row(row.position, dict(zip(table.header, fields, strict=True)))


def _refuse(row: Row, code: str, reason: str, table: TableLog, delimiter: str, sink: Assembler) -> None:
    written = sink.redactor.raw(row.written or delimiter.join(row.fields or []))
    table.refuse(row.position, code, reason, written, table.case_of(row.fields or row.written.split(delimiter)))


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[Row]:
    """Every row that is not blank; after one that cannot be split it goes on with the next line."""
    read_lines: list[str] = []
    reader = csv.reader(_noted(lines, read_lines), delimiter=delimiter, strict=True)
    while True:
        position = reader.line_num + 1
        read_lines.clear()
        try:
            fields = next(reader)
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


def _header(first: Row | None, text: TextLines) -> list[str]:
    """The column names; a nameless one is called by its place, a repeated one gets a number."""
    if first is None or first.fields is None:
        raise InputError("its first line is no header of columns" + (f" ({first.complaint})" if first else ""))
    if UNDECODED.search("".join(first.fields)):
        raise InputError(f"its first line, the names of the columns, cannot be read: {text.misread(' '.join(first.fields))}")
    header: dict[str, None] = {}
    for place, name in enumerate(first.fields, start=1):
        plain = name.strip() or f"column {place}"
        while plain in header:
            plain = f"{plain} ({place})"
        header[plain] = None
    return list(header)


def _day_first(
    open_file: Callable[[], BinaryIO], text: TextLines, delimiter: str, time_columns: list[int], sink: Assembler
) -> bool | None:
    """Whether 03/04/2020 is in April: asked of the whole file, and only where one of its first rows has a date of that form."""
    with open_file() as file:
        rows = _rows(text.lines(file), delimiter)
        next(rows)
        first = list(islice(rows, _LOOKED_AT))
        if not any(is_numeric_date(value) for row in first for value in _times(row, time_columns)):
            return None
        return sink.day_first_of(day_comes_first(value for row in chain(first, rows) for value in _times(row, time_columns)))


def _times(row: Row, columns: list[int]) -> list[str]:
    return [row.fields[c] for c in columns if row.fields is not None and c < len(row.fields)]


