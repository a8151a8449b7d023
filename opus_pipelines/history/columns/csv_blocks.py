"""Splits CSV into rows one by one, and blocks of it into columns.

Single rows are split by Python's module csv in its strict mode. Of a block, all lines that are plain are split at once.
A plain line has as many fields as the header, and each of its quotation marks begins or ends a field. Lines of another
number of fields, quotation marks inside a field, records of several lines and bytes that are no text are odd. They are
split one by one, and the plain lines after them go on by columns.

A block without odd lines is split by Arrow's reader, which is several times as fast, but also reads what is not plain:
quotation marks inside a field, records of several lines, blank lines. So a block is given to it first, and its result
is used only if the bytes that it left out prove that none of these occur.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.records.arrow_arrays import Bools, Longs, array, text_offsets

FIELD_BYTES = 1 << 22


@dataclass(slots=True)
class Row:
    """A row: the line on which it starts, and its fields, or None, the reason why it cannot be split, and its text.

    `lines` is the number of lines that it takes.
    """

    position: int
    fields: list[str] | None
    complaint: str = ""
    written: str = ""
    lines: int = 1


def rows_of(lines: Iterable[str], delimiter: str, first: int = 1) -> Iterator[Row]:
    """Yields every row that is not blank, from line number `first` on.

    After a row that cannot be split it continues with the next line.
    """
    csv.field_size_limit(FIELD_BYTES)
    read_lines: list[str] = []
    reader = csv.reader(_noted(lines, read_lines), delimiter=delimiter, strict=True)
    while True:
        position = reader.line_num + first
        read_lines.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            written = "".join(read_lines)
            yield Row(position, None, f"the row cannot be split: {error}", written, len(read_lines))
            continue
        if fields:
            yield Row(position, fields, lines=len(read_lines))


def _noted(lines: Iterable[str], notes: list[str]) -> Iterator[str]:
    for line in lines:
        notes.append(line)
        yield line


_QUOTE, _LF, _CR = ord('"'), ord("\n"), ord("\r")
_MARK = b"\xef\xbb\xbf"  # Arrow removes a byte order mark wherever a block begins


def plain_columns(block: bytes, columns: int, delimiter: str) -> list[pa.Array] | None:
    """Returns the texts of each column of a block of whole lines, each of which ends with a line feed.

    None: some line is not plain, or it cannot be told cheaply that all are.
    """
    if not block or block.startswith(_MARK):
        return None
    returns = block.count(b"\r\n") if b"\r" in block else 0
    if returns != block.count(b"\r"):
        return None
    structural = _structural_quotes(block, ord(delimiter)) if b'"' in block else 0
    if structural is None:
        return None
    lines = block.count(b"\n")
    try:
        texts = _by_arrow(block, columns, delimiter)
    except pa.ArrowInvalid:  # another number of fields in some line, or bytes that are no text
        return None
    # A record of several lines and a blank line make fewer rows than lines, since no line end stands alone.
    if any(len(column) != lines for column in texts):
        return None
    offsets = [text_offsets(column) for column in texts]
    # What is in no value are delimiters, line ends, and the quotation marks that Arrow took for the begin or the end of
    # a field. If these are all quotation marks of the block, none stands inside a value.
    if len(block) - sum(int(o[-1]) - int(o[0]) for o in offsets) != lines * columns + returns + structural:
        return None
    longest = sum(int(np.diff(o).max()) + len('"",') for o in offsets)
    return texts if longest <= FIELD_BYTES else None


def _structural_quotes(block: bytes, delimiter: int) -> int | None:
    """Returns the number of quotation marks, None if one of them may be neither the first nor the last of a field.

    A field that begins with a delimiter (`,",`) is not looked into. Without such fields a mark with a delimiter or a
    line end behind it ends a field, so that these must be half of all.
    """
    data = np.frombuffer(block, np.uint8)
    quote = data == _QUOTE
    separator = (data == delimiter) | (data == _LF)
    ends = quote[:-1] & (separator[1:] | (data[1:] == _CR))
    if ends[0] or (ends[1:] & separator[:-2]).any():
        return None
    quotes = int(np.count_nonzero(quote))
    return quotes if quotes == 2 * int(np.count_nonzero(ends)) else None


def _by_arrow(block: bytes, columns: int, delimiter: str) -> list[pa.Array]:
    names = [str(place) for place in range(columns)]
    table = arrow_csv.read_csv(
        pa.BufferReader(block),
        arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        arrow_csv.ParseOptions(delimiter=delimiter, double_quote=False),
        arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )
    return [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in table.columns]


_QUOTE, _LF, _CR = ord('"'), ord("\n"), ord("\r")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")  # what `surrogatepass` makes of bytes that are no text
_ODD_SHARE = 4  # a block with more odd lines than one in so many is not worth columns
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class CsvColumns:
    """What came of a block.

    `texts` are the columns of the plain rows in the order of the header, and `positions` the line of each row. `odd`
    are the other rows. `left` is where the block's last record begins if it does not end in the block, else its length,
    and `lines` the number of lines before it.
    """

    texts: list[pa.Array]
    positions: Longs
    odd: list[Row]
    left: int
    lines: int


class CsvSplitter:
    """Splits blocks of one file.

    A caller that reads a part of a file by its range of bytes gives the whole lines that begin in the range: it looks
    for the first line end before the range and for the first one at or after its end, as splits of text files are
    usually read. Then `line` counts within the part. It must not do so if a record may have several lines, which shows
    in odd rows whose `lines` is more than one.
    """

    def __init__(self, columns: int, delimiter: str, not_ascii_is_odd: bool = False) -> None:
        if not delimiter.isascii():
            raise UnusualError
        self._columns, self._delimiter, self._byte = columns, delimiter, ord(delimiter)
        self._not_ascii_is_odd = not_ascii_is_odd

    def split(self, block: bytes, line: int, is_last: bool) -> CsvColumns:
        """Splits whole lines of UTF-8, in which bytes that are no text stand as surrogates; `line` numbers the first.

        Every line but the file's last ends with a line feed, with or without a carriage return before it. Raises
        UnusualError if other line ends occur or most lines are odd.
        """
        ended = block if block.endswith(b"\n") else block + b"\n"
        if not self._not_ascii_is_odd or block.isascii():
            plain = plain_columns(ended, self._columns, self._delimiter)
            if plain is not None:
                return CsvColumns(plain, np.arange(line, line + len(plain[0])), [], len(block), len(plain[0]))
        return self._by_lines(block, ended, line, is_last)

    def _by_lines(self, block: bytes, ended: bytes, line: int, is_last: bool) -> CsvColumns:
        """Splits a block that has odd lines, or may have some."""
        data = np.frombuffer(ended, np.uint8)
        ends = np.flatnonzero(data == _LF)
        starts = np.concatenate(([0], ends[:-1] + 1))
        returns = np.flatnonzero(data == _CR)
        stops = ends
        if len(returns):
            if (data[returns + 1] != _LF).any():
                raise UnusualError
            stops = ends - (data[np.maximum(ends - 1, 0)] == _CR) * (ends > starts)
        separator = (data == self._byte) | (data == _LF)
        odd = self._not_text(ended, data, ends) | (stops - starts > FIELD_BYTES)
        has_quotes = bool((data == _QUOTE).any())
        if has_quotes:
            odd |= self._quoted(data, separator, starts, stops, ends)
        places = np.flatnonzero(separator)
        last = np.searchsorted(places, ends)
        blank = stops == starts
        odd |= (np.diff(last, prepend=-1) != self._columns) & ~blank
        if np.count_nonzero(odd) * _ODD_SHARE > len(ends) + 100:
            raise UnusualError
        rows, left = self._one_by_one(block, odd, starts, line, is_last)
        good = np.flatnonzero(~odd & ~blank & (starts < left))
        fields = places[last[good][:, None] + np.arange(1 - self._columns, 1)]
        begin = np.empty_like(fields)
        begin[:, 0] = starts[good]
        begin[:, 1:] = fields[:, :-1] + 1
        fields[:, -1] = stops[good]
        if has_quotes:
            quoted = (data[np.minimum(begin, len(data) - 1)] == _QUOTE) & (fields > begin)
            begin, fields = begin + quoted, fields - quoted
        texts = [_column(ended, begin[:, place], fields[:, place]) for place in range(self._columns)]
        return CsvColumns(texts, good + line, rows, left, int(np.searchsorted(starts, left)))

    def _not_text(self, block: bytes, data: Bytes, ends: Longs) -> Bools:
        odd = np.zeros(len(ends), bool)
        if block.isascii():
            return odd
        if self._not_ascii_is_odd:
            odd[np.searchsorted(ends, np.flatnonzero(data >= 128))] = True
        else:
            odd[np.searchsorted(ends, [match.start() for match in _SURROGATE.finditer(block)])] = True
        return odd

    def _quoted(self, data: Bytes, separator: Bools, starts: Longs, stops: Longs, ends: Longs) -> Bools:
        """Tells which lines have odd quotation marks, and removes the separators inside quotation marks."""
        marks = np.flatnonzero(data == _QUOTE)
        line = np.searchsorted(ends, marks)
        counts = np.bincount(line, minlength=len(ends))
        number = np.arange(len(marks)) - (np.cumsum(counts) - counts)[line]
        opens = number % 2 == 0
        before, behind = data[np.maximum(marks - 1, 0)], data[marks + 1]
        good = np.where(
            opens,
            (marks == starts[line]) | (before == self._byte),
            (marks + 1 == stops[line]) | (behind == self._byte),
        )
        odd = counts % 2 == 1
        odd[line[~good]] = True
        inner = marks[~odd[line]]
        inside = np.zeros(len(data), np.uint8)
        inside[inner] = 1
        np.bitwise_xor.accumulate(inside, out=inside)
        separator &= ~(inside.view(bool) & (data == self._byte))
        return odd

    def _one_by_one(self, block: bytes, odd: Bools, starts: Longs, line: int, is_last: bool) -> tuple[list[Row], int]:
        """Returns the odd rows and where the rest of the block begins. All lines of odd rows become odd."""
        rows: list[Row] = []
        reached = 0
        for first in np.flatnonzero(odd).tolist():
            if first < reached:
                continue
            lines = _Lines(block, starts, first)
            row = next(iter(rows_of(lines, self._delimiter, line + first)), None)
            if lines.exhausted and not is_last:
                return rows, int(starts[first])
            reached = first + (row.lines if row is not None else 1)
            odd[first:reached] = True
            if row is not None:
                rows.append(row)
        return rows, len(block)


class _Lines:
    """Yields the lines of a block from one on, as text. `exhausted`: more than the last one was asked for."""

    def __init__(self, block: bytes, starts: Longs, first: int) -> None:
        self._block, self._starts, self._first = block, starts, first
        self.exhausted = False

    def __iter__(self) -> Iterator[str]:
        for number in range(self._first, len(self._starts)):
            end = int(self._starts[number + 1]) if number + 1 < len(self._starts) else len(self._block)
            yield self._block[int(self._starts[number]) : end].decode("utf-8", "surrogatepass")
        self.exhausted = True


def _column(block: bytes, begin: Longs, end: Longs) -> pa.Array:
    """Returns the texts between two positions each, which ascend."""
    offsets = np.empty(2 * len(begin) + 1, np.int32)
    offsets[:-1:2], offsets[1::2] = begin, end
    offsets[-1] = offsets[-2] if len(begin) else 0
    texts = pa.Array.from_buffers(pa.string(), 2 * len(begin), [None, pa.py_buffer(offsets), pa.py_buffer(block)])
    return texts.take(array(np.arange(0, 2 * len(begin), 2, dtype=np.int32), pa.int32()))
