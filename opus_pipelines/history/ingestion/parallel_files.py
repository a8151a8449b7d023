"""Reads the files of all sources, large ones in parallel where that saves time, in processes or on Spark's executors.

The result is the same as when the files are read one after the other. For Spark, the driver reads and packs the bytes
and sends them with the rows, a wave of files at a time, and large XES logs in parts, so that executors need neither the
history folder nor the lake. What cannot be told from the parts of a file is left to the reading of the whole file.
"""

import os
import re
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, NamedTuple

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.core.workers.carried_jobs import Carried, carry
from opus_pipelines.core.workers.pool import NoSetup, WorkerPool
from opus_pipelines.core.workers.sandbox import LostWorker
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.history.ingestion.read_file import (
    CHANGED,
    FileRead,
    FileReadJob,
    FileResult,
    Progress,
    SourceFile,
    Spool,
    read_file,
    unpacked_bytes,
)
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.raw import HOPELESS, Counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FileKey = tuple[str, str]  # the name of a source, and the path of a file in it
_CUT = "xes"  # the format whose files are cut
_TRACE_TAG = re.compile(rb"<trace[\s>/]")
_TRACE_NEXT = re.compile(rb"\s*<trace[\s>/]")
_EVENT_TAG = re.compile(rb"<event[\s>/]")
_BETWEEN_TRACES = re.compile(rb"</trace>(?!\s*<trace[\s>/]|\s*\Z)")
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)")
_LOG = re.compile(rb"<log(?:\s[^>]*)?>")
_TRACE_END_TAG, _LOG_END = b"</trace>", b"</log>"
_LARGEST_HEAD, _LARGEST_PART = 1 << 24, 1 << 26
_PLAIN, _PACKED = "log", "log.gz"


@dataclass(frozen=True)
class Sizes:
    """In bytes: a part of a file that is cut, what is packed of one wave, and the largest file that is sent whole."""

    part: int = 32 << 20
    wave: int = 96 << 20
    whole: int = 64 << 20


@dataclass(frozen=True)
class CarriedRead:
    """A file, or a part of one, to be read where its bytes are laid out under a name."""

    ANSWER: ClassVar[type] = FileRead
    file: SourceFile
    forgotten: Forgotten
    name: str

    def at(self, read: Path, made: Path) -> FileReadJob:
        """Returns the job for the file in the folder `read`."""
        plan = replace(self.file.plan, file=read / self.name, seen=None)
        return FileReadJob(replace(self.file, plan=plan), self.forgotten, made)


class SparkReading:
    """The results of files that executors read, by source and path. Asking for one reads the waves up to it."""

    def __init__(
        self,
        files: Sequence[tuple[_FileKey, SourceFile]],
        forgotten: Forgotten,
        folder: Path,
        session: "Callable[[int], SparkSession]",
        sizes: Sizes = Sizes(),
    ) -> None:
        self._forgotten, self._folder, self._sizes = forgotten, folder, sizes
        self._session = partial(session, sum(unpacked_bytes(file.plan) for _, file in files))
        self._waiting = deque(files)
        self._keys = {key for key, _ in files}
        self._found: dict[_FileKey, FileRead | LostWorker | None] = {}
        self._waves = count()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def result(self, key: _FileKey) -> FileRead | None:
        """Returns the result of a file, once; None where the file has to be read whole and by itself.

        Raises LostWorker where processes that read it ended twice on an executor, and twice on this machine.
        """
        while key not in self._found:
            self._read_wave()
        found = self._found.pop(key)
        if isinstance(found, LostWorker):
            raise found
        return found

    def _read_wave(self) -> None:
        """Reads the next files, as many as are sent at once. A file that is larger is sent in several waves."""
        answers: defaultdict[_FileKey, list[FileRead | LostWorker]] = defaultdict(list)
        files: dict[_FileKey, SourceFile] = {}
        uncut: set[_FileKey] = set()
        jobs: list[tuple[_FileKey, Carried]] = []
        size = 0
        while self._waiting and size < self._sizes.wave:
            key, file = self._waiting.popleft()
            files[key] = file
            try:
                for job in self._jobs(file):
                    jobs.append((key, job))
                    size += job.packed_size
                    if size >= self._sizes.wave:
                        self._send(jobs, answers)
                        size, jobs = 0, []
            except (CannotCut, InputError, OSError, EOFError, zlib.error):
                uncut.add(key)
                jobs = [(of, job) for of, job in jobs if of != key]
        self._send(jobs, answers)
        for key, file in files.items():
            if key in uncut:
                _drop(answers[key])
            self._found[key] = None if key in uncut else self._whole(file, answers[key])

    def _send(
        self, jobs: Sequence[tuple[_FileKey, Carried]], answers: dict[_FileKey, list[FileRead | LostWorker]]
    ) -> None:
        if not jobs:
            return
        into = self._folder / f"wave-{next(self._waves)}"
        folders = [into / str(number) for number in range(len(jobs))]
        made = carry(self._session(), NoSetup(), [job for _, job in jobs], folders)
        for (key, _), folder, (succeeded, answer) in zip(jobs, folders, made, strict=True):
            if succeeded:
                for spool in (answer.result.implementations, answer.result.rejects):
                    if spool is not None:
                        spool.move(folder)
            answers[key].append(answer if succeeded else LostWorker(answer))

    def _here(self, file: SourceFile) -> FileRead | LostWorker:
        """Reads a file in a process of this machine: an executor may have failed for a reason of its own."""
        job = FileReadJob(file, self._forgotten, self._folder)
        with WorkerPool(NoSetup(), {0: job}, 1, lambda line: None) as pool:
            try:
                read: FileRead = pool.result(0)
            except LostWorker as lost:
                return lost
        return read

    def _jobs(self, file: SourceFile) -> Iterator[Carried]:
        """Yields the job of the file, or those of its parts, which are not packed. Raises CannotCut and OSError."""
        plan = file.plan
        if plan.format == _CUT and unpacked_bytes(plan) > self._sizes.part:
            for part in parts_of(partial(open_data, plan.file), self._sizes.part):
                job = CarriedRead(replace(file, skipped=part.skipped), self._forgotten, _PLAIN)
                yield Carried.of(job, **{_PLAIN: part.content})
        elif plan.bytes > self._sizes.whole:
            raise CannotCut("it is too large to be sent whole")
        else:
            name = _PACKED if plan.file.name.lower().endswith(".gz") else _PLAIN
            yield Carried.of(CarriedRead(file, self._forgotten, name), **{name: plan.file.read_bytes()})

    def _whole(self, file: SourceFile, parts: Sequence[FileRead | LostWorker]) -> FileRead | LostWorker | None:
        if any(isinstance(part, LostWorker) for part in parts):
            _drop(parts)
            return self._here(file)
        read = joined([part for part in parts if isinstance(part, FileRead)])
        if file.plan.has_changed:
            _drop(parts)
            return FileRead(FileResult(reason=CHANGED, lost=True), {}, set())
        if read is None or read.result.reason is not None:  # a reason may name a place in the whole file
            _drop(parts)
            return None
        return read


def _drop(parts: Iterable[FileRead | LostWorker]) -> None:
    for part in parts:
        if isinstance(part, FileRead):
            part.result.drop()


def joined(parts: Sequence[FileRead]) -> FileRead | None:
    """Returns the result of a file from those of its parts, in order; None where the parts do not tell it.

    A case that stands in several parts becomes a case that the file repeats, so that the source reads the file again
    and joins the case.
    """
    results = [part.result for part in parts]
    if len(parts) == 1:
        return parts[0]
    counts = _sum([result.counts for result in results])
    encodings = {(result.encoding, result.mixed_encodings) for result in results}
    shown = {result.day_first for result in results if result.day_first is not None}
    names: dict[str, str] = {}
    is_told = all(names.setdefault(k, name) == name for part in parts for k, name in part.names.items())
    failed = any(result.reason is not None for result in results)
    if not parts or failed or not is_told or len(encodings) > 1 or len(shown) > 1 or counts.rejected > HOPELESS:
        return None
    whole = FileResult(counts, encoding=results[0].encoding, mixed_encodings=results[0].mixed_encodings)
    whole.implementations = Spool.together([r.implementations for r in results], IMPLEMENTATIONS.schema)
    whole.rejects = Spool.together([r.rejects for r in results], REJECTS.schema)
    for result in results:
        known = whole.case_ids | whole.quarantined_ids
        whole.repeated |= result.repeated | (known & (result.case_ids | result.quarantined_ids))
        whole.case_ids |= result.case_ids
        whole.quarantined_ids |= result.quarantined_ids
        whole.asked |= result.asked
    whole.asked -= whole.case_ids
    whole.has_work = any(result.has_work for result in results)
    whole.waited_for_work = any(result.waited_for_work for result in results)
    whole.asks_day_first = any(result.asks_day_first for result in results)
    whole.day_first = next(iter(shown), None)
    return FileRead(whole, names, set().union(*(part.left_out for part in parts)))


def _sum(counts: Sequence[Counts]) -> Counts:
    whole = Counts(currencies=sorted({code for one in counts for code in one.currencies}))
    for name in vars(whole):
        if name != "currencies":
            setattr(whole, name, sum(getattr(one, name) for one in counts))
    return whole


@dataclass(frozen=True)
class ParallelReading:
    """When files are read in parallel; the result does not depend on it.

    `processes` is the largest number of worker processes (0: one per core). `file_bytes` are the unpacked bytes from
    which a worker process reads a file, `total_bytes` those of all such files from which worker processes are started.
    From `spark_bytes` of all files on, executors of the session that `session` starts read them; it is told the bytes.
    """

    processes: int = 0
    file_bytes: int = 4 << 20
    total_bytes: int = 48 << 20
    spark_bytes: int = 4 << 30
    session: "Callable[[int], SparkSession] | None" = None
    sizes: Sizes = field(default_factory=Sizes)


class FileReadPool:
    """Reads each file of the sources once. Rows are stored in `folder`."""

    def __init__(
        self,
        plans: Sequence[SourcePlan],
        forgotten: Forgotten,
        folder: Path,
        parallel: ParallelReading,
        progress: Progress,
    ) -> None:
        self._forgotten, self._folder, self._progress = forgotten, folder, progress
        files = [
            ((plan.name, file.path), SourceFile(plan.name, plan.settings, file))
            for plan in plans
            if plan.settings is not None
            for file in plan.files
            if file.refused is None
        ]
        self._workers: WorkerPool[tuple[str, str]] | SparkReading | None
        if parallel.session is not None and sum(unpacked_bytes(f.plan) for _, f in files) >= parallel.spark_bytes:
            self._workers = SparkReading(files, forgotten, folder, parallel.session, parallel.sizes)
        else:
            self._workers = _pool(files, forgotten, folder, parallel, progress)

    def running(self) -> AbstractContextManager[object]:
        """Runs the worker processes while the files are read."""
        return self._workers if isinstance(self._workers, WorkerPool) else nullcontext()

    @property
    def folder(self) -> Path:
        """Returns the folder in which rows are stored."""
        return self._folder

    def again(self, plan: SourcePlan, file: FilePlan, other_files: OtherFiles) -> FileResult:
        """Reads a file once more, with the state of the other files of its source."""
        if plan.settings is None:
            return FileResult(reason=plan.refused)
        return read_file(SourceFile(plan.name, plan.settings, file), other_files, self._folder, self._progress)

    def read(self, plan: SourcePlan, file: FilePlan, other_files: OtherFiles) -> FileResult:
        """Returns the result of the next file of a source, read independently of the others except for the task names.

        The task names in `other_files` apply to the file, and its own are added to them.
        """
        key = (plan.name, file.path)
        if self._workers is not None and key in self._workers:
            try:
                answer: FileRead | None = self._workers.result(key)
            except LostWorker as lost:
                return FileResult(
                    reason=f"{lost}; it was tried twice, and is tried again by the next rebuild", lost=True
                )
            if answer is not None and _is_independent(answer, other_files):
                other_files.names |= answer.names
                other_files.left_out |= answer.left_out
                return answer.result
            if answer is not None:
                answer.result.drop()
        return self.again(plan, file, other_files)


def _pool(
    files: Sequence[tuple[tuple[str, str], SourceFile]],
    forgotten: Forgotten,
    folder: Path,
    parallel: ParallelReading,
    progress: Progress,
) -> WorkerPool[tuple[str, str]] | None:
    """Returns the worker processes for the large files; None where they do not pay."""
    jobs = {
        key: FileReadJob(file, forgotten, folder)
        for key, file in files
        if unpacked_bytes(file.plan) >= parallel.file_bytes
    }
    count = parallel.processes or len(os.sched_getaffinity(0))
    total_bytes = sum(unpacked_bytes(job.file.plan) for job in jobs.values())
    pays = count > 1 and len(jobs) > 1 and total_bytes >= parallel.total_bytes
    return WorkerPool(NoSetup(), jobs, count, progress) if pays else None


def _is_independent(answer: FileRead, other_files: OtherFiles) -> bool:
    """Tells whether the file would have given the same result if it had been read after those before it."""
    return all(other_files.names.get(key, name) == name for key, name in answer.names.items())


class CannotCut(Exception):
    """The log cannot be cut safely: it has to be read whole. The message says why."""


class LogPart(NamedTuple):
    """The bytes of a part, and the number of events before it."""

    content: bytes
    skipped: int


def parts_of(open_file: Callable[[], BinaryIO], size: int) -> Iterator[LogPart]:
    """Cuts a XES log into parts of about `size` bytes that are logs themselves, at the beginning of traces.

    The first part has the head of the log, the others its start tag alone, because no trace depends on the rest.
    Raises CannotCut, possibly after some parts, where comments, CDATA, an encoding other than UTF-8, something between
    two traces or anything else makes it uncertain that the parts together say what the log says.
    """
    head: bytes | None = None
    held, skipped = b"", 0
    with open_file() as file:
        while block := file.read(size):
            held += block
            if head is None:
                head, held = _head(held)
                if head is None:
                    continue
            end = held.rfind(_TRACE_END_TAG) + len(_TRACE_END_TAG)
            if end < len(_TRACE_END_TAG):
                _refuse(len(held) > _LARGEST_PART, "a trace is larger than a part may be")
                continue
            text, held = held[:end], held[end:]
            _check(text)
            yield LogPart(head + text + _LOG_END, skipped)
            tag = _LOG.search(head)
            head = head if tag is None else tag[0]
            skipped += len(_EVENT_TAG.findall(text))
    _refuse(head is None or held.strip() != _LOG_END, "what follows the last trace is not the end of the log alone")


def _head(text: bytes) -> tuple[bytes | None, bytes]:
    """Returns the text before the first trace, None where it is not there yet, and the rest."""
    first = _TRACE_TAG.search(text)
    if first is None:
        _refuse(len(text) > _LARGEST_HEAD, "its head is too long")
        return None, text
    head = text[: first.start()]
    stated = _ENCODING.search(head)
    _refuse(stated is not None and stated[1].lower() != b"utf-8", "it is not in UTF-8")
    _refuse(b"\0" in head, "it is not in UTF-8")
    _refuse(any(mark in head for mark in (b"<!DOCTYPE", b"<![CDATA[")), "its head is not plain")
    _refuse(head.count(b"<!--") != head.count(b"-->"), "its first trace stands in a comment")
    return head, text[first.start() :]


def _check(text: bytes) -> None:
    _refuse(_TRACE_NEXT.match(text) is None, "something stands between two traces")
    _refuse(_BETWEEN_TRACES.search(text) is not None, "something stands between two traces")
    _refuse(b"<!" in text or b"<?" in text, "it has comments, CDATA or instructions between its traces")


def _refuse(is_refused: bool, why: str) -> None:
    if is_refused:
        raise CannotCut(why)
