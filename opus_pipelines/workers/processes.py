"""Starts modules of this package as new processes, because a run has threads and a JVM and must not fork."""

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

_SOURCE_ROOT = str(Path(__file__).resolve().parents[2])  # the folder that holds `opus_pipelines`
Process = subprocess.Popen[bytes]


def started(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[Connection, Process]:
    """Starts `python -m MODULE FD ARGUMENT...` and returns this end of a pipe and the process.

    The process has the other end of the pipe as file descriptor FD. `environment` is added to this process's own. The
    pipe closes when the process ends.
    """
    ours, theirs = Pipe()
    paths = os.pathsep.join(filter(None, (_SOURCE_ROOT, os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        env={**os.environ, **(environment or {}), "PYTHONPATH": paths},
    )
    theirs.close()
    return ours, process
