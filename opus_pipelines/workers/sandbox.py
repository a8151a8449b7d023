"""Work that may hang, eat memory or kill its process, done where that costs only itself: in a forked child that serves
one item at a time.

Only a process without further threads may fork like this: `serve` is one, started for the purpose.
"""

import ctypes
import gc
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from opus_pipelines.core.errors import OpusError

Item = TypeVar("Item")
Made = TypeVar("Made")
MIB = 1 << 20
_PR_SET_PDEATHSIG = 1  # sys/prctl.h


class LostWorker(Exception):
    """The item's child did not come back: why, in words for a person."""


class Sandbox(Generic[Item, Made]):
    """`work` in a child of its own; a context, at whose end no child is left. What `work` knows is loaded before, and
    shared by fork.
    """

    def __init__(self, work: Callable[[Item], Made], seconds: float, memory_mb: int) -> None:
        self._work, self._seconds, self._memory_mb = work, seconds, memory_mb
        self._child: tuple[int, Connection] | None = None

    def __enter__(self) -> "Sandbox[Item, Made]":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def do(self, item: Item) -> Made:
        """What `work` makes of the item. Raises Lost where it took too long, too much memory, or its process died;
        what `work` itself raises comes back as Lost too: an OpusError's words as they are, another's with its type.
        """
        _, connection = self._child = self._child or self._fork()
        try:
            connection.send(item)
            if not connection.poll(self._seconds):
                self._end()
                raise LostWorker(f"it took more than {self._seconds:g} s (generation.seconds_per_intake)")
            went_well, said = connection.recv()
        except (EOFError, OSError):
            raise LostWorker(self._how_it_ended()) from None
        if went_well:
            result: Made = said
            return result
        if said == MemoryError.__name__:
            self._end()  # what it left may be too full for the next
            raise LostWorker(f"it needed more than {self._memory_mb} MB (generation.memory_mb_per_intake)")
        raise LostWorker(said)

    def _fork(self) -> tuple[int, Connection]:
        ours, theirs = Pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            theirs.close()
            return pid, ours
        ours.close()
        _serve(self._work, theirs, self._memory_mb, parent)

    def _end(self) -> None:
        if self._child is not None:
            pid, connection = self._child
            self._child = None
            connection.close()
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _how_it_ended(self) -> str:
        assert self._child is not None
        pid, connection = self._child
        self._child = None
        connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}"


def _serve(work: Callable[[Any], Any], connection: Connection, memory_mb: int, parent: int) -> NoReturn:
    """The child: item after item until the parent is gone."""
    try:
        die_with(parent)
        gc.freeze()  # what is shared is never looked through for garbage, and so stays shared
        _limit_memory(memory_mb)
        while True:
            item = connection.recv()
            try:
                answer = True, work(item)
            except MemoryError:
                answer = False, MemoryError.__name__
            except OpusError as error:  # made for a person as it is
                answer = False, str(error)
            except Exception as error:  # one item's fault must not cost the others theirs
                answer = False, f"{type(error).__name__}: {error}"
            connection.send(answer)
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)  # never into the code that forked


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that ends: work that hangs is never left to
    itself.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that was said
        os._exit(0)


def _limit_memory(memory_mb: int) -> None:
    """Let the child's own data grow by so much and no more; what it shares with its parent is not counted."""
    status = Path("/proc/self/status").read_text("ascii")
    now = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))
    limit = now + memory_mb * MIB
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
