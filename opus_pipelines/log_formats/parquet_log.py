"""Reads event logs in Parquet, with the same columns as CSV. A record is a row, and its position counts from 1."""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.event_logs.assembler import Assembler
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.log_formats.table_log import TableLog

BATCH_ROWS, BATCH_BYTES = 10_000, 1 << 24
UNPACKED_BYTES = 1 << 28  # of a .parquet.gz, which must lie in memory to be read
BOMB_ROWS, BOMB_RATIO = 5_000_000, 20  # rows: runs of one value take no space, so a few bytes may claim billions
BOMB_BYTES, BOMB_BYTES_RATIO = 1 << 25, 200  # likewise of a long text or list that every row repeats
AS_TEXT = 4  # characters that a byte of a nested value takes when it is written out
_EPOCH = datetime(1970, 1, 1)


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every case into `sink` at the end of the file.

    Raises InputError if it is damaged or its columns are unclear.
    """
    with open_file() as file:
        seekable = file if file.seekable() else _in_memory(file)
        try:
            _read(seekable, settings, sink)
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"the Parquet file is broken or cut off ({' '.join(str(error).split())[:200]}); fetch it again"
            ) from None


def _in_memory(file: BinaryIO) -> BinaryIO:
    content = file.read(UNPACKED_BYTES + 1)
    if len(content) > UNPACKED_BYTES:
        raise InputError(
            f"it unpacks to more than {UNPACKED_BYTES >> 20} MiB; Parquet is packed already, so leave the .gz away"
        )
    return io.BytesIO(content)


def _read(file: BinaryIO, settings: SourceSettings, sink: Assembler) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    parquet = pq.ParquetFile(file)
    texts = [field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)]
    parquet = pq.ParquetFile(file, metadata=parquet.metadata, read_dictionary=texts)  # repeated values are stored once
    if parquet.metadata.num_rows > max(BOMB_ROWS, BOMB_RATIO * size):
        raise InputError(
            f"it claims {parquet.metadata.num_rows:,} rows in {size:,} bytes, as no log does; write it anew if "
            "it is one"
        )
    table = TableLog(_header(parquet.schema_arrow.names), settings, sink)
    for position, fields in enumerate(_rows(parquet, table.header, max(BOMB_BYTES, BOMB_BYTES_RATIO * size)), start=1):
        table.row(position, fields)
        sink.report_progress(position)
    table.finish()


def _header(names: list[str]) -> list[str]:
    """Returns the column names. A repeated name gets its position as a number."""
    header: dict[str, None] = {}
    for place, name in enumerate(names, start=1):
        plain = name or f"column ({place})"
        while plain in header:
            plain = f"{plain} ({place})"
        header[plain] = None
    return list(header)


def _rows(parquet: pq.ParquetFile, header: list[str], limit: int) -> Iterator[dict[str, Any]]:
    """Yields rows by column name. Raises InputError if they contain more than `limit` bytes."""
    groups = [parquet.metadata.row_group(n) for n in range(parquet.metadata.num_row_groups)]
    widest = max((group.total_byte_size // group.num_rows for group in groups if group.num_rows), default=0)
    size = 0
    for batch in parquet.iter_batches(max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, widest)))):
        size += sum(_size(column) for column in batch.columns)
        if size > limit:
            raise InputError(
                f"its rows say more than {limit >> 20} MiB, as no log of its size does; write it as CSV if it is one"
            )
        for values in zip(*(_values(column) for column in batch.columns), strict=True):
            yield dict(zip(header, values, strict=True))


def _size(column: pa.Array) -> int:
    """Returns the number of bytes of a column. A text of a dictionary counts for every row that has it."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes) * (AS_TEXT if pa.types.is_nested(column.type) else 1)
    if not pa.types.is_string(column.type.value_type):
        return int(column.nbytes) + len(column) * int(column.dictionary.nbytes) // max(1, len(column.dictionary))
    return int(pc.sum(pc.binary_length(column.dictionary).cast(pa.int64()).take(column.indices)).as_py() or 0)


def _values(column: pa.Array) -> list[Any]:
    """Converts a column to plain values: text and JSON types unchanged, all others as ISO text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        words = _values(column.dictionary)
        return [None if place is None else words[place] for place in column.indices.to_pylist()]
    if pa.types.is_timestamp(kind):  # as numbers: Arrow's conversion imports pandas and fails outside Python's years
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).to_pylist()
        return [None if m is None else _moment(m, "" if kind.tz is None else "+00:00") for m in micros]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_floating(kind):
        return list(column.to_pylist())
    try:
        return [_plain(value) for value in column.to_pylist()]
    except OverflowError:  # dates and durations that Python has not
        return [_sayable(value) for value in column]


def _sayable(value: pa.Scalar) -> Any:
    try:
        return _plain(value.as_py())
    except OverflowError:
        return f"a {value.type} out of range"


def _moment(micros: int, zone: str) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat() + zone
    except OverflowError:
        return f"{micros} microseconds"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, Decimal | timedelta) else value
