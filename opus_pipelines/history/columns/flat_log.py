"""Reads flat logs by columns: a row is an event, and the rows of a case may be anywhere.

Rows are collected as columns, on disk in buckets of whole cases once they are many, so that memory does not grow with
the rows. At the end of the file they are grouped by case and built into implementations a block of cases at a time.
Cases that have an unusual row - a value to reject, an event that may occur twice, a case joined from several files - go
row by row to the reading by records, so that both ways give the same rows, rejects and counts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.columns.cases import Maps, Spans, TooLongError, by_records, repeated_events, runs
from opus_pipelines.history.columns.flat_rows import FlatTexts, RowReader, Rows, RowsPart, coded_texts, in_one, together
from opus_pipelines.history.columns.values import NO_TIME, Coded, Level, UnusualError
from opus_pipelines.history.records.arrow_arrays import (
    Bools,
    Ints,
    Longs,
    array,
    booleans,
    booleans_of,
    numbers,
    strings,
    text_hashes,
    validity,
)
from opus_pipelines.history.records.column_mapping import ATTRIBUTE, OF_CASE, unprefixed
from opus_pipelines.history.records.duplicate_events import unnamed_file
from opus_pipelines.history.records.values import BadValueError

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
                self._files[number] = unnamed_file(self._folder)
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


def buckets_of(case_ids: pa.Array) -> Ints:
    """Returns the number of the bucket of each case."""
    hashes: Longs = (text_hashes(case_ids)[0] % np.uint64(_FLAT_BUCKETS)).astype(np.int64)
    valid = validity(case_ids)
    return (hashes if valid is None else np.where(valid, hashes, 0)).astype(np.int32)


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


BLOCK_EVENTS = 400_000  # of whole cases that are built at once
_BLOCK_CELLS = 1 << 24
_ACTOR_GROUP = "actor_group"


class ColumnLog(Protocol):
    """Reads the rows of a flat log that a format's reader gives as columns, see `FlatLog`.

    `distinct` are columns of mostly different texts, which are best given without dictionary encoding.
    """

    distinct: frozenset[str]

    def wanted(self, schema: pa.Schema) -> list[str]:
        """Returns the names of the columns of the file that it reads."""
        ...

    def add(self, rows: Rows) -> None:
        """Adds rows of the file."""
        ...

    def refuse(self, refusal: "Refusal") -> None:
        """Adds a row that cannot be split."""
        ...

    def finish(self) -> None:
        """Ends the file."""
        ...


class Records(Protocol):
    """Reads single rows of the same file, into the same sink."""

    def row(self, position: int, fields: dict[str, Any], is_redacted: bool = False) -> None:
        """Adds one row."""
        ...

    def refuse(self, position: int, code: str, reason: str, record: str, case_id: str | None = None) -> None:
        """Rejects a row that cannot be split."""
        ...

    def finish(self) -> None:
        """Hands all cases to the sink."""
        ...


@dataclass(frozen=True)
class Refusal:
    """A row that cannot be split into columns, with its text and its case, if that is known."""

    position: int
    code: str
    reason: str
    record: str
    case_id: str | None


class FlatLog:
    """Collects the rows of one file.

    A caller gives Arrow batches to `add`, in the order of the file or of any part of it that has all rows of its cases,
    and then calls `finish`, which hands the implementations to the sink as Arrow batches. So a reader of parts of a
    file (byte ranges of a CSV, row groups of a Parquet file) distributes the batches by case first.

    `records` creates the reading by records, for the rows that need it. Raises UnusualError, in `add`, or in `finish`
    before anything is handed on, if the whole file must be read by records. Rows beyond `in_memory` bytes are stored on
    disk in buckets of whole cases.
    """

    def __init__(self, reader: RowReader, records: Callable[[], Records], in_memory: int = PARTS_IN_MEMORY) -> None:
        self.distinct: frozenset[str] = frozenset()
        self._reader, self._records = reader, records
        self._maps, self._sink, self._events, self._blocks = reader.maps, reader.sink, reader.events, reader.blocks
        self._stored = FlatBuckets(reader.maps.id_key, reader.texts, reader.sink.folder, in_memory)
        self._refusals: list[Refusal] = []

    def wanted(self, schema: pa.Schema) -> list[str]:
        """Returns the columns that it reads: all of the file."""
        names: list[str] = schema.names
        return names

    def add(self, rows: Rows) -> None:
        """Adds rows of the file."""
        if len(rows.positions):
            read = self._reader.read(rows)
            bad_rows = rows.some(np.flatnonzero(read.bad))
            self._stored.add(RowsPart(Rows(read.columns, rows.positions), read.moments, read.bad, bad_rows))

    def refuse(self, refusal: Refusal) -> None:
        """Adds a row that cannot be split."""
        self._reader.refused += 1
        self._refusals.append(refusal)

    def finish(self) -> None:
        """Ends the file and hands over all cases."""
        if self._reader.is_empty:
            raise UnusualError
        records = self._records()
        if self._reader.has_work and not self._sink.log_has_work:
            self._sink.finds_work()
        self._blocks.is_told = True
        for number, parts in self._stored.buckets():
            mine = [r for r in self._refusals if number is None or _bucket_of(r) == number]
            self._finish_bucket(parts, sorted(mine, key=lambda r: r.position), records)
        records.finish()

    def _finish_bucket(self, parts: list[RowsPart], refusals: list[Refusal], records: Records) -> None:
        """Reads the cases of some parts: those with an unusual row by records, the others by columns."""
        for refusal in () if parts else refusals:
            records.refuse(*astuple(refusal))
        if not parts:
            return
        table = _Table.of(parts, frozenset(self._reader.times.values()))
        case = table.columns[self._maps.id_key]
        has_work = self._reader.has_work or self._sink.log_has_work
        unusual = self._unusual_cases(table, case, refusals, has_work)
        by_records = table.bad | ((case.codes >= 0) & unusual[case.codes])
        try:
            left = self._read_blocks(table, _Texts(*in_one(table.columns)), np.flatnonzero(~by_records), has_work)
        except UnusualError:
            left = np.ones(len(table.bad), bool)
        refused = ((r.position, partial(records.refuse, *astuple(r))) for r in refusals)
        steps: Iterator[tuple[int, Callable[[], None]]] = merge(
            refused, _odd(records, parts, by_records | left), key=itemgetter(0)
        )
        for _, read in steps:
            read()

    def _unusual_cases(self, table: "_Table", case: Coded, refusals: list[Refusal], has_work: bool) -> Bools:
        """Tells which cases must be read by records."""
        unusual = np.zeros(max(1, len(case.values)), bool)
        unusual[case.codes[table.bad & (case.codes >= 0)]] = True
        refused = {r.case_id for r in refusals if r.case_id is not None}
        for ids in (refused, self._sink.held):
            if ids:
                unusual[: len(case.values)] |= booleans_of(pc.is_in(case.values, pa.array(sorted(ids), pa.string())))
        keys = self._events.keys
        kind = self._blocks.kinds(table.column(keys["transition"]))
        unusual[case.codes[~table.bad & (case.codes >= 0) & by_records(kind, has_work, is_told=True)]] = True
        if self._reader.drops_repeated:
            run = runs(table.column(keys["activity"]), table.column(keys["instance"]))
            repeated = repeated_events(case.codes, Spans.of(table.moments, self._events.interval), kind, run)
            unusual[case.codes[repeated & (case.codes >= 0)]] = True
        return unusual

    def _read_blocks(self, table: "_Table", texts: "_Texts", rows: Longs, has_work: bool) -> Bools:
        """Builds all cases of these rows by columns. Returns the rows of blocks that must be read by records."""
        codes = table.columns[self._maps.id_key].codes[rows]
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            rows, codes = rows[order], codes[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        size = max(1, min(BLOCK_EVENTS, _BLOCK_CELLS // max(1, len(table.columns))))
        left = np.zeros(len(table.bad), bool)
        for begin, end in _bounds(first, len(rows), size):
            chosen = rows[begin:end]
            try:
                self._block(table, texts, chosen, has_work)
            except (UnusualError, TooLongError, BadValueError):
                left[chosen] = True
        return left

    def _block(self, table: "_Table", texts: "_Texts", rows: Longs, has_work: bool) -> None:
        codes = table.columns[self._maps.id_key].codes[rows]
        is_first = np.diff(codes, prepend=-1) != 0
        case = (np.cumsum(is_first) - 1).astype(np.int32)
        flat = FlatTexts(texts.texts, int(case[-1]) + 1, case)
        columns = {}
        for name, column in table.columns.items():
            found = column.codes[rows]
            if (found >= 0).any():
                columns[name] = np.where(found >= 0, found + np.int32(texts.starts[name]), np.int32(-1))
        if self._events.group in columns:
            if _ACTOR_GROUP in columns or self._maps.events.role(_ACTOR_GROUP) != ATTRIBUTE:
                raise UnusualError
            columns[_ACTOR_GROUP] = columns[self._events.group]
        ids: Ints = columns[self._maps.id_key][is_first]
        traces = Level(flat.traces, {self._maps.id_key: ids}, flat)
        moments = {name: times[rows] for name, times in table.moments.items()}
        self._blocks.add(traces, Level(len(rows), columns, flat), moments, has_work)


@dataclass(frozen=True)
class _Texts:
    """The distinct texts of all columns, and where those of each column begin."""

    texts: pa.Array
    starts: Mapping[str, int]


@dataclass(frozen=True)
class _Table:
    """All rows of a file."""

    columns: Mapping[str, Coded]
    moments: Mapping[str, Longs]
    positions: Longs
    bad: Bools

    @classmethod
    def of(cls, parts: list[RowsPart], left_out: frozenset[str]) -> "_Table":
        """Puts the parts together, without the columns of times."""
        names = [name for name in parts[0].rows.columns if name not in left_out]
        columns = {name: together([part.rows.columns[name] for part in parts]) for name in names}
        bad = np.concatenate([part.bad for part in parts])
        times = {name: np.concatenate([part.moments[name] for part in parts]) for name in parts[0].moments}
        unknown = {"time": np.full(len(bad), NO_TIME, np.int64)}
        return cls(columns, times or unknown, np.concatenate([part.rows.positions for part in parts]), bad)

    def column(self, name: str) -> Coded:
        """Returns the column of that name, without values if there is none."""
        missing = Coded(np.full(len(self.bad), -1, np.int32), strings([]))
        return self.columns.get(name, missing)


def _odd(records: Records, parts: list[RowsPart], chosen: Bools) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yields the chosen rows in file order, with what reads them."""
    begin = 0
    for part in parts:
        mine = np.flatnonzero(chosen[begin : begin + len(part.bad)])
        is_bad = part.bad[mine]
        written = iter(part.bad_rows.records(np.arange(len(part.bad_rows.positions))))
        usable = iter(part.rows.records(mine[~is_bad]))
        for row, bad in zip(mine.tolist(), is_bad.tolist(), strict=True):
            position = int(part.rows.positions[row])
            yield position, partial(records.row, position, next(written if bad else usable), not bad)
        begin += len(part.bad)


def _bucket_of(refusal: Refusal) -> int:
    return 0 if refusal.case_id is None else int(buckets_of(strings([refusal.case_id]))[0])


def _bounds(first: Longs, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields the bounds of blocks of whole cases, each of about `size` rows."""
    begin = 0
    while begin < rows:
        after = np.searchsorted(first, begin + size)
        end = int(first[after]) if after < len(first) else rows
        yield begin, end
        begin = end


def only_one_attribute_each(header: list[str], maps: Maps) -> bool:
    """Tells whether no two columns are the same attribute of a case under two prefixes."""
    names = [unprefixed(name) for name in header if maps.events.role(name) == OF_CASE]
    return len(set(names)) == len(names)
