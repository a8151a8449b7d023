"""One file of a source: all of it or nothing, whoever reads it - the run itself or a process of its own."""

import gc
import gzip
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from opus_pipelines.errors import InputError
from opus_pipelines.history.assembler import Assembler, Seen
from opus_pipelines.history.files import open_data
from opus_pipelines.history.formats import FORMATS, Format
from opus_pipelines.history.plan import FilePlan
from opus_pipelines.history.records import Counts, Reject
from opus_pipelines.history.source_settings import SourceSettings
from opus_pipelines.history.spool import Spool
from opus_pipelines.lake import table_of
from opus_pipelines.progress import duration
from opus_pipelines.schemas import IMPLEMENTATIONS, REJECTS

Progress = Callable[[str], None]
_QUIET_SECONDS = 5.0
_REJECTS_AT_ONCE = 4096
_UNREADABLE = (InputError, OSError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


@dataclass
class FileResult:
    """What came of a file. `case_ids`: those that it holds; `asked`: those that would have mattered, had a file before it held them.

    `lost`: nobody knows what is in it, for the process that read it died; the next run tries again.
    """

    counts: Counts = field(default_factory=Counts)
    implementations: Spool | None = None
    rejects: Spool | None = None
    reason: str | None = None
    lost: bool = False
    case_ids: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def drop(self) -> None:
        """Forget the rows."""
        for spool in (self.implementations, self.rejects):
            if spool is not None:
                spool.drop()


def read_file(source: str, settings: SourceSettings, file: FilePlan, seen: Seen, folder: Path, progress: Progress) -> FileResult:
    """Read a file; rows that are many lie in `folder`. Where the file breaks off, what was read of it is dropped with it."""
    if file.refused is not None:
        return FileResult(reason=file.refused)
    kind = next(f for f in FORMATS if f.name == file.format)
    opened = _Opened(file.file)
    name = uuid.uuid4().hex
    implementations = Spool(folder / f"{name}.implementations", IMPLEMENTATIONS.schema)
    rejects = _RejectsOf(source, file, kind, Spool(folder / f"{name}.rejects", REJECTS.schema))
    tick = _ticker(f"{source}/{file.path}", opened, file.bytes, progress)
    sink = Assembler(source, file.path, settings, seen, kind, tick, implementations.add, rejects.add)
    try:
        with _no_collection():
            kind.reader()(opened, settings, sink)
            sink.finish()
            rejects.flush()
    except _UNREADABLE as error:
        implementations.drop()
        rejects.spool.drop()
        return FileResult(reason=sink.redactor.reason(_why(error)), asked=sink.asked)
    seen.case_ids |= sink.case_ids
    return FileResult(sink.counts, implementations.settle(), rejects.spool.settle(), case_ids=sink.case_ids, asked=sink.asked)


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


class _RejectsOf:
    """Rejects of one file as rows."""

    def __init__(self, source: str, file: FilePlan, kind: Format, spool: Spool) -> None:
        self.spool = spool
        self._same = {"source": source, "path": file.path, "position_unit": kind.position_unit}
        self._rows: list[dict[str, Any]] = []

    def add(self, reject: Reject) -> None:
        row = {"position": reject.position, "reason_code": reject.code, "reason": reject.reason, "record": reject.record}
        self._rows.append(self._same | row)
        if len(self._rows) >= _REJECTS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
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
    """Says now and then how far a long file is."""
    began = said = monotonic()

    def tick(records: int) -> None:
        nonlocal said
        if (at := monotonic()) - said >= _QUIET_SECONDS:
            said = at
            done = opened.read_bytes()
            left = f", {duration((at - began) * (size - done) / done)} left" if 0 < done < size else ""
            progress(f"{name}: {records:,} records, {records / (at - began):,.0f} a second{left}")

    return tick
