"""Lets one process at a time write to a lake. The kernel releases the lock when its holder ends, however it ends.

The lock file names its holder, for the message to other processes.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError, LakeHeld

_held: set[int] = set()
_batches: set[Path] = set()  # lock files that this process holds for several of its runs
_lost: dict[Path, str] = {}  # lakes in an object store whose lease another writer has taken over, with what to say


def _release_in_child() -> None:
    """Closes the lock in a forked child, which must not hold it longer than its parent lives."""
    for handle in _held:
        os.close(handle)
    _held.clear()
    _batches.clear()


os.register_at_fork(after_in_child=_release_in_child)


@contextmanager
def exclusive(path: Path, what: Path, run: str = "") -> Iterator[bool]:
    """Holds the lock file `path`, and yields whether this process holds it.

    Yields False where another process of the same `run` holds it, and True within a `batch` of this process. Raises
    LakeHeld naming the live process that already writes to `what`.
    """
    if path in _batches:
        yield True
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        note = _note(handle)
        os.close(handle)
        if run and note.get("run") == run:
            yield False
            return
        raise LakeHeld(f"another run ({_holder(note)}) is writing to {what}; wait for it to end") from None
    _held.add(handle)
    _lost.pop(what, None)
    try:
        note = {"process": os.getpid(), "command": _command(), "since": _now(), "run": run}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(note).encode(), 0)
        yield True
    finally:
        if handle in _held:  # not in a forked child, which has let go
            _held.remove(handle)
            os.close(handle)


@contextmanager
def batch(path: Path, what: Path) -> Iterator[None]:
    """Holds the lock file `path` for several runs of this process, each of which asks for it by `exclusive`.

    Raises LakeHeld as `exclusive` does.
    """
    with exclusive(path, what):
        _batches.add(path)
        try:
            yield
        finally:
            _batches.discard(path)


def mark_lost(root: Path, message: str) -> None:
    """Notes that this process may write to the lake no more, though it holds the lock file."""
    _lost[root] = message


def require_kept(root: Path) -> None:
    """Raises LakeError where the right to write was lost since the lock was taken."""
    if root in _lost:
        raise LakeError(_lost[root])


def this_process() -> str:
    """Returns the number and the start time of this process, which no later process shares."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def is_alive(mark: str) -> bool:
    """Returns whether the process whose `this_process` is `mark` still runs."""
    number, _, started = mark.partition(":")
    return number.isdigit() and started == _started(int(number)) != ""


def _started(process: int) -> str:
    """Returns the start of a process in clock ticks since boot, or an empty text where there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _note(handle: int) -> dict[str, Any]:
    """Returns what the holder wrote into the lock file, or nothing where it has not done so yet."""
    try:
        note = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _holder(note: dict[str, Any]) -> str:
    if not {"process", "command", "since"} <= set(note):
        return "it has not said which yet"
    return f"process {note['process']}, {note['command']}, since {note['since']}"


def _command() -> str:
    """Returns the command line of this process, at most 120 characters."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:120]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
