"""Splits a block of CSV with Arrow's reader, if all lines of it are plain as `csv_blocks` means it.

Arrow is several times as fast, but it also reads what is not plain: quotation marks inside a field, records of several
lines, blank lines. So a block is given to it first and its result is then used only if the bytes that it left out prove
that none of these occur.
"""

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from opus_pipelines.history.columns.csv_records import FIELD_BYTES
from opus_pipelines.history.records.arrow_arrays import text_offsets

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
