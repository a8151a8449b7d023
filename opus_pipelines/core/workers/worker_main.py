"""The process behind `Worker`: `python -m opus_pipelines.core.workers.worker_main FD PARENT`.

It has one thread, and it ends when its parent ends.
"""

import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.pool import Job, Report, Setup
from opus_pipelines.core.workers.sandbox import die_with


def main() -> None:
    """Runs the jobs that come through the connection, one after the other, on the state that the setup makes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that started it ends it
    die_with(int(sys.argv[2]))
    connection = Connection(int(sys.argv[1]))
    try:
        setup: Setup = pickle.loads(connection.recv_bytes())
        with setup.open() as state:
            while True:
                connection.send(_answer(pickle.loads(connection.recv_bytes()), state, connection.send))
    except EOFError:
        return


def _answer(job: Job, state: Any, report: Report) -> tuple[bool, Any]:
    try:
        return True, job.run(state, report)
    except OpusError as error:
        return False, str(error)
    except Exception as error:  # the run that sent the job reports what failed
        return False, f"{job}: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
