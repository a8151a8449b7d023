"""Carries out `opus forget`: finds the client's traces, publishes without them, removes them, and searches again.

Dagster's record, its partitions, runs and logs, is cleaned too; rows that Dagster's API leaves behind are deleted from
its databases.
"""

import difflib
import os
import shutil
import sqlite3
import warnings
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from opus_pipelines.cli import show
from opus_pipelines.cli.write import note
from opus_pipelines.core.errors import InputError, LakeError, OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.event_logs.forgotten_clients import Forgotten, private_key
from opus_pipelines.generation.results import erasure as results
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.lake.search import Finding, Word, search, unpacked
from opus_pipelines.wkg import erasure as wkg

_LEAST_LETTERS = 4  # a shorter name is searched for only where the lake writes it as a client's
_OF_OTHERS = ("history/implementations/", "decisions/", "generation/", "workflows/", "reports/", "wkg/w")
_SEARCHED = ("runs.db", "index.db", "schedules.db")
_KEPT_ROWS = "asset_keys"  # one row for each asset: its last event is removed, the asset stays


@dataclass
class ErasureWork:
    """What is to be removed for one client.

    The lake keeps it until all is done, so that a run after a kill can finish it.
    """

    traces: wkg.ClientTraces
    words: list[Word]
    results: int
    decisions: int = 0

    def planned(self) -> list[tuple[str, int]]:
        """Returns what will be removed, and how much of it, as rows for a table."""
        return [
            ("cases", len(self.traces.ids)),
            ("sources that hold them", len(self.traces.sources)),
            ("snapshots that hold them", len(self.traces.snapshots)),
            ("tasks of nobody else", len(self.traces.tasks)),
            ("results", self.results),
            ("decisions", self.decisions),
        ]


def look(lake: Lake, settings: Settings, client: str) -> ErasureWork:
    """Returns what the lake has of the client, with what an interrupted run had noted.

    Raises InputError where the lake has nothing of this client.
    """
    paths = settings.paths
    own = wkg.own_sources(paths.history, client) if paths.history.is_dir() else set[str]()
    traces = wkg.find(lake, client, own)
    theirs = [result for result in results.results_of(lake) if result.client == client]
    known = wkg.clients_of(lake) | results.clients_of(lake)
    before = read_json(_journal(lake, client))
    if client not in known and before is None and not Forgotten.of(lake).holds(client) and not own:
        near = difflib.get_close_matches(client, known, n=3, cutoff=0.3) or sorted(known)[:10]
        raise InputError(
            f"{lake.root} has no client {client!r}; "
            + (f"there is: {', '.join(near)}" if near else "it has none at all")
        )
    words = [*wkg.words_of(lake, traces), *results.words_of(lake, client)]
    if before is not None:
        for name in ("ids", "tasks", "names", "sources", "own"):
            getattr(traces, name).update(before[name])
        words += [word for word in (Word(**w) for w in before["words"]) if word not in words]
    return ErasureWork(traces, words, len(theirs), len(results.decisions_of_client(lake, client)))


def carry_out(lake: Lake, settings: Settings, work: ErasureWork) -> None:
    """Removes the client as planned in `work`.

    Raises LakeError where the rebuild without the client fails, or where the search finds the client afterwards.
    """
    client = work.traces.client
    with lake.lock():
        _clear_lock_note(lake)
        private_key(lake)
        write_json(
            _journal(lake, client),
            {
                "ids": sorted(work.traces.ids),
                "tasks": sorted(work.traces.tasks),
                "names": sorted(work.traces.names),
                "sources": sorted(work.traces.sources),
                "own": sorted(work.traces.own),
                "words": [asdict(word) for word in work.words],
            },
        )
        Forgotten.of(lake).with_client(client, work.traces.sources - work.traces.own).save(lake)
        removed = [
            ("decisions", len(results.decisions_of_client(lake, client))),
            ("results", results.take_out(lake, client)),
        ]
    if work.traces.snapshots:
        _publish_without(lake, settings, client)
    with lake.lock():
        _clear_lock_note(lake)
        resting = results.resting_on(lake, client, work.traces.ids, work.words)
        results.remove(lake, resting)
        others = results.remove_decisions(lake, client, work.words)
        removed += [("results of others that rested on its cases", len(resting)), *wkg.take_out(lake, work.traces)]
        removed += _take_out_of_record(lake, client, [*_names(client), *work.words])
        findings, shared = _prove(lake, client, work.words)
        if not findings:
            _journal(lake, client).unlink()
            if not any(_journal(lake, client).parent.iterdir()):
                _journal(lake, client).parent.rmdir()
    show.table(
        ("removed", "how much"), removed, f"{client} is forgotten" if not findings else f"{client} is not forgotten yet"
    )
    for name, contract in others:
        note(f"{name} / {contract}: decisions on workflows with tasks of {client} alone are removed")
    _report(lake, settings, work, resting, shared)
    if findings:
        lines = [f"still there: {f.word.kind} {f.word.text!r} in {f.file} {f.place}".rstrip() for f in findings[:20]]
        raise LakeError("\nopus: ".join(lines))


def _publish_without(lake: Lake, settings: Settings, client: str) -> None:
    """Rebuilds, so that a snapshot without the client becomes current.

    The drift check is off, because this drift is intended.
    """
    from opus_pipelines.cli import runs

    quiet = settings.model_copy(update={"checks": settings.checks.model_copy(update={"drift": "off"})})
    failure: OpusError | None = None
    try:
        runs.rebuild(quiet, False, False, publish=True)
    except OpusError as error:
        failure = error
    current = lake.current_snapshot()
    if current in wkg.find(lake, client).snapshots:
        raise LakeError(
            f"the rebuild without {client} did not publish ({failure}); "
            "mend that and run `opus forget` again: it goes on"
        )
    if failure:
        note(f"the rebuild said: {failure}")


def _prove(lake: Lake, client: str, words: list[Word]) -> tuple[list[Finding], list[Finding]]:
    """Returns where anything of the client is left, and where other clients' documents name it."""
    findings = list(search(lake, [*_names(client), *words], but=[_journal(lake, client)]))
    others = [
        f for f in findings if f.word.kind == "client" and f.place != "its name" and f.file.startswith(_OF_OTHERS)
    ]
    return [f for f in findings if f not in others], others


def _names(client: str) -> list[Word]:
    if len(client) >= _LEAST_LETTERS:
        return [Word("client", client)]
    return [Word("client", f"client_key={slug(client)}"), Word("client", f'"client": "{client}"')]


def _report(
    lake: Lake, settings: Settings, work: ErasureWork, resting: list[results.Result], shared: list[Finding]
) -> None:
    client = work.traces.client
    for result in sorted({(r.client, r.contract) for r in resting}):
        note(f"{result[0]} / {result[1]}: rested on cases of {client}; `opus generate` makes it again")
    for place in sorted({f"{f.file} {f.place}" for f in shared}):
        note(f"the name {client} stands in what other clients gave: {place}")
    folders = [settings.paths.history / source for source in sorted(work.traces.sources)]
    for folder in (f for f in (*folders, *results.intakes_of(settings.paths.intakes, client)) if f.is_dir()):
        note(f"yours, and not touched: {folder} still holds {client}")


def undo(lake: Lake, client: str) -> None:
    """Lets the client's files be read again from the next rebuild on.

    Raises InputError where the client was not forgotten.
    """
    with lake.lock():
        _clear_lock_note(lake)
        forgotten = Forgotten.of(lake)
        if not forgotten.holds(client):
            raise InputError(f"{client} is not forgotten in {lake.root}")
        forgotten.without_client(client).save(lake)
    note(f"{client} is read again from the next `opus rebuild` on")


def _journal(lake: Lake, client: str) -> Path:
    return lake.root / ".forgetting" / f"{Forgotten.of(lake).mark(client)}.json"


def _clear_lock_note(lake: Lake) -> None:
    """Empties the lock file, which quotes the command and so names the client."""
    os.truncate(lake.root / ".lock", 0)


# --- Dagster's record


def _take_out_of_record(lake: Lake, client: str, words: list[Word]) -> list[tuple[str, int]]:
    """Removes from Dagster's record what names the client or one of the words.

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
