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
from opus_pipelines.ingestion.file_workers import Answer, Job, Workers
from opus_pipelines.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.ingestion.read_file import FileResult, Progress, read_file

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
            (plan.name, file.path): Job(plan.name, plan.settings, file, forgotten, folder)
            for plan in plans
            if plan.settings is not None
            for file in plan.files
            if unpacked_bytes(file) >= parallel.file_bytes
        }
        count = parallel.processes or len(os.sched_getaffinity(0))
        total_bytes = sum(unpacked_bytes(job.file) for job in jobs.values())
        pays = count > 1 and len(jobs) > 1 and total_bytes >= parallel.total_bytes
        self._workers = Workers(count, jobs, progress) if pays else None

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
        return read_file(plan.name, plan.settings, file, other_files, self._folder, self._progress)

    def read(self, plan: SourcePlan, file: FilePlan, other_files: OtherFiles) -> FileResult:
        """Returns the result of the next file of a source, read independently of the others except for the task names.

        The task names in `other_files` apply to the file, and its own are added to them.
        """
        key = (plan.name, file.path)
        if self._workers is not None and key in self._workers:
            answer = self._workers.answer(key)
            if _is_independent(answer, other_files):
                other_files.names |= answer.names
                other_files.left_out |= answer.left_out
                return answer.result
            answer.result.drop()
        return self.again(plan, file, other_files)


def _is_independent(answer: Answer, other_files: OtherFiles) -> bool:
    """Tells whether the file would have given the same result if it had been read after those before it."""
    return all(other_files.names.get(key, name) == name for key, name in answer.names.items())


def unpacked_bytes(file: FilePlan) -> int:
    """Returns about how many bytes there are to read: 15 times the size of a compressed file, 0 of a refused one."""
    return 0 if file.refused is not None else file.bytes * (_UNPACKED if file.path.lower().endswith(".gz") else 1)
