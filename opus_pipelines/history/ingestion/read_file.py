"""Reads one file of a source, completely or not at all, in the run itself or in another process.

Its rows are record batches, in memory while they are few, in a file when they are many. They arrive in the order of the
file and are published in the order of their key. To keep memory constant, the keys alone are sorted, and the rows are
then gathered in parts.
"""

import gc
import gzip
import os
import traceback
import uuid
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.formatting import duration
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS, Dataset
from opus_pipelines.core.workers.pool import Report
from opus_pipelines.history.ingestion.plan import FilePlan
from opus_pipelines.history.records.arrow_arrays import Longs, array, numbers
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.duplicate_events import CasePart
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import LOG_FORMATS, Format
from opus_pipelines.history.records.raw import Counts, Reject
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.lake.layout import PART, table_of

_IN_MEMORY = 1 << 24
ROW_GROUP = 1 << 13
_GATHERED = 1 << 25  # bytes that are sorted at once, where a row group has no more
_SMALL = 1 << 16  # bytes of a spool that is put together with others
_TOGETHER = 512  # small spools in one batch
Piece = tuple[pa.RecordBatch, int, int]  # a batch, the first of its rows, and how many


class Spool:
    """Takes batches one by one.

    It writes to `path` only if they exceed `in_memory` bytes, or on `finish(to_disk=True)`.
    """

    def __init__(self, path: Path, schema: pa.Schema, in_memory: int = _IN_MEMORY) -> None:
        self.bytes = 0
        self._path, self._schema, self._limit = path, schema, in_memory
        self._kept: list[pa.RecordBatch] = []
        self._writer: pa.RecordBatchFileWriter | None = None
        self._on_disk = False
        self._shared: Piece | None = None
        self._later: list[Spool] = []

    @classmethod
    def together(cls, spools: "Sequence[Spool | None]", schema: pa.Schema) -> "Spool":
        """Returns the finished spools, in order, as one."""
        whole = cls(Path(), schema)
        whole._later = [spool for spool in spools if spool is not None]
        whole.bytes = sum(spool.bytes for spool in whole._later)
        return whole

    def as_plain(self) -> dict[str, Any]:
        """Returns values of JSON for a finished spool: the name of its file, and the rows that are in no file."""
        name = self._path.name if self._on_disk else None
        return {"bytes": self.bytes, "file": name, "rows": _text_of(self._kept) if self._kept else None}

    @classmethod
    def of_plain(cls, plain: Any) -> "Spool":
        """Returns the spool that `as_plain` stated; `move` says where its file lies. Raises ValueError for others."""
        try:
            size, name, rows = int(plain["bytes"]), plain["file"], plain["rows"]
            batches = [] if rows is None else _batches_of(rows)
        except (KeyError, TypeError, OSError, pa.ArrowException) as error:
            raise ValueError(f"these are no rows: {error}") from None
        if name is not None and (name != Path(name).name or name == ".."):
            raise ValueError(f"{name!r} is no name of a file")
        made = cls(Path(name or ""), batches[0].schema if batches else pa.schema([]))
        made.bytes, made._kept, made._on_disk = size, batches, name is not None
        return made

    def move(self, folder: Path) -> None:
        """Says that the file of a finished spool lies in `folder` now."""
        self._path = folder / self._path.name

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
        for spool in self._later:
            spool.drop()
        if self._on_disk:
            self._path.unlink(missing_ok=True)
        self._kept, self._on_disk, self._shared, self._later = [], False, None, []

    @property
    def small(self) -> list[pa.RecordBatch]:
        """Returns the batches of a spool that is finished and small, else none."""
        return self._kept if not self._on_disk and self._writer is None and self.bytes <= _SMALL else []

    def share(self, batch: pa.RecordBatch, start: int, rows: int) -> None:
        """Replaces the batches by the same rows of a larger one."""
        self._kept, self._shared = [], (batch, start, rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all batches in their order. Those in the file are memory-mapped, not loaded."""
        for batch, start, rows in self.pieces():
            yield batch.slice(start, rows)

    def pieces(self) -> Iterator[Piece]:
        """Yields what `batches` does, as parts of batches that spools may share."""
        if self._shared is not None:
            yield self._shared
        for batch in self._kept:
            yield batch, 0, batch.num_rows
        if self._on_disk:
            with pa.memory_map(str(self._path)) as mapped:
                file = pa.ipc.open_file(mapped)
                for number in range(file.num_record_batches):
                    batch = file.get_batch(number)
                    yield batch, 0, batch.num_rows
        for spool in self._later:
            yield from spool.pieces()

    def _write(self) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
        for batch in self._kept:
            self._writer.write_batch(batch)
        self._kept = []


def _text_of(batches: Sequence[pa.RecordBatch]) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return b64encode(sink.getvalue()).decode()


def _batches_of(text: str) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(b64decode(text, validate=True)) as stream:
        return list(stream)


class SmallSpools:
    """Puts the rows of many small spools into few batches.

    A batch of a few rows takes 20 KB for its columns alone, whatever is in them: thousands of tiny files would fill the
    memory.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._waiting: list[Spool] = []

    def add(self, spool: Spool | None) -> None:
        """Adds a finished spool; a large one stays as it is."""
        if spool is not None and spool.small:
            self._waiting.append(spool)
            if len(self._waiting) >= _TOGETHER:
                self.flush()

    def flush(self) -> None:
        """Puts together what waits. Spools that were dropped meanwhile are left out."""
        waiting = [spool for spool in self._waiting if spool.small]
        self._waiting = []
        if not waiting:
            return
        table = pa.Table.from_batches([b for spool in waiting for b in spool.small], self._schema).combine_chunks()
        (whole,) = table.to_batches()
        start = 0
        for spool in waiting:
            rows = sum(batch.num_rows for batch in spool.small)
            spool.share(whole, start, rows)
            start += rows


def _batches(spools: Sequence[Spool]) -> Iterator[pa.RecordBatch]:
    """Yields the batches of all spools; neighbouring rows of a shared batch come as one."""
    run: Piece | None = None
    for batch, start, rows in (piece for spool in spools for piece in spool.pieces()):
        if run is not None and run[0] is batch and run[1] + run[2] == start:
            run = (batch, run[1], run[2] + rows)
            continue
        if run is not None:
            yield run[0].slice(run[1], run[2])
        run = (batch, start, rows)
    if run is not None:
        yield run[0].slice(run[1], run[2])


def write_sorted(
    dataset: Dataset, spools: Sequence[Spool], folder: Path, change: Callable[[pa.Table], pa.Table] | None = None
) -> Path:
    """Writes all rows of `spools`, sorted by the dataset's key, as one file in `folder`, and returns its path.

    The folder is created. The write is not atomic: use a staging folder. `change` is applied to every part before it is
    written; it must not change keys.
    """
    named = pa.schema([dataset.schema.field(key) for key in dataset.key])
    keys = pa.Table.from_batches([batch.select(named.names) for batch in _batches(spools)], named)
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
    for batch in _batches(spools):
        first, last = np.searchsorted(sorted_rows, (start, start + batch.num_rows))
        if first < last:
            pieces.append(batch.take(array(sorted_rows[first:last] - start, pa.int64())))
        start += batch.num_rows
    back = np.empty(len(rows), np.int64)
    back[wanted] = np.arange(len(rows))
    return pa.Table.from_batches(pieces, schema).combine_chunks().take(array(back, pa.int64()))


Progress = Callable[[str], None]
_QUIET_SECONDS = 5.0
_REJECTS_AT_ONCE = 4096
CHANGED = "it changed while it was read; the next rebuild reads it again"


@dataclass
class FileResult:
    """The result of reading a file.

    `case_ids` are the cases that it contains. `asked` are the case ids for which an earlier file would have changed the
    result. `quarantined_ids` are cases that are quarantined. `repeated` are cases that stand in several places of the
    file, of which only the first was read. `parts` are the parts of cases that are joined from several files.
    `has_work`: the file has a start or a complete; `waited_for_work`: one in another file would have changed the
    result. `day_first` is the order of day and month that its dates show, if `asks_day_first`. `lost`: the process that
    read the file died, or the file changed meanwhile, so its content is unknown, and the next run tries again.
    """

    counts: Counts = field(default_factory=Counts)
    implementations: Spool | None = None
    rejects: Spool | None = None
    reason: str | None = None
    lost: bool = False
    case_ids: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    quarantined_ids: set[str] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)
    parts: list[CasePart] = field(default_factory=list)
    has_work: bool = False
    waited_for_work: bool = False
    day_first: bool | None = None
    asks_day_first: bool = False
    encoding: str | None = None
    mixed_encodings: str | None = None

    def drop(self) -> None:
        """Deletes the rows."""
        for spool in (self.implementations, self.rejects):
            if spool is not None:
                spool.drop()


@dataclass(frozen=True)
class SourceFile:
    """A file to read, with its source and the settings of the source.

    `skipped` is the number of records before the part of the file that is read.
    """

    source: str
    settings: SourceSettings
    plan: FilePlan
    skipped: int = 0

    def __repr__(self) -> str:
        return f"{self.source}/{self.plan.path}"


def read_file(wanted: SourceFile, other_files: OtherFiles, folder: Path, progress: Progress) -> FileResult:
    """Reads a file. Many rows are stored in `folder`. If the file breaks off, the rows read so far are deleted."""
    source, settings, file = wanted.source, wanted.settings, wanted.plan
    if file.refused is not None:
        return FileResult(reason=file.refused)
    kind = LOG_FORMATS.get(str(file.format))  # a file that is not refused has a format
    opened = _Opened(file.file)
    name = uuid.uuid4().hex
    implementations = Spool(folder / f"{name}.implementations", IMPLEMENTATIONS.schema)
    rejects = RejectRows(source, Spool(folder / f"{name}.rejects", REJECTS.schema))
    tick = _ticker(repr(wanted), opened, file.bytes, progress)
    outlets = Outlets(implementations.add, partial(rejects.add, file.path, kind), tick, folder)
    sink = Assembler(log_file(source, file, kind, settings, wanted.skipped), settings, other_files, outlets)
    try:
        with _no_collection():
            kind.reader()(opened, settings, sink)
            sink.finish()
            rejects.flush()
    except MemoryError:
        raise
    except Exception as error:  # whatever else a reader fails with costs its file, and not the night
        implementations.drop()
        rejects.spool.drop()
        return FileResult(reason=sink.redactor.reason(_why(error, kind)), asked=sink.asked, lost=file.has_changed)
    if file.has_changed:
        implementations.drop()
        rejects.spool.drop()
        return FileResult(reason=CHANGED, asked=sink.asked, lost=True)
    return FileResult(
        sink.counts,
        implementations.finish(),
        rejects.spool.finish(),
        case_ids=sink.case_ids,
        asked=sink.asked,
        quarantined_ids=sink.quarantined_ids,
        repeated=sink.repeated,
        parts=sink.parts,
        has_work=sink.log_has_work,
        waited_for_work=sink.waited_for_work,
        day_first=sink.day_first,
        asks_day_first=sink.asks_day_first,
        encoding=sink.encoding,
        mixed_encodings=sink.mixed_encodings,
    )


def log_file(source: str, file: FilePlan, kind: Format, settings: SourceSettings, skipped: int = 0) -> LogFile:
    """Returns what an assembler must know of a file."""
    return LogFile(source, file.path, kind, skipped, file.folders, client_of(file, settings))


def client_of(file: FilePlan, settings: SourceSettings) -> str:
    """Returns the client that the folders of a file state, else ""."""
    column = settings.column_of("client") or "client"
    return "" if settings.constant("client") is not None else file.folders.get(column, "")


class _Opened:
    """Opens a file, possibly several times at once, and knows how far the first opened handle has read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[BinaryIO] = []

    def __call__(self) -> BinaryIO:
        self._files = [file for file in self._files if not file.closed]
        self._files.append(open_data(self._path))
        return self._files[-1]

    def read_bytes(self) -> int:
        """Returns how many bytes of the file on disk (compressed, if it is) have been read; 0 if that is unknown."""
        try:
            file = next((file for file in self._files if not file.closed), None)
            return 0 if file is None else os.lseek(file.fileno(), 0, os.SEEK_CUR)
        except (OSError, ValueError):
            return 0


class RejectRows:
    """Collects rejects as rows of history/rejects."""

    def __init__(self, source: str, spool: Spool) -> None:
        self.spool = spool
        self._source = source
        self._rows: list[dict[str, Any]] = []

    def add(self, path: str, kind: Format, reject: Reject) -> None:
        """Adds one reject of the file at `path`."""
        cause = reject.cause
        self._rows.append(
            {
                "source": self._source,
                "path": path,
                "position": reject.position,
                "position_unit": kind.position_unit,
                "reason_code": reject.code,
                "reason": reject.reason,
                "record": reject.record,
                "case_id": reject.case_id,
                "cause_path": cause and cause.path,
                "cause_position": cause and cause.position,
            }
        )
        if len(self._rows) >= _REJECTS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Writes the pending rows to the spool."""
        for batch in table_of(REJECTS, self._rows).to_batches() if self._rows else ():
            self.spool.add(batch)
        self._rows = []


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disables garbage collection.

    Records have no reference cycles, and searching millions of them for some takes a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


REASON = 4_000  # characters of a reason: it may quote names from the file


def _why(error: Exception, kind: Format) -> str:
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return f"the gzip file is broken or cut off ({error}); fetch it again"
    if isinstance(error, UnicodeError):
        return f"it is not text in the encoding that it claims ({error})"
    said = str(error).encode("utf-8", "replace").decode()[:REASON]
    if isinstance(error, OpusError | OSError):
        return said
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"the reader of {kind.name} ({kind.module}) failed at {Path(place.filename).name}:{place.lineno} with "
        f"{type(error).__name__}: {said}; please report it with the file"
    )


def _ticker(name: str, opened: _Opened, size: int, progress: Progress) -> Callable[[int], None]:
    """Returns a function that reports from time to time how far a long file is read."""
    began = last_report = monotonic()

    def tick(records: int) -> None:
        nonlocal last_report
        if (at := monotonic()) - last_report >= _QUIET_SECONDS:
            last_report = at
            done = opened.read_bytes()
            left = f", {duration((at - began) * (size - done) / done)} left" if 0 < done < size else ""
            progress(f"{name}: {records:,} records, {records / (at - began):,.0f} a second{left}")

    return tick


SENT_BYTES = 1 << 16  # rows of a file that are sent with the answer, not left in a file
_UNPACKED = 15  # estimated ratio of the unpacked size of a log to its compressed size


@dataclass
class FileReadJob:
    """One file to read as if it were the first of its source. Its rows are written to `folder`."""

    file: SourceFile
    forgotten: Forgotten
    folder: Path

    def run(self, _state: None, report: Report) -> "FileRead":
        """Reads the file in a worker process."""
        other_files = OtherFiles(forgotten=self.forgotten)
        result = read_file(self.file, other_files, self.folder, report)
        for spool in (result.implementations, result.rejects):
            if spool is not None:
                spool.finish(to_disk=spool.bytes > SENT_BYTES)
        result.asked -= result.case_ids
        return FileRead(result, other_files.names, other_files.left_out)

    def __repr__(self) -> str:
        return repr(self.file)


@dataclass
class FileRead:
    """The result of a job, and the state that the reading of later files of the source depends on."""

    result: FileResult
    names: dict[str, str]
    left_out: set[str]


def unpacked_bytes(file: FilePlan) -> int:
    """Returns about how many bytes there are to read: 15 times the size of a compressed file, 0 of a refused one."""
    return 0 if file.refused is not None else file.bytes * (_UNPACKED if file.path.lower().endswith(".gz") else 1)
