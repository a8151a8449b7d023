"""Reads the files of all sources, large ones in parallel where that saves time.

The result is the same as when the files are read one after the other.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.workers.jobs import NoSetup
from opus_pipelines.core.workers.pool import WorkerPool
from opus_pipelines.core.workers.sandbox import LostWorker
from opus_pipelines.history.ingestion.file_jobs import FileRead, FileReadJob, unpacked_bytes
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.history.ingestion.read_file import FileResult, Progress, SourceFile, read_file
from opus_pipelines.history.ingestion.spark_reading import Sizes, SparkReading
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.forgotten_clients import Forgotten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
