"""Reads event logs in CSV: a row is an event, or a task with its own start and end.

The rows of a case may be anywhere in the file. Encoding and delimiter are those that source.toml states, else they are
detected.
"""

import codecs
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.columns.csv_blocks import CsvColumns, CsvSplitter, Row, rows_of
from opus_pipelines.history.columns.flat_log import ColumnLog, Refusal
from opus_pipelines.history.columns.flat_rows import Rows
from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.formats.encoding_detection import (
    Encoding,
    detect_encoding,
    row_above,
    table_head,
    with_groups,
)
from opus_pipelines.history.formats.table_log import ColumnLogOf, TableLog, column_names
from opus_pipelines.history.records.arrow_arrays import array, strings
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.formats import what_it_is
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError, day_comes_first, is_numeric_date

UNDECODED = re.compile("[\ud800-\udfff]")  # what the decoder makes of bytes that are no text in the encoding
_SAMPLE_LINES = 60
_HEAD_BYTES = 1 << 12


class TextLines:
    """Decodes the lines of one file. `encoding` is its encoding, and `mixed` tells which lines have another one."""

    def __init__(self, open_file: Callable[[], BinaryIO], settings: SourceSettings) -> None:
        self._detected: Encoding | None = None if settings.encoding else detect_encoding(open_file)
        self._names = [
            _with_mark(name) for name in (settings.encoding or [self._detected.name if self._detected else ""])
        ]
        self.encoding = ", ".join(settings.encoding) or self._names[0]
        self.mixed = self._detected.remark() if self._detected else None
        self.may_be_utf8 = (
            self._detected is not None and self._detected.mixed and not self._names[0].startswith("utf-8")
        )
        self._delimiter = settings.delimiter
        self.above = 0  # lines above the header
        self.groups: list[str] = []  # of columns, as the row above the header names them

    def lines(self, file: BinaryIO) -> Iterator[str]:
        """Yields every line with its line end. Bytes that cannot be decoded become lone surrogates."""
        with io.TextIOWrapper(file, encoding=self._names[0], errors="surrogateescape", newline="") as text:
            if len(self._names) == 1:
                yield from text
            else:
                for line in text:
                    yield self._otherwise(line) if UNDECODED.search(line) else line

    @property
    def is_several(self) -> bool:
        """Tells whether several encodings are stated, of which each line has its own."""
        return len(self._names) > 1

    def blocks(self, file: BinaryIO, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yields the text in parts as UTF-8, and whether a part is the last.

        Bytes that cannot be decoded become surrogates, whose UTF-8 no text has.
        """
        parts = self._utf8(file, size) if self._names[0] == "utf-8-sig" else self._decoded(file, size)
        before = next(parts, b"")
        for part in parts:
            yield before, False
            before = part
        yield before, True

    @staticmethod
    def _utf8(file: BinaryIO, size: int) -> Iterator[bytes]:
        rest, is_first = b"", True
        while part := file.read(size):
            whole = rest + (part.removeprefix(codecs.BOM_UTF8) if is_first else part)
            end, is_first = whole.rfind(b"\n") + 1, False
            yield _with_surrogates(whole[:end])
            rest = whole[end:]
        if rest:
            yield _with_surrogates(rest)

    def _decoded(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        with io.TextIOWrapper(file, encoding=self._names[0], errors="surrogateescape", newline="") as text:
            while part := text.read(size):
                yield part.encode("utf-8", "surrogatepass")

    def delimiter(self, open_file: Callable[[], BinaryIO]) -> str:
        """Returns the delimiter of the columns, and finds the header."""
        with open_file() as file:
            lines = list(islice(self.lines(file), _SAMPLE_LINES))
        self.above, self._delimiter = table_head("".join(lines), self._delimiter)
        self.groups = row_above(lines[: self.above], self._delimiter)
        return self._delimiter

    def rows(self, file: BinaryIO) -> Iterator[Row]:
        """Yields the header and every row below it; `delimiter` was asked for before."""
        return rows_of(islice(self.lines(file), self.above, None), self._delimiter or ",", self.above + 1)

    def misread(self, text: str) -> str | None:
        """Returns why a text was decoded wrongly, or None.

        It contains bytes that the encoding does not have, or UTF-8 in a file of another encoding.
        """
        if undecoded := UNDECODED.search(text):
            before = text[max(0, undecoded.start() - 20) : undecoded.start()]
            return f"it is not {self._shown()} (byte 0x{(ord(undecoded[0]) - 0xDC00) & 0xFF:02X} after {before!r})"
        if self.may_be_utf8 and not text.isascii() and _is_utf8(text, self._names[0]):
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


def _with_surrogates(content: bytes) -> bytes:
    """Returns UTF-8 in which each byte that is no text is a surrogate."""
    if content.isascii():
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")
    return content


def _is_utf8(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding, "surrogateescape").decode()
    except UnicodeError:
        return False
    return True


_LOOKED_AT = 1_000  # rows that are searched for dates such as 03/04/2020
BLOCK = 1 << 23
REMARK = 2  # words; a line that was cut off has fewer, as it has one field
_MOST_REMARKS = 20  # of a file; where more lines have one field, it is rather read with the wrong delimiter
FEW_BYTES = 1 << 16  # of a file up to which columns cost more than they save
_USUAL_COLUMNS = 256  # in a header; each further column costs as much for few rows as for many
_MOST_BYTES = 1 << 28  # of a block, which holds whole records


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every case into `sink` at the end of the file. Raises InputError if the columns are unclear."""
    read_by_columns(open_file, settings, sink)


def read_by_columns(
    open_file: Callable[[], BinaryIO],
    settings: SourceSettings,
    sink: Assembler,
    sizes: tuple[int, int] = (FEW_BYTES, BLOCK),
    log_of: ColumnLogOf = TableLog.by_columns,
) -> bool:
    """Does what `read` does, and returns whether it was done by columns.

    `sizes`: files of at most so many bytes are read by records (of a wide table accordingly more), as are those that
    need it, and the bytes of a block.
    `log_of` makes the reading by columns.
    """
    with open_file() as file:
        if (what := what_it_is(file.read(_HEAD_BYTES))) is not None:
            raise InputError(f"it is no CSV file, but {what}")
    text = TextLines(open_file, settings)
    sink.encoding, sink.mixed_encodings = text.encoding, text.mixed
    delimiter = text.delimiter(open_file)
    with open_file() as file:
        first = next(text.rows(file), None)
    table = TableLog(_header(first, text), settings, sink)
    table.is_padded = is_padded(first.fields or [] if first else [])
    table.times.day_first = _day_first(open_file, text, table.time_columns, sink)
    reader = _RowReader(table, text, delimiter, sink)
    header_lines = 0 if first is None else first.position + first.lines - 1
    if first is not None and _by_columns(open_file, reader, log_of(table), header_lines, sizes):
        return True
    with open_file() as file:
        for number, row in enumerate(text.rows(file)):
            if number:
                reader.take(row)
                sink.report_progress(number)
    table.finish()
    return False


def _by_columns(
    open_file: Callable[[], BinaryIO],
    reader: "_RowReader",
    log: ColumnLog | None,
    header_lines: int,
    sizes: tuple[int, int],
) -> bool:
    """Reads the file by columns. Returns False, with nothing read, if it must be read by records."""
    table, text = reader.table, reader.text
    if log is None or text.is_several:
        return False
    few = sizes[0] * (1 + len(table.header) // _USUAL_COLUMNS)
    line, records, rest = 1, 0, b""
    try:
        splitter = CsvSplitter(len(table.header), reader.delimiter, text.may_be_utf8)
        with open_file() as file:
            for piece, is_last in text.blocks(file, sizes[1]):
                if line == 1 and is_last and len(piece) <= few:
                    return False
                block = rest + piece
                if line == 1:
                    block = _without_lines(block, header_lines)
                    line += header_lines
                end = len(block) if is_last else block.rfind(b"\n") + 1
                split = splitter.split(block[:end], line, is_last)
                reader.add(split, log)
                line += split.lines
                records += len(split.positions) + len(split.odd)
                rest = block[split.left :]
                if len(rest) > _MOST_BYTES:
                    return False
                reader.sink.report_progress(records)
        log.finish()
    except (UnusualError, BadValueError):
        return False
    table.count_left_out()
    return True


def _without_lines(block: bytes, lines: int) -> bytes:
    """Returns a block without its first lines. Raises UnusualError if they do not all end in a line feed."""
    end = 0
    for _ in range(lines):
        end = block.find(b"\n", end) + 1
        if not end:
            raise UnusualError
    if re.search(rb"\r(?!\n)", block[:end]):
        raise UnusualError
    return block[end:]


@dataclass(frozen=True)
class _RowReader:
    """Passes rows on to the table, or refuses them."""

    table: TableLog
    text: TextLines
    delimiter: str
    sink: Assembler
    remarks: set[int] = field(default_factory=set)  # their positions

    def take(self, row: Row) -> None:
        """Reads one row."""
        if self._is_remark(row):
            self.sink.not_work(1)
        elif (refusal := self._refusal(row)) is not None:
            self.table.refuse(refusal.position, refusal.code, refusal.reason, refusal.record, refusal.case_id)
        else:
            self.table.row(row.position, dict(zip(self.table.header, row.fields or [], strict=True)))

    def add(self, split: CsvColumns, log: ColumnLog) -> None:
        """Adds the rows of a block to the reading by columns."""
        rows, remarks = [], 0
        for row in split.odd:
            if self._is_remark(row):
                remarks += 1
            elif (refusal := self._refusal(row)) is not None:
                log.refuse(refusal)
            else:
                rows.append(row)
        texts, positions = split.texts, split.positions
        if rows:
            odd = [strings(column) for column in zip(*(row.fields or [] for row in rows), strict=True)]
            positions = np.concatenate([positions, [row.position for row in rows]])
            order = np.argsort(positions, kind="stable")
            positions, places = positions[order], array(order, pa.int64())
            texts = [pa.concat_arrays(pair).take(places) for pair in zip(texts, odd, strict=True)]
        columns = dict(zip(self.table.header, texts, strict=True))
        self.table.leave_out(remarks)
        log.add(self.table.kept(Rows(self.table.with_folder_values(columns, len(positions)), positions)))

    def _is_remark(self, row: Row) -> bool:
        """Tells whether a row is one of a few sentences outside the table, such as "Exported on 3 May by Smith"."""
        fields = row.fields or []
        if len(fields) == 1 and not any(map(str.isalnum, fields[0])):
            return True  # the line below the names of columns, which lists for printers repeat on each page
        is_sentence = len(fields) == 1 < len(self.table.header) - 1 and len(fields[0].split()) > REMARK
        if is_sentence and len(self.remarks) < _MOST_REMARKS:
            self.remarks.add(row.position)
        return is_sentence and row.position in self.remarks

    def _refusal(self, row: Row) -> Refusal | None:
        """Returns why a row cannot be split into its columns, or None if it can be."""
        fields, header = row.fields or [], self.table.header
        if len(fields) != len(header):
            code, reason = "bad_row", row.complaint or f"{len(fields)} fields, but the header has {len(header)}"
        elif complaint := self.text.misread(" ".join(fields)):
            code, reason = "encoding", f"the row cannot be read: {complaint}"
        else:
            return None
        written = self.sink.redactor.raw(row.written or self.delimiter.join(row.fields or []))
        case = self.table.case_of(row.fields or row.written.split(self.delimiter))
        return Refusal(row.position, code, reason, written, case)


def is_padded(header: Sequence[str]) -> bool:
    """Tells whether the names of columns are filled up with blanks, as programs do that write cells of one width."""
    return len(header) > 1 and any(name.strip() and name != name.rstrip() for name in header)


def _header(first: Row | None, text: TextLines) -> list[str]:
    """Returns the column names, see `column_names`."""
    if first is None or first.fields is None:
        raise InputError("its first line is no header of columns" + (f" ({first.complaint})" if first else ""))
    if UNDECODED.search("".join(first.fields)):
        raise InputError(
            f"its first line, the names of the columns, cannot be read: {text.misread(' '.join(first.fields))}"
        )
    return column_names(with_groups([name.strip() for name in first.fields], text.groups))


def _day_first(
    open_file: Callable[[], BinaryIO], text: TextLines, time_columns: list[int], sink: Assembler
) -> bool | None:
    """Returns whether the day comes first in dates such as 03/04/2020.

    It reads the whole file, but only if one of the first rows has a date of that form.
    """
    with open_file() as file:
        rows = text.rows(file)
        next(rows)
        first = list(islice(rows, _LOOKED_AT))
        if not any(is_numeric_date(value) for row in first for value in _times(row, time_columns)):
            return None
        return sink.day_first_of(
            day_comes_first(value for row in chain(first, rows) for value in _times(row, time_columns))
        )


def _times(row: Row, columns: list[int]) -> list[str]:
    return [row.fields[c] for c in columns if row.fields is not None and c < len(row.fields)]
