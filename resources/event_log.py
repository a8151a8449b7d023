"""Dagster's record in SQLite, kept open and without a wait for the disk at every event while a run goes on."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy import Engine, event

INDEX = "index"  # Dagster's name for the file of the events of all runs, beside one file for each run
RUNS = "runs.db"  # its file of the runs, one folder above


@contextlib.contextmanager
def kept_open(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Holds a connection to each SQLite file that this run is recorded in. Nothing is written through it.

    Dagster opens and closes a file for every event, about five times. SQLite copies its log into the file and waits for
    the disk whenever the last connection is closed: that took two thirds of the time. It also waits for the disk at
    every commit, which `synchronous = NORMAL` leaves to the copy: a process that is killed loses nothing by that, and
    where the machine loses its power the last events may be missing, while the file stays sound
    (https://sqlite.org/pragma.html#pragma_synchronous). With another storage, nothing is done.
    """
    path_of: Callable[[str], str] | None = getattr(instance.event_log_storage, "path_for_shard", None)
    if path_of is None:
        yield
        return
    index = Path(path_of(INDEX))
    files = {str(index), path_of(run_id), str(index.parent.parent / RUNS)}

    def relaxed(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            (_, _, file), *_ = connection.execute("PRAGMA database_list").fetchall()
            if file in files:
                connection.execute("PRAGMA synchronous = NORMAL")

    with contextlib.ExitStack() as held:
        for file in sorted(files):
            connection = held.enter_context(contextlib.closing(sqlite3.connect(file)))
            # as Dagster sets it for its files; a connection takes part in the log from its first read
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        event.listen(Engine, "connect", relaxed)
        held.callback(event.remove, Engine, "connect", relaxed)
        yield
