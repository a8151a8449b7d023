"""Erases a client from the WKG and its history, once a snapshot without the client is published.

It first lists what the lake has of the client, and words with which its erasure can be verified. When it is killed, the
next call does the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import ALIASES, CASES, EMBEDDINGS, IMPLEMENTATIONS, REJECTS, SOURCES, TASKS
from opus_pipelines.embedding.cache import tokens_of
from opus_pipelines.event_logs.files import printable
from opus_pipelines.event_logs.source_settings import load_source
from opus_pipelines.lake.layout import PART, Lake, read_table, slug, unslug, write_atomically, write_json
from opus_pipelines.lake.search import Word, appears_in, texts_of
from opus_pipelines.task_matching.name_nodes import normalise
from opus_pipelines.wkg.changes import prune_changes
from opus_pipelines.wkg.retention import Manifests, manifests_of
from opus_pipelines.wkg.tables import place
from opus_pipelines.wkg.vectors import case_passages

SAMPLE = 40  # words of each kind that are looked for afterwards
_SHORTEST, _LONGEST = 6, 200
_WORDS = {
    "case_id": "case id",
    "implementation_id": "implementation id",
    "title": "title",
    "description": "description",
}


@dataclass
class ClientTraces:
    """What the lake has of a client.

    These are its cases by id, the folders and snapshots that hold them, the tasks that nobody else carried out, and the
    names of tasks that nobody else uses.
    """

    client: str
    ids: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    folders: list[Path] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    tasks: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def clients_of(lake: Lake) -> set[str]:
    """Every client that history or a snapshot in the lake names."""
    places = [*_history(lake), *(place(lake.snapshot_folder(s), CASES) for s in manifests_of(lake))]
    dataset = {True: IMPLEMENTATIONS, False: CASES}
    tables = (read_table(dataset["implementations" in p.as_posix()], p, columns=["client"]) for p in places)
    return {client for table in tables for client in pc.unique(table["client"]).to_pylist() if client}


def own_sources(history: Path, client: str) -> set[str]:
    """The sources that say in their settings that they are this client's alone."""
    folders = [folder for folder in sorted(history.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    return {printable(Path(folder.name)) for folder in folders if _client_of(folder) == client}


def _client_of(folder: Path) -> str | None:
    try:
        return load_source(folder).constant("client")
    except SettingsError:
        return None  # a source whose settings cannot be followed is read by nobody


def find(lake: Lake, client: str, own: Iterable[str] = ()) -> ClientTraces:
    """What there is of the client; `own`: sources that are its alone, whose rejected records are its too."""
    traces = ClientTraces(client, sources=set(own), own=set(own))
    for folder in _history(lake):
        table = read_table(IMPLEMENTATIONS, folder, columns=["implementation_id", "client"])
        if ids := table.filter(pc.fill_null(pc.equal(table["client"], client), False))["implementation_id"].to_pylist():
            traces.ids.update(ids)
            traces.folders.append(folder)
            traces.sources.add(_source_of(folder))
    traces.names = _task_names(lake, client)
    theirs, others = set[str](), set[str]()
    for snapshot in manifests_of(lake):
        cases = read_table(
            CASES, place(lake.snapshot_folder(snapshot), CASES), columns=["implementation_id", "client", "tasks"]
        )
        is_theirs = pc.fill_null(pc.equal(cases["client"], client), False)
        if pc.any(is_theirs).as_py():
            traces.snapshots.append(snapshot)
            traces.ids.update(cases.filter(is_theirs)["implementation_id"].to_pylist())
        theirs |= _tasks(cases.filter(is_theirs))
        others |= _tasks(cases.filter(pc.invert(is_theirs)))
    traces.tasks = theirs - others
    return traces


def words_of(lake: Lake, traces: ClientTraces) -> list[Word]:
    """Returns words that only the cases of this client have, at most SAMPLE of each kind.

    The kinds are ids, titles, descriptions, attributes and names of tasks.
    """
    theirs, others = _rows(lake, traces, True), _rows(lake, traces, False)
    found: dict[str, set[str]] = {}
    for name, values in (pair for table in theirs for pair in texts_of(table)):
        kind = _WORDS.get(name) or (
            "task" if name.startswith("tasks.") else "attribute" if name == "attributes" else None
        )
        if kind:
            found.setdefault(kind, set()).update(v for v in values.to_pylist() if _tells(v))
    texts = [values for table in others for _, values in texts_of(table)]
    for (
        snapshot
    ) in traces.snapshots:  # words of shared tasks stand in tables without a client, and others' may be only there
        aliases = read_table(
            ALIASES, place(lake.snapshot_folder(snapshot), ALIASES), columns=["source", "task_key", "title"]
        )
        kept = aliases.filter(pc.invert(pc.is_in(aliases["source"], pa.array(sorted(traces.sources), pa.string()))))
        texts += [values for _, values in texts_of(kept)]
    chosen: list[Word] = []
    for kind, values in sorted(found.items()):
        words = (Word(kind, text) for text in sorted(values, key=digest))
        chosen += _first(SAMPLE, (word for word in words if not appears_in(word, texts)))
    return chosen


def _history(lake: Lake) -> list[Path]:
    return sorted((lake.root / IMPLEMENTATIONS.name).glob("*/*"))


def _source_of(folder: Path) -> str:
    return unslug(folder.parent.name.removeprefix("source_key="))


def _tasks(cases: pa.Table) -> set[str]:
    return set(pc.unique(pc.list_flatten(cases["tasks"])).to_pylist())


def _task_names(lake: Lake, client: str) -> set[str]:
    """The keys and titles of tasks that only this client's cases have."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    columns = ["client", "tasks.list.element.task_key", "tasks.list.element.title"]
    for file in (f for folder in _history(lake) for f in sorted(folder.glob("*.parquet"))):
        table = pq.ParquetFile(file).read(columns=columns)
        own = pc.fill_null(pc.equal(table["client"], client), False)
        for theirs, rows in ((True, table.filter(own)), (False, table.filter(pc.invert(own)))):
            found[theirs].update(name for _, values in texts_of(rows.select(["tasks"])) for name in values.to_pylist())
    return found[True] - found[False]


def _rows(lake: Lake, traces: ClientTraces, theirs: bool) -> Iterator[pa.Table]:
    """The implementations of the client, or of all others, a folder at a time."""
    for folder in _history(lake):
        table = read_table(IMPLEMENTATIONS, folder)
        own = pc.fill_null(pc.equal(table["client"], traces.client), False)
        rows = table.filter(own if theirs else pc.invert(own))
        if rows.num_rows:
            yield (
                rows.drop_columns(["client", "contract", "industry", "source", "path", "content_hash"])
                if theirs
                else rows
            )


def _tells(text: str) -> bool:
    """Is the text long enough, and no plain small number, so that finding it says something?"""
    return _SHORTEST <= len(text) <= _LONGEST and (
        any(c.isalpha() for c in text) or sum(c.isdigit() for c in text) >= 9
    )


def _first(count: int, words: Iterable[Word]) -> list[Word]:
    return [word for _, word in zip(range(count), words, strict=False)]


def take_out(lake: Lake, traces: ClientTraces) -> list[tuple[str, int]]:
    """Removes what the lake has of the client, once the current snapshot is without it.

    Returns what was removed, and how much of it.
    """
    for snapshot in traces.snapshots:
        lake.remove(lake.snapshot_folder(snapshot))
    _forget_drift(lake, set(traces.snapshots))
    prune_changes(lake, traces.snapshots, forget=True)
    manifests = manifests_of(lake)
    return [
        ("snapshots", len(traces.snapshots)),
        ("folders of history and aggregates", _remove_parts(lake, traces, manifests)),
        ("rows of history/sources", _forget_files(lake, traces)),
        ("identities of tasks", _forget_tasks(lake, traces, traces.tasks - _known_tasks(lake, manifests))),
        ("cached vectors", _forget_vectors(lake, manifests)),
    ]


def _forget_drift(lake: Lake, gone: set[str]) -> None:
    """Removes the drift from a snapshot with the client to one without, in the manifest and as a picture.

    The difference of the two would show what the client had.
    """
    for snapshot, manifest in manifests_of(lake).items():
        if (manifest.get("drift") or {}).get("from") in gone:
            for picture in sorted(lake.snapshot_folder(snapshot).glob("changes.*")):
                picture.unlink()
            write_json(lake.snapshot_folder(snapshot) / "manifest.json", manifest | {"drift": None})


def _remove_parts(lake: Lake, traces: ClientTraces, manifests: Manifests) -> int:
    """Removes the history with cases of the client, older rejects, and aggregates that no snapshot uses."""
    named = {
        str(value)
        for manifest in manifests.values()
        for source in manifest["inputs"]["sources"]
        for value in source.values()
    }
    held = set(find(lake, traces.client).folders)
    gone = 0
    for source in sorted(traces.sources):
        key = f"source_key={slug(source)}"
        history = lake.root / IMPLEMENTATIONS.name / key
        gone += _remove(lake, (f for f in history.glob("*") if f in held or source in traces.own))
        gone += _remove(
            lake, (f for f in (lake.root / REJECTS.name / key).glob("*") if not (history / f.name).exists())
        )
        gone += _remove(
            lake,
            (f for f in (lake.root / "aggregates" / key).glob("*") if f.relative_to(lake.root).as_posix() not in named),
        )
    return gone


def _remove(lake: Lake, folders: Iterable[Path]) -> int:
    there = sorted(folders)
    for folder in there:
        lake.remove(folder)
    return len(there)


def _forget_files(lake: Lake, traces: ClientTraces) -> int:
    """The rows of files that are read no more."""
    table = read_table(SOURCES, lake.folder(SOURCES))
    theirs = pc.is_in(table["source"], pa.array(sorted(traces.sources), pa.string()))
    gone = pc.and_(theirs, pc.fill_null(pc.equal(table["status"], "gone"), False))
    if count := pc.sum(gone).as_py():
        kept = table.filter(pc.invert(gone))
        _replace(lake.folder(SOURCES) / PART, kept)
    return count or 0


def _known_tasks(lake: Lake, manifests: Iterable[str]) -> set[str]:
    folders = (place(lake.snapshot_folder(snapshot), TASKS) for snapshot in manifests)
    return {
        task for folder in folders for task in read_table(TASKS, folder, columns=["task_id"])["task_id"].to_pylist()
    }


def _forget_tasks(lake: Lake, traces: ClientTraces, tasks: set[str]) -> int:
    """Removes from the id ledger the names that only this client used, and their tasks.

    Entries in use belong to others too and stay.
    """
    file = lake.kept / "ids.parquet"
    if not file.exists():
        return 0
    table = pq.ParquetFile(file).read()
    names = {normalise(name) for name in traces.names}
    rows = table.select([name for name in ("identity", "task_id", "in_use") if name in table.schema.names]).to_pylist()
    gone = [
        row["task_id"] in tasks or (not row.get("in_use") and _is_named(row["identity"], traces, names)) for row in rows
    ]
    if any(gone):
        _replace(file, table.filter(pa.array([not is_gone for is_gone in gone], pa.bool_())))
    return sum(gone)


def _is_named(identity: str, traces: ClientTraces, names: set[str]) -> bool:
    source, _, key = identity.partition("//")
    return identity in names or source in traces.own or (source in traces.sources and key in traces.names)


def _forget_vectors(lake: Lake, manifests: Manifests) -> int:
    """Keeps of the embedding cache only the texts of the remaining snapshots.

    The texts of intakes are encoded again when they are needed.
    """
    removed = 0
    for model in sorted(f for f in (lake.kept / "embeddings").glob("*") if f.is_dir()):
        used = _texts_in_use(lake, manifests, tokens_of(model))
        files = sorted(model.glob("*.parquet"))
        table = pa.concat_tables([pq.ParquetFile(file).read() for file in files]) if files else None
        if table is None:
            continue
        kept = table.filter(pc.is_in(table["content_hash"], pa.array(sorted(used), pa.string())))
        removed += table.num_rows - kept.num_rows
        if kept.num_rows < table.num_rows:
            _replace(model / f"{digest(sorted(used))}.parquet", kept)
            for file in files:
                if file.stem != digest(sorted(used)):
                    file.unlink(missing_ok=True)
    return removed


def _texts_in_use(lake: Lake, manifests: Manifests, max_tokens: int) -> set[str]:
    used: set[str] = set()
    for snapshot, manifest in manifests.items():
        folder = place(lake.snapshot_folder(snapshot), EMBEDDINGS)
        used.update(read_table(EMBEDDINGS, folder, columns=["content_hash"])["content_hash"].to_pylist())
        sources = [lake.root / source["folder"] for source in manifest["inputs"]["sources"]]
        used.update(digest(text) for text in case_passages(sources, max_tokens))
    return used


def _replace(file: Path, table: pa.Table) -> None:
    write_atomically(file, lambda path: pq.write_table(table, path, compression="zstd"))
