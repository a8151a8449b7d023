"""Runs work that may hang, use too much memory or crash in a forked child, one item at a time.

Only a process without further threads may fork like this: `worker_main` is one, started for the purpose.
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
Result = TypeVar("Result")
MIB = 1 << 20
_PR_SET_PDEATHSIG = 1  # sys/prctl.h


class LostWorker(Exception):
    """The child did not return a result for the item; the message gives the reason."""


class Sandbox(Generic[Item, Result]):
    """Runs `work` on items in a forked child, with limits on time and memory.

    It is a context manager that ends the child at its end. Data that `work` uses is loaded before the fork, and shared
    with the child.
    """

    def __init__(self, work: Callable[[Item], Result], seconds: float, memory_mb: int) -> None:
        self._work, self._seconds, self._memory_mb = work, seconds, memory_mb
        self._child: tuple[int, Connection] | None = None

    def __enter__(self) -> "Sandbox[Item, Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def do(self, item: Item) -> Result:
        """Returns the result of `work` for the item.

        Raises LostWorker where the work takes too much time or memory, where its process ends, or where `work` raises:
        the message of an OpusError is kept, that of another error follows its type.
        """
        _, connection = self._child = self._child or self._fork()
        try:
            connection.send(item)
            if not connection.poll(self._seconds):
                self._end()
                raise LostWorker(f"it took more than {self._seconds:g} s (generation.seconds_per_intake)")
            succeeded, answer = connection.recv()
        except (EOFError, OSError):
            raise LostWorker(self._how_it_ended()) from None
        if succeeded:
            result: Result = answer
            return result
        if answer == MemoryError.__name__:
            self._end()  # the next item needs a child with free memory
            raise LostWorker(f"it needed more than {self._memory_mb} MB (generation.memory_mb_per_intake)")
        raise LostWorker(answer)

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
    """Answers item after item in the child until the parent ends."""
    try:
        die_with(parent)
        gc.freeze()  # the collector would write to shared pages, and so copy them
        _limit_memory(memory_mb)
        while True:
            item = connection.recv()
            try:
                answer = True, work(item)
            except MemoryError:
                answer = False, MemoryError.__name__
            except OpusError as error:  # its message is written for a person
                answer = False, str(error)
            except Exception as error:  # one item's failure must not fail the others
                answer = False, f"{type(error).__name__}: {error}"
            connection.send(answer)
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)  # never into the code that forked


def die_with(parent: int) -> None:
    """Makes the kernel end this process when its parent ends, so that work that hangs is never left running."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before prctl was called
        os._exit(0)


def _limit_memory(memory_mb: int) -> None:
    """Limits how far the child's own data may grow, in MiB. Memory shared with its parent does not count."""
    status = Path("/proc/self/status").read_text("ascii")
    now = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))
    limit = now + memory_mb * MIB
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
