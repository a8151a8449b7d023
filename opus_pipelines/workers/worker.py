"""Runs the jobs of a run in a freshly started process, because a run has threads and a JVM and must not fork."""

import contextlib
import os
import pickle
import subprocess
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.processes import Process, started

_EXIT_SECONDS = 10.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Worker:
    """Runs jobs one after the other in `python -m opus_pipelines.workers.worker_main`, which ends with this context.

    `setup` is sent first; `progress` receives the lines that a job reports while it runs. A job that fails raises
    OpusError with the reason. So does a job whose process ended; the next job then starts another process.
    """

    def __init__(self, setup: Any, progress: Callable[[str], None] = lambda line: None) -> None:
        self.setup, self._progress = setup, progress
        self._running: tuple[Process, Connection] | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def do(self, job: Any) -> Any:
        """Runs one job and returns its answer. Raises OpusError where the job fails or its process ends."""
        process, connection = self._running = self._running or self._started()
        try:
            connection.send_bytes(pickle.dumps(job))
            while isinstance(answer := connection.recv(), str):
                self._progress(answer)
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_SECONDS)  # the pipe closes a moment before the exit code is known
            self.end()
            raise OpusError(f"the process that worked on {job} {_how_it_ended(process.returncode)}") from None
        succeeded, result = answer
        if not succeeded:
            raise OpusError(result)
        return result

    def end(self) -> None:
        """Ends the process, if there is one; its unfinished work is lost."""
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()
            process.wait()

    def _started(self) -> tuple[Process, Connection]:
        ours, process = started("opus_pipelines.workers.worker_main", str(os.getpid()), environment=_ONE_THREAD)
        ours.send_bytes(pickle.dumps(self.setup))
        return process, ours


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection and did not end"
    if code < 0:  # the kernel sends SIGKILL to a process when the machine has no memory left
        return f"was ended by signal {-code}: too little memory, perhaps"
    return f"ended with exit code {code}; its error stands in the log of this run"
