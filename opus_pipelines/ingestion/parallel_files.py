"""Reads the files of all sources, large ones in parallel where that saves time.

The result is the same as when the files are read one after the other.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.event_logs.assembler import OtherFiles
from opus_pipelines.event_logs.forgotten_clients import Forgotten
from opus_pipelines.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.ingestion.read_file import FileResult, Progress, SourceFile, read_file
from opus_pipelines.workers.jobs import Report
from opus_pipelines.workers.pool import WorkerPool
from opus_pipelines.workers.sandbox import LostWorker

_UNPACKED = 15  # estimated ratio of the unpacked size of a log to its compressed size


@dataclass(frozen=True)
class ParallelReading:
    """When files are read in parallel; the result does not depend on it.

    `processes` is the largest number of worker processes (0: one per core). `file_bytes` are the unpacked bytes from
    which a worker process reads a file, `total_bytes` those of all such files from which worker processes are started.
    """

    processes: int = 0
    file_bytes: int = 4 << 20
    total_bytes: int = 48 << 20


class NoSetup:
    """Worker processes that read files need no setup: a job holds all that it depends on."""

    def open(self) -> AbstractContextManager[None]:
        """Returns a context without a state."""
        return nullcontext()


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
                spool.finish(to_disk=True)
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
        jobs = {
            (plan.name, file.path): FileReadJob(SourceFile(plan.name, plan.settings, file), forgotten, folder)
            for plan in plans
            if plan.settings is not None
            for file in plan.files
            if unpacked_bytes(file) >= parallel.file_bytes
        }
        count = parallel.processes or len(os.sched_getaffinity(0))
        total_bytes = sum(unpacked_bytes(job.file.plan) for job in jobs.values())
        pays = count > 1 and len(jobs) > 1 and total_bytes >= parallel.total_bytes
        self._workers = WorkerPool(NoSetup(), jobs, count, progress) if pays else None

    def running(self) -> AbstractContextManager[object]:
        """Runs the worker processes while the files are read."""
        return self._workers or nullcontext()

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
                answer: FileRead = self._workers.result(key)
            except LostWorker as lost:
                return FileResult(
                    reason=f"{lost}; it was tried twice, and is tried again by the next rebuild", lost=True
                )
            if _is_independent(answer, other_files):
                other_files.names |= answer.names
                other_files.left_out |= answer.left_out
                return answer.result
            answer.result.drop()
        return self.again(plan, file, other_files)


def _is_independent(answer: FileRead, other_files: OtherFiles) -> bool:
    """Tells whether the file would have given the same result if it had been read after those before it."""
    return all(other_files.names.get(key, name) == name for key, name in answer.names.items())


def unpacked_bytes(file: FilePlan) -> int:
    """Returns about how many bytes there are to read: 15 times the size of a compressed file, 0 of a refused one."""
    return 0 if file.refused is not None else file.bytes * (_UNPACKED if file.path.lower().endswith(".gz") else 1)
