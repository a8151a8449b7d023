"""Processes of this program's own modules, started afresh: a run has threads and a JVM, from which nothing may be
forked.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[1])
Process = subprocess.Popen[bytes]


def started(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[Connection, Process]:
    """`python -m MODULE FD ARGUMENT…`, and this end of the pipe whose other end it has as file descriptor FD.

    `environment` goes on top of this process's own. The pipe closes when the process ends.
    """
    ours, theirs = Pipe()
    paths = os.pathsep.join(filter(None, (_PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        env={**os.environ, **(environment or {}), "PYTHONPATH": paths},
    )
    theirs.close()
    return ours, process
