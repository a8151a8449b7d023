"""Reads one file of a source, completely or not at all, in the run itself or in a worker process."""

import gc
import gzip
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.progress import duration
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.history.ingestion.plan import FilePlan
from opus_pipelines.history.ingestion.spool import Spool
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.duplicate_events import CasePart
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.formats import LOG_FORMATS, Format
from opus_pipelines.history.records.records import Counts, Reject
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.lake.layout import table_of

Progress = Callable[[str], None]
_QUIET_SECONDS = 5.0
_REJECTS_AT_ONCE = 4096
CHANGED = "it changed while it was read; the next rebuild reads it again"
_UNREADABLE = (InputError, OSError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


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
    sink = Assembler(LogFile(source, file.path, kind, wanted.skipped), settings, other_files, outlets)
    try:
        with _no_collection():
            kind.reader()(opened, settings, sink)
            sink.finish()
            rejects.flush()
    except _UNREADABLE as error:
        implementations.drop()
        rejects.spool.drop()
        return FileResult(reason=sink.redactor.reason(_why(error)), asked=sink.asked, lost=file.has_changed)
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


def _why(error: BaseException) -> str:
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return f"the gzip file is broken or cut off ({error}); fetch it again"
    if isinstance(error, UnicodeError):
        return f"it is not text in the encoding that it claims ({error})"
    return str(error).encode("utf-8", "replace").decode()[:REASON]


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
