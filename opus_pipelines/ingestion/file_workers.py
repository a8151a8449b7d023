"""Reads files in parallel, each in a worker process that shares no state with the others.

The processes are started with `python -m opus_pipelines.ingestion.file_worker_main` and never forked, because the run
has threads and a JVM. If a process dies, only its file is affected: it is tried once more while no other file is read,
because two large files may need more memory together than there is.
"""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from opus_pipelines.event_logs.forgotten_clients import Forgotten
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.ingestion.plan import FilePlan
from opus_pipelines.ingestion.read_file import FileResult
from opus_pipelines.workers.processes import Process, started

Key = tuple[str, str]  # source and path


@dataclass
class Job:
    """One file to read as if it were the first of its source. Its rows are written to `folder`."""

    source: str
    settings: SourceSettings
    file: FilePlan
    forgotten: Forgotten
    folder: Path


@dataclass
class Answer:
    """The result of a job, and the state that the reading of later files of the source depends on."""

    result: FileResult
    names: dict[str, str]
    left_out: set[str]


class Workers:
    """A set of worker processes and the jobs for them. As a context manager it ends all processes on exit."""

    def __init__(self, count: int, jobs: Mapping[Key, Job], progress: Callable[[str], None]) -> None:
        self._jobs, self._progress = jobs, progress
        self._waiting = deque(jobs)
        self._alone: deque[Key] = deque()  # those whose process died, to be tried once more
        self._count = min(count, len(jobs))
        self._busy: dict[Connection, tuple[Process, Key]] = {}
        self._idle: list[tuple[Connection, Process]] = []
        self._answers: dict[Key, Answer] = {}

    def __enter__(self) -> "Workers":
        self._assign_jobs()
        return self

    def __exit__(self, *_: object) -> None:
        for connection, process in [*self._idle, *((c, p) for c, (p, _) in self._busy.items())]:
            connection.close()
            process.kill()
            process.wait()

    def __contains__(self, key: Key) -> bool:
        return key in self._jobs

    def answer(self, key: Key) -> Answer:
        """Waits for a job and returns its result."""
        while key not in self._answers:
            for connection in wait(list(self._busy)):
                self._receive(connection)  # type: ignore[arg-type]
            self._assign_jobs()
        return self._answers.pop(key)

    def _receive(self, connection: Connection) -> None:
        process, key = self._busy[connection]
        try:
            message: Any = connection.recv()
        except (EOFError, OSError):
            del self._busy[connection]
            connection.close()
            self._died(key, process)
            return
        if isinstance(message, str):
            self._progress(message)
            return
        del self._busy[connection]
        if key in self._alone:
            self._alone.remove(key)
        self._answers[key] = message
        self._idle.append((connection, process))

    def _died(self, key: Key, process: Process) -> None:
        code = process.wait()
        if key not in self._alone:
            self._alone.append(key)
            return
        self._alone.remove(key)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        reason = (
            f"the process that read it {how}, twice: too little memory, perhaps; it is tried again by the next rebuild"
        )
        self._answers[key] = Answer(FileResult(reason=reason, lost=True), {}, set())

    def _assign_jobs(self) -> None:
        while self._waiting and len(self._busy) < self._count:
            self._start(self._waiting.popleft())
        if self._alone and not self._busy:
            self._start(self._alone[0])

    def _start(self, key: Key) -> None:
        connection, process = self._idle.pop() if self._idle else started("opus_pipelines.ingestion.file_worker_main")
        self._busy[connection] = (process, key)
        with suppress(OSError):  # if the process died already, receiving from it shows that
            connection.send(self._jobs[key])
