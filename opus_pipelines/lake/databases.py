"""Finds damage in the SQLite databases of the lake: Dagster's record of runs, and MLflow's record of trainings.

They change with every run, so no list can hold their hashes: SQLite's own check says whether they are sound.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.file_lists import Damage
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.replaced_files import REPAIR

NEEDED = (
    "history/runs.db",
    "history/runs/index.db",
    "schedules/schedules.db",
)  # in Dagster's home: no run without them
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database, by the ends of the names
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def databases(lake: Lake) -> Iterator[Path]:
    """Yields the databases of the lake that are there."""
    yield from (file for name in NEEDED if (file := lake.dagster_home / name).is_file())
    index = lake.dagster_home / "history" / "runs" / "index.db"
    yield from (file for file in sorted(index.parent.glob("*.db")) if file != index)
    yield from sorted((lake.root / "mlflow").glob("*.db"))


def damaged_databases(lake: Lake) -> Iterator[Damage]:
    """Yields the databases that SQLite's quick check finds damaged. It reads each database whole."""
    for file in databases(lake):
        try:
            with opened(file) as database:
                (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except LakeError:
            found = "it cannot be opened"
        if found != "ok":
            yield Damage(file, "is a damaged database")


def require_openable(lake: Lake) -> None:
    """Raises LakeError where a database that every run of Dagster needs cannot be opened."""
    for name in NEEDED:
        if (file := lake.dagster_home / name).is_file():
            with opened(file) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Opens a database for reading. Raises LakeError where it turns out to be damaged."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise
        raise LakeError(f"{file} is damaged ({error}); {REPAIR}") from None
