"""Stores record batches before they are published: in memory while they are few, in a file when they are many.

Rows arrive in the order of the files and are published in the order of their key. To keep memory constant, the keys
alone are sorted, and the rows are then gathered in parts.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import Dataset
from opus_pipelines.event_logs.arrow_arrays import Longs, array, numbers
from opus_pipelines.lake.layout import PART

IN_MEMORY = 1 << 24
ROW_GROUP = 1 << 13
_GATHERED = 1 << 25  # bytes that are sorted at once, where a row group has no more


class Spool:
    """Takes batches one by one.

    It writes to `path` only if they exceed `in_memory` bytes, or on `finish(to_disk=True)`.
    """

    def __init__(self, path: Path, schema: pa.Schema, in_memory: int = IN_MEMORY) -> None:
        self.bytes = 0
        self._path, self._schema, self._limit = path, schema, in_memory
        self._kept: list[pa.RecordBatch] = []
        self._writer: pa.RecordBatchFileWriter | None = None
        self._on_disk = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds one batch."""
        self.bytes += batch.nbytes
        self._kept.append(batch)
        if self._writer is not None or self.bytes > self._limit:
            self._write()

    def finish(self, to_disk: bool = False) -> "Spool":
        """Ends the spool. `to_disk`: another process will read the batches."""
        if to_disk and self._kept:
            self._write()
        if self._writer is not None:
            self._writer.close()
            self._writer, self._on_disk = None, True
        return self

    def drop(self) -> None:
        """Deletes all batches."""
        self.finish()
        self._kept, self._on_disk = [], False
        self._path.unlink(missing_ok=True)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all batches in their order. Those in the file are memory-mapped, not loaded."""
        yield from self._kept
        if self._on_disk:
            with pa.memory_map(str(self._path)) as mapped:
                file = pa.ipc.open_file(mapped)
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)

    def _write(self) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
        for batch in self._kept:
            self._writer.write_batch(batch)
        self._kept = []


def write_sorted(
    dataset: Dataset, spools: Sequence[Spool], folder: Path, change: Callable[[pa.Table], pa.Table] | None = None
) -> Path:
    """Writes all rows of `spools`, sorted by the dataset's key, as one file in `folder`, and returns its path.

    The folder is created. The write is not atomic: use a staging folder. `change` is applied to every part before it is
    written; it must not change keys.
    """
    named = pa.schema([dataset.schema.field(key) for key in dataset.key])
    keys = pa.Table.from_batches([batch.select(named.names) for spool in spools for batch in spool.batches()], named)
    order = numbers(
        pc.sort_indices(keys, sort_keys=[(k, "ascending", "at_start") for k in dataset.key]), np.uint64
    ).astype(np.int64)
    bytes_a_row = max(1, sum(spool.bytes for spool in spools) // max(1, len(order)))
    rows = max(1, _GATHERED // bytes_a_row // ROW_GROUP) * ROW_GROUP
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PART
    with pq.ParquetWriter(path, dataset.schema, compression="zstd") as writer:
        for start in range(0, len(order), rows):
            part = _gathered(dataset.schema, spools, order[start : start + rows])
            part = part if change is None else change(part)
            for first in range(0, len(part), ROW_GROUP):
                writer.write_table(part.slice(first, ROW_GROUP).combine_chunks(), row_group_size=ROW_GROUP)
    return path


def _gathered(schema: pa.Schema, spools: Sequence[Spool], rows: Longs) -> pa.Table:
    """Returns the rows at these positions of all spools together, in this order."""
    wanted = np.argsort(rows, kind="stable")
    sorted_rows = rows[wanted]
    pieces, start = [], 0
    for spool in spools:
        for batch in spool.batches():
            first, last = np.searchsorted(sorted_rows, (start, start + batch.num_rows))
            if first < last:
                pieces.append(batch.take(array(sorted_rows[first:last] - start, pa.int64())))
            start += batch.num_rows
    back = np.empty(len(rows), np.int64)
    back[wanted] = np.arange(len(rows))
    return pa.Table.from_batches(pieces, schema).combine_chunks().take(array(back, pa.int64()))
