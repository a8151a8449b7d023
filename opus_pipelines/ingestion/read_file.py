"""One file of a source: all of it or nothing, whoever reads it - the run itself or a process of its own."""

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
from opus_pipelines.event_logs.assembler import Assembler, Seen
from opus_pipelines.event_logs.duplicate_events import Part
from opus_pipelines.event_logs.files import open_data
from opus_pipelines.event_logs.formats import LOG_FORMATS, Format
from opus_pipelines.event_logs.records import Counts, Reject
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.ingestion.plan import FilePlan
from opus_pipelines.ingestion.spool import Spool
from opus_pipelines.lake.layout import table_of

Progress = Callable[[str], None]
_QUIET_SECONDS = 5.0
_REJECTS_AT_ONCE = 4096
_UNREADABLE = (InputError, OSError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


@dataclass
class FileResult:
    """What came of a file. `case_ids`: those that it holds; `asked`: those that would have mattered, had a file before
    it held them.

    `quarantined_ids`: cases put aside whole; `repeated`: cases that stand in several places of the file, of which only
    the first was read;
    `parts`: of cases that are put together from several files. `has_work`: it has a start or a complete;
    `waited_for_work`: it would have mattered had another file one. `day_first`: what its dates like 03/04/2020 show,
    where `asks_day_first`.
    `lost`: nobody knows what is in it, for the process that read it died; the next run tries again.
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
    parts: list[Part] = field(default_factory=list)
    has_work: bool = False
    waited_for_work: bool = False
    day_first: bool | None = None
    asks_day_first: bool = False
    encoding: str | None = None
    mixed_encodings: str | None = None

    def drop(self) -> None:
        """Forget the rows."""
        for spool in (self.implementations, self.rejects):
            if spool is not None:
                spool.drop()


def read_file(
    source: str, settings: SourceSettings, file: FilePlan, seen: Seen, folder: Path, progress: Progress
) -> FileResult:
    """Read a file; rows that are many lie in `folder`. Where the file breaks off, what was read of it is dropped with
    it.
    """
    if file.refused is not None:
        return FileResult(reason=file.refused)
    kind = LOG_FORMATS.get(str(file.format))  # a file that is not refused has a format
    opened = _Opened(file.file)
    name = uuid.uuid4().hex
    implementations = Spool(folder / f"{name}.implementations", IMPLEMENTATIONS.schema)
    rejects = RejectRows(source, Spool(folder / f"{name}.rejects", REJECTS.schema))
    tick = _ticker(f"{source}/{file.path}", opened, file.bytes, progress)
    sink = Assembler(
        source, file.path, settings, seen, kind, tick, implementations.add, partial(rejects.add, file.path, kind)
    )
    try:
        with _no_collection():
            kind.reader()(opened, settings, sink)
            sink.finish()
            rejects.flush()
    except _UNREADABLE as error:
        implementations.drop()
        rejects.spool.drop()
        return FileResult(reason=sink.redactor.reason(_why(error)), asked=sink.asked)
    return FileResult(
        sink.counts,
        implementations.settle(),
        rejects.spool.settle(),
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
    """Opens a file, perhaps several times at once, and knows how far it has been read by who opened it first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[BinaryIO] = []

    def __call__(self) -> BinaryIO:
        self._files = [file for file in self._files if not file.closed]
        self._files.append(open_data(self._path))
        return self._files[-1]

    def read_bytes(self) -> int:
        """Bytes of the file as it lies there (packed, where it is) that have been read; 0 where that cannot be told."""
        try:
            file = next((file for file in self._files if not file.closed), None)
            return 0 if file is None else os.lseek(file.fileno(), 0, os.SEEK_CUR)
        except (OSError, ValueError):
            return 0


class RejectRows:
    """Rejects as rows of history/rejects."""

    def __init__(self, source: str, spool: Spool) -> None:
        self.spool = spool
        self._source = source
        self._rows: list[dict[str, Any]] = []

    def add(self, path: str, kind: Format, reject: Reject) -> None:
        """One reject of the file at `path`."""
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
        """What is pending goes to the spool."""
        for batch in table_of(REJECTS, self._rows).to_batches() if self._rows else ():
            self.spool.add(batch)
        self._rows = []


@contextmanager
def _no_collection() -> Iterator[None]:
    """Records hold no cycles; looking for some in millions of them takes a quarter of the time."""
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
    """NameMeaning now and then how far a long file is."""
    began = said = monotonic()

    def tick(records: int) -> None:
        nonlocal said
        if (at := monotonic()) - said >= _QUIET_SECONDS:
            said = at
            done = opened.read_bytes()
            left = f", {duration((at - began) * (size - done) / done)} left" if 0 < done < size else ""
            progress(f"{name}: {records:,} records, {records / (at - began):,.0f} a second{left}")

    return tick
