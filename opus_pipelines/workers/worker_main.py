"""The process behind `Worker`: `python -m opus_pipelines.workers.worker_main FD PARENT`.

It has one thread, and it ends when its parent ends.
"""

import pickle
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.sandbox import die_with


def main() -> None:
    """Runs the jobs that come through the connection, one after the other, on the state that the setup makes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that started it ends it
    die_with(int(sys.argv[2]))
    connection = Connection(int(sys.argv[1]))
    try:
        with pickle.loads(connection.recv_bytes()).bench() as bench:
            while True:
                connection.send(_answer(bench, pickle.loads(connection.recv_bytes()), connection.send))
    except EOFError:
        return


def _answer(bench: Any, job: Any, tell: Callable[[str], None]) -> tuple[bool, Any]:
    try:
        return True, job.done_at(bench, tell)
    except OpusError as error:
        return False, str(error)
    except Exception as error:  # the run that sent the job reports what failed
        return False, f"{job}: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
