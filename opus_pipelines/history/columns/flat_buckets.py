"""Parts of a flat log, on disk in buckets of whole cases once they are many, so that memory does not grow with rows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.flat_rows import Rows, RowsPart
from opus_pipelines.history.columns.flat_texts import coded_texts
from opus_pipelines.history.records.arrow_arrays import Ints, Longs, array, booleans, booleans_of, numbers, validity
from opus_pipelines.history.records.arrow_batches import text_hashes

PARTS_IN_MEMORY = 1 << 28  # bytes of the parts that are kept before they are stored on disk
_FLAT_BUCKETS = 32
_TIME, _POSITION, _BAD = "time of ", "position", "bad"


class FlatBuckets:
    """Stores parts. `case` names the column of the case, by which rows are put into buckets.

    `encode` encodes the texts of a column that comes back from disk. The rows that may be rejected stay in memory, as
    they were written.
    """

    def __init__(
        self,
        case: str,
        encode: Callable[[str, pa.Array], pa.Array],
        folder: Path | None,
        in_memory: int = PARTS_IN_MEMORY,
    ) -> None:
        self._case, self._encode, self._folder, self._limit = case, encode, folder, in_memory
        self._kept: list[RowsPart] = []
        self._bytes = 0
        self._files: dict[int, IO[bytes]] = {}
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}
        self._bad_rows: dict[int, list[Rows]] = {}

    def add(self, part: RowsPart) -> None:
        """Adds the next rows of the file."""
        self._kept.append(part)
        self._bytes += part.nbytes
        if self._bytes > self._limit:
            for one in self._kept:
                self._store(one)
            self._kept, self._bytes = [], 0

    def buckets(self) -> Iterator[tuple[int | None, list[RowsPart]]]:
        """Yields the parts of each bucket with its number, or all parts with None if none were stored."""
        if not self._writers:
            yield None, self._kept
            return
        for one in self._kept:
            self._store(one)
        self._kept = []
        try:
            for number in range(_FLAT_BUCKETS):
                yield number, list(self._loaded(number)) if number in self._files else []
        finally:
            for file in self._files.values():
                file.close()

    def _store(self, part: RowsPart) -> None:
        case = coded_texts(part.rows.columns[self._case])
        bucket = (
            np.where(case.codes >= 0, buckets_of(case.values)[case.codes], 0) if len(case.values) else case.codes * 0
        )
        bad = np.cumsum(part.bad) - 1
        for number in np.unique(bucket).tolist():
            rows = np.flatnonzero(bucket == number)
            mine = part.rows.some(rows)
            columns = {name: _plain(column) for name, column in mine.columns.items()}
            columns |= {_TIME + name: array(times[rows], pa.int64()) for name, times in part.moments.items()}
            columns |= {_POSITION: array(mine.positions, pa.int64()), _BAD: booleans(part.bad[rows])}
            batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
            self._bad_rows.setdefault(number, []).append(part.bad_rows.some(bad[rows[part.bad[rows]]]))
            if number not in self._writers:
                self._files[number] = self._unnamed_file()
                self._writers[number] = pa.ipc.new_stream(self._files[number], batch.schema)
            self._writers[number].write_batch(batch)

    def _loaded(self, number: int) -> Iterator[RowsPart]:
        self._writers[number].close()
        file = self._files[number]
        file.seek(0)
        for batch, bad_rows in zip(pa.ipc.open_stream(file), self._bad_rows.pop(number), strict=True):
            moments = {
                name.removeprefix(_TIME): numbers(batch.column(name), np.int64)
                for name in batch.schema.names[: -len((_POSITION, _BAD))]
                if name.startswith(_TIME) and pa.types.is_int64(batch.schema.field(name).type)
            }
            others = batch.num_columns - len(moments) - len((_POSITION, _BAD))
            columns = {
                name: column if pa.types.is_timestamp(column.type) else self._encode(name, column)
                for name, column in zip(batch.schema.names[:others], batch.columns[:others], strict=True)
            }
            rows = Rows(columns, numbers(batch.column(batch.num_columns - 2), np.int64))
            yield RowsPart(rows, moments, booleans_of(batch.column(batch.num_columns - 1)), bad_rows)

    def _unnamed_file(self) -> IO[bytes]:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFile(dir=self._folder)


def buckets_of(case_ids: pa.Array) -> Ints:
    """Returns the number of the bucket of each case."""
    hashes: Longs = (text_hashes(case_ids)[0] % np.uint64(_FLAT_BUCKETS)).astype(np.int64)
    valid = validity(case_ids)
    return (hashes if valid is None else np.where(valid, hashes, 0)).astype(np.int32)


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
