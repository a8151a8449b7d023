"""Reads event logs in CSV: a row is an event, or a task with its own start and end.

The rows of a case may be anywhere in the file. Encoding and delimiter are those that source.toml states, else they are
detected.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.event_logs.assembler import Assembler
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.event_logs.times import day_comes_first, is_numeric_date
from opus_pipelines.log_formats.encoding_detection import Encoding, detect_delimiter, detect_encoding
from opus_pipelines.log_formats.table_log import TableLog

UNDECODED = re.compile("[\ud800-\udfff]")  # what the decoder makes of bytes that are no text in the encoding
_SAMPLE_LINES = 60


class TextLines:
    """Decodes the lines of one file. `encoding` is its encoding, and `mixed` tells which lines have another one."""

    def __init__(self, open_file: Callable[[], BinaryIO], settings: SourceSettings) -> None:
        self._detected: Encoding | None = None if settings.encoding else detect_encoding(open_file)
        self._names = [
            _with_mark(name) for name in (settings.encoding or [self._detected.name if self._detected else ""])
        ]
        self.encoding = ", ".join(settings.encoding) or self._names[0]
        self.mixed = self._detected.remark() if self._detected else None
        self._may_be_utf8 = (
            self._detected is not None and self._detected.mixed and not self._names[0].startswith("utf-8")
        )
        self._delimiter = settings.delimiter

    def lines(self, file: BinaryIO) -> Iterator[str]:
        """Yields every line with its line end. Bytes that cannot be decoded become lone surrogates."""
        with io.TextIOWrapper(file, encoding=self._names[0], errors="surrogateescape", newline="") as text:
            if len(self._names) == 1:
                yield from text
            else:
                for line in text:
                    yield self._otherwise(line) if UNDECODED.search(line) else line

    def delimiter(self, open_file: Callable[[], BinaryIO]) -> str:
        """Returns the delimiter of the columns."""
        if self._delimiter is None:
            with open_file() as file:
                self._delimiter = detect_delimiter("".join(islice(self.lines(file), _SAMPLE_LINES)))
        return self._delimiter

    def misread(self, text: str) -> str | None:
        """Returns why a text was decoded wrongly, or None.

        It contains bytes that the encoding does not have, or UTF-8 in a file of another encoding.
        """
        if undecoded := UNDECODED.search(text):
            before = text[max(0, undecoded.start() - 20) : undecoded.start()]
            return f"it is not {self._shown()} (byte 0x{(ord(undecoded[0]) - 0xDC00) & 0xFF:02X} after {before!r})"
        if self._may_be_utf8 and not text.isascii() and _is_utf8(text, self._names[0]):
            return f"it is UTF-8, while most of the file is {self._shown()}"
        return None

    def _shown(self) -> str:
        return self.encoding.replace("utf-8-sig", "utf-8").upper() if self.encoding.startswith("utf") else self.encoding

    def _otherwise(self, line: str) -> str:
        raw = line.encode(self._names[0].replace("utf-8-sig", "utf-8"), "surrogateescape")
        for name in self._names[1:]:
            try:
                return raw.decode(name)
            except UnicodeDecodeError:
                continue
        return line


def _with_mark(name: str) -> str:
    """Returns the encoding that removes a byte order mark of UTF-8, which is no part of the first column's name."""
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def _is_utf8(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding, "surrogateescape").decode()
    except UnicodeError:
        return False
    return True


FIELD_BYTES = 1 << 22
_LOOKED_AT = 1_000  # rows that are searched for dates such as 03/04/2020


@dataclass(slots=True)
class Row:
    """A row: the line on which it starts, and its fields, or None, the reason why it cannot be split, and its text."""

    position: int
    fields: list[str] | None
    complaint: str = ""
    written: str = ""


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every case into `sink` at the end of the file. Raises InputError if the columns are unclear."""
    csv.field_size_limit(FIELD_BYTES)
    text = TextLines(open_file, settings)
    sink.encoding, sink.mixed_encodings = text.encoding, text.mixed
    delimiter = text.delimiter(open_file)
    with open_file() as file:
        rows = _rows(text.lines(file), delimiter)
        table = TableLog(_header(next(rows, None), text), settings, sink)
        table.times.day_first = _day_first(open_file, text, delimiter, table.time_columns, sink)
        reader = _RowReader(table, text, delimiter, sink)
        for number, row in enumerate(rows):
            reader.take(row)
            sink.report_progress(number)
    table.finish()


@dataclass(frozen=True)
class _RowReader:
    """Passes rows on to the table, or refuses them."""

    table: TableLog
    text: TextLines
    delimiter: str
    sink: Assembler

    def take(self, row: Row) -> None:
        fields, header = row.fields or [], self.table.header
        if len(fields) != len(header):
            reason = row.complaint or f"{len(fields)} fields, but the header has {len(header)}"
            return self._refuse(row, "bad_row", reason)
        if complaint := self.text.misread(" ".join(fields)):
            return self._refuse(row, "encoding", f"the row cannot be read: {complaint}")
        self.table.row(row.position, dict(zip(header, fields, strict=True)))

    def _refuse(self, row: Row, code: str, reason: str) -> None:
        written = self.sink.redactor.raw(row.written or self.delimiter.join(row.fields or []))
        case = self.table.case_of(row.fields or row.written.split(self.delimiter))
        self.table.refuse(row.position, code, reason, written, case)


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[Row]:
    """Yields every row that is not blank. After a row that cannot be split it continues with the next line."""
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
    """Returns the column names.

    A column without a name is named by its position, and a repeated name gets a number.
    """
    if first is None or first.fields is None:
        raise InputError("its first line is no header of columns" + (f" ({first.complaint})" if first else ""))
    if UNDECODED.search("".join(first.fields)):
        raise InputError(
            f"its first line, the names of the columns, cannot be read: {text.misread(' '.join(first.fields))}"
        )
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
    """Returns whether the day comes first in dates such as 03/04/2020.

    It reads the whole file, but only if one of the first rows has a date of that form.
    """
    with open_file() as file:
        rows = _rows(text.lines(file), delimiter)
        next(rows)
        first = list(islice(rows, _LOOKED_AT))
        if not any(is_numeric_date(value) for row in first for value in _times(row, time_columns)):
            return None
        return sink.day_first_of(
            day_comes_first(value for row in chain(first, rows) for value in _times(row, time_columns))
        )


def _times(row: Row, columns: list[int]) -> list[str]:
    return [row.fields[c] for c in columns if row.fields is not None and c < len(row.fields)]
