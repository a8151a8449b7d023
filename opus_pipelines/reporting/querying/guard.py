"""Runs questions on a locked connection: only the files of the views can be read, and time and memory are limited.

The parser's gate (`gate`) is the first defence. This module is the second one: it holds where the gate would fail.
"""

import os
import resource
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings_sections import Query

MIB = 1 << 20
BESIDE_MB = 512  # for the rows that are written out, beside what DuckDB takes
_CTRL_C, _ENDED = bytes([signal.SIGINT]), b"\0"
HARD_STOP = 15.0  # seconds after the time limit; some functions of DuckDB do not look whether they are interrupted


def lock(connection: duckdb.DuckDBPyConnection, limits: Query, spill: Path | None = None) -> None:
    """Takes everything from the connection but reading the files of its views. It cannot be undone.

    `spill`: the folder for what does not fit into memory; without it, that fails. A connection that is locked already
    stays as it is.
    """
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
        return
    ((readable,),) = connection.execute(
        "SELECT list_distinct(flatten(map_values(coalesce(getvariable('files'), MAP {})))"
        " || (SELECT coalesce(list(file), []) FROM glob(coalesce(getvariable('empty'), '-') || '/**/*.parquet')))"
    ).fetchall()
    for name, value in {
        "memory_limit": f"{limits.memory_mb}MiB",
        "temp_directory": str(spill or ""),
        "max_temp_directory_size": f"{limits.spill_mb}MiB",
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allowed_paths": readable,
        "enable_external_access": False,
        "lock_configuration": True,
    }.items():
        connection.execute(f"SET {name} = $1", [value])


@contextmanager
def timed(
    connection: duckdb.DuckDBPyConnection,
    limits: Query,
    stop: Callable[[str], None] | None = None,
    hard_stop: float = HARD_STOP,
) -> Iterator[Path]:
    """Interrupts the connection when the time is over, or on Ctrl-C, which DuckDB does not look for while it works.

    Yields a folder for `lock`, which is removed at the end.

    `stop` ends the process where an interrupt has no effect for `hard_stop` seconds. Raises InputError for every
    failure of DuckDB, in words for a person.
    """
    over, pressed, done = threading.Event(), threading.Event(), threading.Event()
    said = f"the query took more than {limits.seconds:g} s (query.seconds) and was stopped"

    def watch() -> None:
        if signals.wait(limits.seconds):
            pressed.set()
        elif not done.is_set():
            over.set()
        if done.is_set():
            return
        end = time.monotonic() + hard_stop
        while time.monotonic() < end:
            connection.interrupt()
            if done.wait(min(1.0, hard_stop)):
                return
        (stop or _end_process)(said if over.is_set() else "stopped")

    signals = _CtrlC()
    watcher = threading.Thread(target=watch, name="query-timer", daemon=True)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory(prefix="opus-query-") as folder, _bounded(limits.memory_mb):
            yield Path(folder)
    except (duckdb.InterruptException, RuntimeError) as error:
        if over.is_set():
            raise InputError(said) from None
        if isinstance(error, duckdb.Error) or pressed.is_set():
            raise KeyboardInterrupt from None
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        raise InputError(
            f"the query needs more than the {limits.memory_mb} MB of memory or {limits.spill_mb} MB of disk that it "
            "may take (query.memory_mb, query.spill_mb); ask for fewer rows or columns"
        ) from None
    except duckdb.Error as error:
        raise InputError(f"the query failed: {error}") from None
    finally:
        done.set()
        signals.end()
        watcher.join()
        signals.close()


class _CtrlC:
    """Lets another thread wait for Ctrl-C: Python itself tells only the main thread, once that is back from DuckDB."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._is_main = threading.current_thread() is threading.main_thread()
        self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False) if self._is_main else -1

    def wait(self, seconds: float) -> bool:
        """Returns True on Ctrl-C; False when the time is over, or after `end`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._reader], [], [], left)
            told = self._reader.recv(1) if ready else _ENDED
            if told in (_ENDED, _CTRL_C):
                return told == _CTRL_C
        return False

    def end(self) -> None:
        """Ends the waiting, and gives signals back to whoever had them."""
        if self._is_main:
            signal.set_wakeup_fd(self._before)
        self._writer.send(_ENDED)

    def close(self) -> None:
        """Closes what it waits on; nobody may wait any more."""
        self._reader.close()
        self._writer.close()


@contextmanager
def _bounded(memory_mb: int) -> Iterator[None]:
    """Limits the data of this process: DuckDB's own limit does not count what functions on texts and lists take.

    Where the system does not tell the size of the process, DuckDB's limit is the only one.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        yield
        return
    now = next(int(line.split()[1]) << 10 for line in status.read_text("ascii").splitlines() if "VmData:" in line)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = [now + (memory_mb + BESIDE_MB) * MIB, *(old for old in (soft, hard) if old != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _end_process(said: str) -> None:
    sys.stderr.write(f"opus: {said}\n")
    sys.stderr.flush()
    os._exit(1)
