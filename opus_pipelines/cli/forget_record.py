"""Removes a client from Dagster's record: partitions, runs and logs.

Rows that Dagster's API leaves behind are deleted from its databases.
"""

import shutil
import sqlite3
import warnings
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.search import Finding, Word, search, unpacked
from opus_pipelines.lifecycle.erasure import Removed

_SEARCHED = ("runs.db", "index.db", "schedules.db")
_KEPT_ROWS = "asset_keys"  # one row for each asset: its last event is removed, the asset stays


def clean_record(lake: Lake, client: str, words: list[Word]) -> Removed:
    """Removes from Dagster's record the partitions of the client, and what names one of the words.

    Returns what was removed, and how much of it. The caller holds the lake's lock.
    """
    if not (lake.dagster_home / "dagster.yaml").is_file():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's notices are not for the person at the terminal
        import dagster as dg

        from assets.partitions import CONTRACT

        with dg.DagsterInstance.from_config(str(lake.dagster_home)) as instance:
            partitions = [
                key for key in instance.get_dynamic_partitions(CONTRACT) if key.startswith(f"{slug(client)}__")
            ]
            for key in partitions:
                instance.delete_dynamic_partition(CONTRACT, key)
            runs = _runs(lake, instance, words)
            for run in runs:
                instance.delete_run(run)
    for run in runs:
        _remove_files(lake.dagster_home, run)
    rows = sum(
        _clean_database(file, words) for file in sorted(lake.dagster_home.rglob("*.db")) if file.name in _SEARCHED
    )
    logs = _logs(lake, words)
    return [
        ("partitions", len(partitions)),
        ("runs in Dagster's record", len(runs)),
        ("other rows of it", rows),
        ("logs", logs),
    ]


def _runs(lake: Lake, instance: "dg.DagsterInstance", words: list[Word]) -> list[str]:  # type: ignore[name-defined] # noqa: F821
    """Returns the runs whose record, events or output name one of the words."""
    named = {part for finding in _findings(lake, words) for part in Path(finding.file).with_suffix("").parts}
    return [
        run.run_id
        for run in instance.get_runs()
        if run.run_id in named or _mentions(str(run.tags) + str(run.run_config), words)
    ]


def _findings(lake: Lake, words: list[Word]) -> Iterable[Finding]:
    return search(lake, words, below=lake.dagster_home)


def _mentions(text: str, words: list[Word]) -> bool:
    content = unpacked(text)
    return any(form in content for word in words for form in word.forms)


def _remove_files(home: Path, run: str) -> None:
    for file in (home / "history" / "runs").glob(f"{run}.db*"):
        file.unlink()
    shutil.rmtree(home / "storage" / run, ignore_errors=True)


def _clean_database(file: Path, words: list[Word]) -> int:
    """Removes the rows that name one of the words, and overwrites the space where they stood. Returns their number."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = ON")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        changed = sum(_clean_table(database, table, words) for table in tables)
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return changed


def _clean_table(database: sqlite3.Connection, table: str, words: list[Word]) -> int:
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    rows = database.execute(f'SELECT rowid, * FROM "{table}"').fetchall()
    hits = {
        row[0]: [c for c, v in zip(columns, row[1:], strict=True) if isinstance(v, str) and _mentions(v, words)]
        for row in rows
    }
    named_rows = {row: named_columns for row, named_columns in hits.items() if named_columns}
    for row, named_columns in named_rows.items():
        if table == _KEPT_ROWS:
            database.execute(
                f'UPDATE "{table}" SET '
                + ", ".join(f'"{column}" = NULL' for column in named_columns)
                + " WHERE rowid = ?",
                (row,),
            )
        else:
            database.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
    return len(named_rows)


def _logs(lake: Lake, words: list[Word]) -> int:
    """Removes the log files that name one of the words. Returns their number."""
    files = {
        lake.root / finding.file
        for finding in _findings(lake, words)
        if finding.file.endswith((".log", ".err", ".out"))
    }
    for file in files:
        file.unlink()
    return len(files)
