"""A process that does a run's jobs, started afresh: the run itself has threads and a JVM, from which nothing may be
forked.
"""

import contextlib
import os
import pickle
import subprocess
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.processes import Process, started

_LAST_BREATH_SECONDS = 10.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Worker:
    """`python -m opus_pipelines.workers.worker_main`, which answers job after job; a context, at whose end it is gone.

    `setup` is what it is told first; `progress` takes what it says meanwhile. A job that fails raises OpusError with
    the reason; so does one whose server died, and the next job starts another.
    """

    def __init__(self, setup: Any, progress: Callable[[str], None] = lambda line: None) -> None:
        self.setup, self._progress = setup, progress
        self._running: tuple[Process, Connection] | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def do(self, job: Any) -> Any:
        """What the job comes to."""
        process, connection = self._running = self._running or self._started()
        try:
            connection.send_bytes(pickle.dumps(job))
            while isinstance(answer := connection.recv(), str):
                self._progress(answer)
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(
                    _LAST_BREATH_SECONDS
                )  # its pipe closes a moment before it has ended, and how it ended is to be said
            self.end()
            raise OpusError(
                f"the process that worked on {job} ended with {process.returncode}: too little memory, perhaps"
            ) from None
        went_well, said = answer
        if not went_well:
            raise OpusError(said)
        return said

    def end(self) -> None:
        """End the process, if there is one; what it does is lost."""
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
