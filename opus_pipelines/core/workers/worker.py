"""Runs the jobs of a run in a freshly started process, because a run has threads and a JVM and must not fork."""

import contextlib
import os
import pickle
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.jobs import Job, Report, Setup

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
