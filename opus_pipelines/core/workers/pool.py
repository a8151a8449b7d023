"""Runs jobs in other processes: the protocol, one worker process, and several at once.

Runs the jobs of a run in a freshly started process, because a run has threads and a JVM and must not fork.

Runs jobs in several worker processes at once, where the jobs' order does not matter and their number is known.
`side_by_side` runs them on workers that stay for the next jobs. `WorkerPool` has workers of its own: a job that fails
costs only itself. It is tried once more while no other job runs, because two large jobs may need more memory together
than there is.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.sandbox import LostWorker

Report = Callable[[str], None]  # takes a line for the person who started the run


class Setup(Protocol):
    """What a worker process must know before its first job; it is pickled."""

    def open(self) -> AbstractContextManager[Any]:
        """Returns a context in the worker process, whose value is the state that all its jobs share."""
        ...


@dataclass(frozen=True)
class NoSetup:
    """The setup of worker processes whose jobs hold all that they depend on."""

    def open(self) -> AbstractContextManager[None]:
        """Returns a context without a state."""
        return nullcontext()

    def there(self) -> "NoSetup":
        """Returns the setup on an executor."""
        return self


class Job(Protocol):
    """A piece of work; it is pickled, and `str` names it in messages."""

    def run(self, state: Any, report: Report) -> Any:
        """Returns the answer, which is pickled. An OpusError that it raises is passed on with its message."""
        ...


Process = subprocess.Popen[bytes]
Answer = tuple[bool, Any]  # whether the job succeeded, and its result, or the reason why it did not
_MAIN = "opus_pipelines.core.workers.worker_main"
_SOURCE_ROOT = str(Path(__file__).resolve().parents[3])  # the folder that holds `opus_pipelines`
_EXIT_SECONDS = 10.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Worker:
    """Runs jobs one after the other in `python -m opus_pipelines.core.workers.worker_main`, which ends with this
    context.

    `setup` is sent first; `report` receives the lines that a job reports while it runs. A job that fails raises
    OpusError with the reason. So does a job whose process ended; the next job then starts another process.
    """

    def __init__(self, setup: Setup, report: Report = lambda line: None) -> None:
        self.setup, self._report = setup, report
        self._running: tuple[Process, Connection] | None = None
        self._job: Job | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def do(self, job: Job) -> Any:
        """Runs one job and returns its result. Raises OpusError where the job fails or its process ends."""
        self.send(job)
        return self.answer()

    def answer(self) -> Any:
        """Waits for the result of the job that was sent, and returns it. Raises OpusError as `do` does."""
        while (answer := self.receive()) is None:
            pass
        succeeded, result = answer
        if not succeeded:
            raise OpusError(result)
        return result

    def send(self, job: Job) -> Connection:
        """Starts a job; starts the process where there is none. Returns the connection on which its messages come."""
        _, connection = self._running = self._running or self._started()
        self._job = job
        with contextlib.suppress(OSError):  # where the process has ended, `receive` finds that
            connection.send_bytes(pickle.dumps(job))
        return connection

    def receive(self) -> Answer | None:
        """Waits for the next message of the job: reports a line and returns None, or returns the answer."""
        assert self._running is not None
        process, connection = self._running
        try:
            message = connection.recv()
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_SECONDS)  # the pipe closes a moment before the exit code is known
            self.end()
            return False, f"the process that worked on {self._job} {_how_it_ended(process.returncode)}"
        if isinstance(message, str):
            self._report(message)
            return None
        succeeded, result = message
        return succeeded, result

    def end(self) -> None:
        """Ends the process, if there is one; its unfinished work is lost."""
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()
            process.wait()

    def _started(self) -> tuple[Process, Connection]:
        """Starts the process, which has the other end of a pipe. The pipe closes when the process ends."""
        ours, theirs = Pipe()
        paths = os.pathsep.join(filter(None, (_SOURCE_ROOT, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-m", _MAIN, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            # no module of the working directory is imported: it may hold somebody's files
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
        )
        theirs.close()
        ours.send_bytes(pickle.dumps(self.setup))
        return process, ours


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection and did not end"
    if code < 0:  # the kernel sends SIGKILL to a process when the machine has no memory left
        return f"was ended by signal {-code}: too little memory, perhaps"
    return f"ended with exit code {code}; its error stands in the log of this run"


Key = TypeVar("Key", bound=Hashable)


def side_by_side(workers: Sequence[Worker], jobs: Sequence[Job], progress: Callable[[int], None]) -> list[Any]:
    """Runs the jobs on the workers, one at a time on each, and returns their answers in order.

    `progress` is called with the number of jobs done. Raises OpusError with the reason of the first job that failed,
    after all jobs have run.
    """
    waiting, idle = deque(enumerate(jobs)), list(workers)
    busy: dict[Connection, tuple[Worker, int]] = {}
    answers: dict[int, Answer] = {}
    try:
        while len(answers) < len(jobs):
            while waiting and idle:
                number, job = waiting.popleft()
                worker = idle.pop(0)
                busy[worker.send(job)] = worker, number
            for connection in wait(list(busy)):
                worker, number = busy[cast(Connection, connection)]
                if (answer := worker.receive()) is not None:
                    del busy[cast(Connection, connection)]
                    idle.append(worker)
                    answers[number] = answer
                    progress(len(answers))
    finally:  # the answer of a job that was interrupted must not be taken for that of the next one
        for worker, _ in busy.values():
            worker.end()
    in_order = [answers[number] for number in range(len(jobs))]
    for succeeded, reason in in_order:
        if not succeeded:
            raise OpusError(reason)
    return [answer for _, answer in in_order]


class WorkerPool(Generic[Key]):
    """At most `count` worker processes and their jobs by key. As a context manager it ends all processes on exit."""

    def __init__(self, setup: Setup, jobs: Mapping[Key, Job], count: int, report: Report) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._failed: deque[Key] = deque()  # to be tried once more, alone
        self._idle = [Worker(setup, report) for _ in range(min(count, len(jobs)))]
        self._busy: dict[Connection, tuple[Worker, Key]] = {}
        self._answers: dict[Key, Answer] = {}

    def __enter__(self) -> "WorkerPool[Key]":
        self._assign_jobs()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in [*self._idle, *(worker for worker, _ in self._busy.values())]:
            worker.end()

    def __contains__(self, key: object) -> bool:
        return key in self._jobs

    def result(self, key: Key) -> Any:
        """Waits for a job and returns its result, once. Raises LostWorker where the job failed twice."""
        while key not in self._answers:
            for connection in wait(list(self._busy)):
                self._receive(cast(Connection, connection))
            self._assign_jobs()
        succeeded, result = self._answers.pop(key)
        if not succeeded:
            raise LostWorker(result)
        return result

    def _receive(self, connection: Connection) -> None:
        worker, key = self._busy[connection]
        if (answer := worker.receive()) is None:
            return
        del self._busy[connection]
        self._idle.append(worker)
        is_second = key in self._failed
        if not answer[0]:
            worker.end()  # the next job needs a process with free memory
        if not answer[0] and not is_second:
            self._failed.append(key)
            return
        if is_second:
            self._failed.remove(key)
        self._answers[key] = answer

    def _assign_jobs(self) -> None:
        while self._waiting and self._idle:
            self._start(self._waiting.popleft())
        if self._failed and not self._busy:
            self._start(self._failed[0])

    def _start(self, key: Key) -> None:
        worker = self._idle.pop()
        self._busy[worker.send(self._jobs[key])] = worker, key
