"""Dagster's record in SQLite, kept open and without a wait for the disk at every event while runs go on."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy import Connection, Engine, create_engine, event, inspect

INDEX = "index"  # Dagster's name for the file of the events of all runs, beside one file for each run
_WAIT_SECONDS = 30  # for a lock of another process, as Dagster sets it for its files


@contextlib.contextmanager
def kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Keeps one connection to each SQLite file of Dagster's record, and what SQLAlchemy compiled for it.

    Dagster makes an engine for every query, about six for an event: making it, opening the file and compiling the
    statement again took nine tenths of the time, 1.7 s of CPU for each contract. SQLite also copies its log into the
    file and waits for the disk whenever the last connection is closed, and waits for the disk at every commit, which
    `synchronous = NORMAL` leaves to the copy: a process that is killed loses nothing by that, and where the machine
    loses its power the last events may be missing, while the file stays sound
    (https://sqlite.org/pragma.html#pragma_synchronous). Other processes read and write meanwhile as before. With
    another storage, nothing is done.
    """
    events: Any = instance.event_log_storage
    runs: Any = instance.run_storage
    if type(events) is not SqliteEventLogStorage or type(runs) is not SqliteRunStorage:
        yield
        return
    files = _Files()
    vars(events)["files"] = vars(runs)["files"] = files
    events.__class__, runs.__class__ = _KeptEvents, _KeptRuns
    try:
        yield
    finally:
        events.__class__, runs.__class__ = SqliteEventLogStorage, SqliteRunStorage
        files.close(*files.engines)


@dataclass
class _Files:
    """The open files, by the text that names one to SQLAlchemy."""

    engines: dict[str, Engine] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)  # of the index, that were found there
    partitions: set[tuple[str, str]] = field(default_factory=set)  # that were found there: a run asks a hundred times
    run: str = ""  # the file of the run that is recorded now
    empty: bytes | None = None  # the content of a run's file without events

    def engine(self, name: str) -> Engine:
        """Returns the engine of a file, with the connections that it keeps."""
        if name not in self.engines:
            self.engines[name] = create_engine(name, connect_args={"timeout": _WAIT_SECONDS})
            event.listen(self.engines[name], "connect", _relaxed)
        return self.engines[name]

    @contextlib.contextmanager
    def begun(self, name: str) -> Iterator[Connection]:
        """Begins a transaction in a file."""
        with self.engine(name).connect() as connection, connection.begin():
            yield connection

    def close(self, *names: str) -> None:
        """Closes these files where they are open."""
        for name in names:
            if (engine := self.engines.pop(name, None)) is not None:
                engine.dispose()


class _KeptRuns(SqliteRunStorage):
    """The record of runs, kept open."""

    files: _Files

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        with self.files.begun(self._conn_string) as connection:
            yield connection


class _KeptEvents(SqliteEventLogStorage):
    """The record of events: the index and the file of the run that is recorded are kept open."""

    files: _Files

    @contextlib.contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        name = self.conn_string_for_shard(shard)
        with self._db_lock:
            if shard != INDEX and name != self.files.run:
                self.files.close(self.files.run)
                self.files.run = name
            if shard not in self._initialized_dbs:
                self._prepare(shard, name)
            with self.files.begun(name) as connection:
                yield connection

    def has_table(self, table_name: str) -> bool:
        index, found = self.conn_string_for_shard(INDEX), self.files.tables
        if table_name not in found and inspect(self.files.engine(index)).has_table(table_name):
            found.add(table_name)
        return table_name in found

    def has_dynamic_partition(self, partitions_def_name: str, partition_key: str) -> bool:
        asked, found = (partitions_def_name, partition_key), self.files.partitions
        if asked not in found and super().has_dynamic_partition(*asked):
            found.add(asked)
        return asked in found

    def _prepare(self, shard: str, name: str) -> None:
        """Makes the tables of a file as Dagster does; those of a later run by a copy of the first one's."""
        file = Path(self.path_for_shard(shard))
        is_new = shard != INDEX and not file.exists()
        if is_new and self.files.empty is not None:
            file.write_bytes(self.files.empty)
        else:
            self._initdb(self.files.engine(name))
            if is_new:
                with contextlib.closing(sqlite3.connect(file)) as connection:
                    self.files.empty = connection.serialize()
        self._initialized_dbs.add(shard)


def _relaxed(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
