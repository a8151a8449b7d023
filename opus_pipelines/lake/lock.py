"""One writer at a time: a lock that the kernel drops when its holder ends, however it ends, with a note of who holds
it.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from opus_pipelines.core.errors import LakeError

_held: set[int] = set()


def _let_go() -> None:
    """A forked worker must not outlive its parent as the lock's holder."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def exclusive(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock file `path`; raises LakeError naming the live process that writes to `what` already."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _holder(handle)
        os.close(handle)
        raise LakeError(f"another run ({holder}) is writing to {what}; wait for it to end") from None
    _held.add(handle)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"process": os.getpid(), "command": _command(), "since": _now()}).encode(), 0)
        yield
    finally:
        if handle in _held:  # not in a forked child, which has let go
            _held.remove(handle)
            os.close(handle)


def this_process() -> str:
    """This process by number and start, which no later process shares."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def is_alive(mark: str) -> bool:
    """Does the process that `this_process` once named still run?"""
    number, _, started = mark.partition(":")
    return number.isdigit() and started == _started(int(number)) != ""


def _started(process: int) -> str:
    """Its start in clock ticks since boot; empty where there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _holder(handle: int) -> str:
    try:
        note = json.loads(os.pread(handle, 4096, 0))
        return f"process {note['process']}, {note['command']}, since {note['since']}"
    except (ValueError, KeyError, TypeError):
        return "it has not said which yet"


def _command() -> str:
    """What was typed, as far as one line has room."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:120]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
