"""Dagster's event log in SQLite, kept open while a run goes on."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator

import dagster as dg

INDEX = "index"  # Dagster's name for the file of the events of all runs, beside one file for each run


@contextlib.contextmanager
def kept_open(instance: dg.DagsterInstance, run_id: str) -> Iterator[None]:
    """Holds a connection to each SQLite file that the events of this run go to. Nothing is written through it.

    Dagster opens and closes a file for every event, about five times. SQLite copies its log into the file and waits for
    the disk whenever the last connection is closed: that took two thirds of the time. With another storage, nothing is
    done.
    """
    path_of: Callable[[str], str] | None = getattr(instance.event_log_storage, "path_for_shard", None)
    with contextlib.ExitStack() as held:
        for file in [] if path_of is None else [path_of(INDEX), path_of(run_id)]:
            connection = held.enter_context(contextlib.closing(sqlite3.connect(file)))
            # as Dagster sets it for its files; a connection takes part in the log from its first read
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        yield
