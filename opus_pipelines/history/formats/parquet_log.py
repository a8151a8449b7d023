"""Reads event logs in Parquet, with the same columns as CSV. A record is a row, and its position counts from 1."""

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.columns.flat_log import ColumnLog
from opus_pipelines.history.columns.flat_rows import Rows, plain_values
from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.formats.table_log import ColumnLogOf, TableLog, column_names
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError

BATCH_ROWS, BATCH_BYTES = 10_000, 1 << 24
COLUMN_ROWS, COLUMN_BYTES = 1 << 18, 1 << 26  # of a batch that is read by columns
FEW_ROWS = 1_000  # up to which columns cost more than they save
UNPACKED_BYTES = 1 << 28  # of a .parquet.gz, which must lie in memory to be read
BOMB_ROWS, BOMB_RATIO = 5_000_000, 20  # rows: runs of one value take no space, so a few bytes may claim billions
BOMB_BYTES, BOMB_BYTES_RATIO = 1 << 25, 200  # likewise of a long text or list that every row repeats
AS_TEXT = 4  # characters that a byte of a nested value takes when it is written out


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every case into `sink` at the end of the file.

    Raises InputError if it is damaged or its columns are unclear.
    """
    read_by_columns(open_file, settings, sink)


def read_by_columns(
    open_file: Callable[[], BinaryIO],
    settings: SourceSettings,
    sink: Assembler,
    few: int = FEW_ROWS,
    log_of: ColumnLogOf = TableLog.by_columns,
) -> bool:
    """Does what `read` does, and returns whether it was done by columns.

    Files of fewer than `few` rows, and those that need it, are read by records. `log_of` makes the reading by columns.
    """
    with open_file() as file:
        seekable = file if file.seekable() else _in_memory(file)
        try:
            return _read(seekable, settings, sink, few, log_of)
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


def _read(file: BinaryIO, settings: SourceSettings, sink: Assembler, few: int, log_of: ColumnLogOf) -> bool:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    parquet = _opened(file)
    if parquet.metadata.num_rows > max(BOMB_ROWS, BOMB_RATIO * size):
        raise InputError(
            f"it claims {parquet.metadata.num_rows:,} rows in {size:,} bytes, as no log does; write it anew if "
            "it is one"
        )
    limit = max(BOMB_BYTES, BOMB_BYTES_RATIO * size)
    table = TableLog(column_names(parquet.schema_arrow.names, "column ({})"), settings, sink)
    log = log_of(table) if parquet.metadata.num_rows >= few else None
    if log is not None and _by_columns(_opened(file, log.distinct), table, log, sink, limit):
        return True
    for position, fields in enumerate(_rows(parquet, table.header, limit), start=1):
        table.row(position, fields)
        sink.report_progress(position)
    table.finish()
    return False


def _opened(file: BinaryIO, distinct: frozenset[str] = frozenset()) -> pq.ParquetFile:
    """Opens the file so that repeated texts are stored once, but for columns whose texts are mostly `distinct`."""
    plain = pq.ParquetFile(file)
    texts = [field.name for field in plain.schema_arrow if pa.types.is_string(field.type)]
    return pq.ParquetFile(file, metadata=plain.metadata, read_dictionary=[t for t in texts if t not in distinct])


def _by_columns(parquet: pq.ParquetFile, table: TableLog, log: ColumnLog, sink: Assembler, limit: int) -> bool:
    """Reads the file by columns. Returns False, with nothing read, if it must be read by records."""
    header = table.header
    position = 0
    names = log.wanted(
        pa.schema([field.with_name(name) for field, name in zip(parquet.schema_arrow, header, strict=True)])
    )
    wanted = names if parquet.schema_arrow.names == header else header
    try:
        for batch in _batches(parquet, limit, COLUMN_ROWS, COLUMN_BYTES, wanted):
            positions = np.arange(position + 1, position + 1 + batch.num_rows)
            columns = dict(zip(wanted, batch.columns, strict=True))
            log.add(table.kept(Rows(table.with_folder_values(columns, batch.num_rows), positions)))
            position += batch.num_rows
            sink.report_progress(position)
        log.finish()
    except (UnusualError, BadValueError):
        return False
    table.count_left_out()
    return True


def _rows(parquet: pq.ParquetFile, header: list[str], limit: int) -> Iterator[dict[str, Any]]:
    """Yields rows by column name. Raises InputError if they contain more than `limit` bytes."""
    for batch in _batches(parquet, limit, BATCH_ROWS, BATCH_BYTES):
        for values in zip(*(plain_values(column) for column in batch.columns), strict=True):
            yield dict(zip(header, values, strict=True))


def _batches(
    parquet: pq.ParquetFile, limit: int, rows: int, most_bytes: int, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields batches of at most that many rows and about that many bytes, with some columns of the file or all."""
    groups = [parquet.metadata.row_group(n) for n in range(parquet.metadata.num_row_groups)]
    widest = max((group.total_byte_size // group.num_rows for group in groups if group.num_rows), default=0)
    size, at_once = 0, max(1, min(rows, most_bytes // max(1, widest)))
    for some in _runs([group.num_rows for group in groups], at_once):
        for batch in parquet.iter_batches(at_once, row_groups=some, columns=columns):
            size += sum(_size(column) for column in batch.columns)
            if size > limit:
                raise InputError(
                    f"its rows say more than {limit >> 20} MiB, as no log of its size does; write it as CSV if it is "
                    "one"
                )
            yield batch


def _runs(sizes: list[int], rows: int) -> Iterator[list[int]]:
    """Yields row groups, by number, that have at least so many rows together.

    Arrow keeps the bytes of all row groups that it was asked for at once.
    """
    run: list[int] = []
    total = 0
    for number, size in enumerate(sizes):
        run.append(number)
        total += size
        if total >= rows:
            yield run
            run, total = [], 0
    if run:
        yield run


def _size(column: pa.Array) -> int:
    """Returns the number of bytes of a column. A text of a dictionary counts for every row that has it."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes) * (AS_TEXT if pa.types.is_nested(column.type) else 1)
    if not pa.types.is_string(column.type.value_type):
        return int(column.nbytes) + len(column) * int(column.dictionary.nbytes) // max(1, len(column.dictionary))
    return int(pc.sum(pc.binary_length(column.dictionary).cast(pa.int64()).take(column.indices)).as_py() or 0)
