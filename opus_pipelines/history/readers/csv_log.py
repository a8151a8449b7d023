"""Event logs as CSV: a row is an event, or a task with its own start and end. The rows of a case may lie anywhere in the file."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from opus_pipelines.errors import InputError
from opus_pipelines.history.assembler import Assembler
from opus_pipelines.history.readers.table_log import TableLog
from opus_pipelines.history.source_settings import SourceSettings
from opus_pipelines.history.times import day_comes_first, is_numeric_date

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
        rows = _rows(file)
        table = TableLog(_header(next(rows, None)), settings, sink)
        table.times.day_first = _day_first(open_file, table.time_columns)
        for number, row in enumerate(rows):
            _take(row, table, sink)
            sink.passed(number)
    table.finish()


def _take(row: Row, table: TableLog, sink: Assembler) -> None:
    fields = row.fields or []
    if len(fields) != len(table.header):
        return _refuse(row, "bad_row", row.complaint or f"{len(fields)} fields, but the header has {len(table.header)}", table, sink)
    if _UNDECODED.search("".join(fields)):
        return _refuse(row, "encoding", "the row is not UTF-8", table, sink)
    table.row(row.position, dict(zip(table.header, fields, strict=True)))


def _refuse(row: Row, code: str, reason: str, table: TableLog, sink: Assembler) -> None:
    table.refuse(row.position, code, reason, sink.redactor.raw(row.written or ",".join(row.fields or [])))


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
    header: dict[str, None] = {}
    for place, name in enumerate(first.fields, start=1):
        plain = name.strip() or f"column {place}"
        while plain in header:
            plain = f"{plain} ({place})"
        header[plain] = None
    return list(header)


def _day_first(open_file: Callable[[], BinaryIO], time_columns: list[int]) -> bool | None:
    """Whether 03/04/2020 is in April: asked of the whole file, and only where its first row has a date of that form."""
    with open_file() as file:
        rows = _rows(file)
        next(rows)
        first = next(rows, None)
        if first is None or not any(is_numeric_date(value) for value in _times(first, time_columns)):
            return None
        return day_comes_first(value for row in (first, *rows) for value in _times(row, time_columns))


def _times(row: Row, columns: list[int]) -> list[str]:
    return [row.fields[c] for c in columns if row.fields is not None and c < len(row.fields)]


