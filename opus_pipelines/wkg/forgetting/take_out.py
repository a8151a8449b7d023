"""A client taken out of the WKG and its history, once a snapshot without it is published.

Whatever a kill leaves undone, the next call does.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.embedding.cache import tokens_of
from opus_pipelines.ids import digest
from opus_pipelines.lake import PART, Lake, read_table, slug, write_atomically, write_json
from opus_pipelines.schemas import EMBEDDINGS, IMPLEMENTATIONS, REJECTS, SOURCES, TASKS
from opus_pipelines.wkg.changes import prune_changes
from opus_pipelines.wkg.forgetting.forget import Traces, find
from opus_pipelines.wkg.resolution.nodes import normalise
from opus_pipelines.wkg.retention import Manifests, manifests_of
from opus_pipelines.wkg.tables import place
from opus_pipelines.wkg.vectors import case_passages


def take_out(lake: Lake, traces: Traces) -> list[tuple[str, int]]:
    """Remove what there is of the client, once the current snapshot is without it; what was removed, and how much of it."""
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
    """What tells how a snapshot differs from one with the client, in its manifest and as a picture, tells what the client had."""
    for snapshot, manifest in manifests_of(lake).items():
        if (manifest.get("drift") or {}).get("from") in gone:
            for picture in sorted(lake.snapshot_folder(snapshot).glob("changes.*")):
                picture.unlink()
            write_json(lake.snapshot_folder(snapshot) / "manifest.json", manifest | {"drift": None})


def _remove_parts(lake: Lake, traces: Traces, manifests: Manifests) -> int:
    """The history that holds the client's cases, all rejects but those of what was read since, and aggregates that no snapshot rests on."""
    named = {str(value) for manifest in manifests.values() for source in manifest["inputs"]["sources"] for value in source.values()}
    held = set(find(lake, traces.client).folders)
    gone = 0
    for source in sorted(traces.sources):
        key = f"source_key={slug(source)}"
        history = lake.root / IMPLEMENTATIONS.name / key
        gone += _remove(lake, (f for f in history.glob("*") if f in held or source in traces.own))
        gone += _remove(lake, (f for f in (lake.root / REJECTS.name / key).glob("*") if not (history / f.name).exists()))
        gone += _remove(lake, (f for f in (lake.root / "aggregates" / key).glob("*") if f.relative_to(lake.root).as_posix() not in named))
    return gone


def _remove(lake: Lake, folders: Iterable[Path]) -> int:
    there = sorted(folders)
    for folder in there:
        lake.remove(folder)
    return len(there)


def _forget_files(lake: Lake, traces: Traces) -> int:
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
    return {task for folder in folders for task in read_table(TASKS, folder, columns=["task_id"])["task_id"].to_pylist()}


def _forget_tasks(lake: Lake, traces: Traces, tasks: set[str]) -> int:
    """Take out of the id ledger what only this client's cases were called, and their tasks. What is in use is somebody else's too."""
    file = lake.kept / "ids.parquet"
    if not file.exists():
        return 0
    table = pq.ParquetFile(file).read()
    names = {normalise(name) for name in traces.names}
    rows = table.select([name for name in ("identity", "task_id", "in_use") if name in table.schema.names]).to_pylist()
    gone = [row["task_id"] in tasks or (not row.get("in_use") and _is_named(row["identity"], traces, names)) for row in rows]
    if any(gone):
        _replace(file, table.filter(pa.array([not is_gone for is_gone in gone], pa.bool_())))
    return sum(gone)


def _is_named(identity: str, traces: Traces, names: set[str]) -> bool:
    source, _, key = identity.partition("//")
    return identity in names or source in traces.own or (source in traces.sources and key in traces.names)


def _forget_vectors(lake: Lake, manifests: Manifests) -> int:
    """Of the embedding cache, keep what the snapshots left are made of; what intakes had is encoded again when it is asked for."""
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
