"""Splits a block of CSV into columns: all lines that are plain at once, the others with the module csv.

A plain line has as many fields as the header, and each of its quotation marks begins or ends a field. Lines of another
number of fields, quotation marks inside a field, records of several lines and bytes that are no text are odd. They are
split one by one, and the plain lines after them go on by columns. A block without odd lines is split by Arrow.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.history.columns.csv_records import FIELD_BYTES, Row, rows_of
from opus_pipelines.history.columns.plain_csv import plain_columns
from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.records.arrow_arrays import Bools, Longs, array

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
