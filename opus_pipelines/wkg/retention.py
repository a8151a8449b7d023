"""Pruning: snapshots past the retention settings, and the history and aggregates that no kept snapshot was made from.

What a pointer, a kept result or a rollback names always stays. What goes, goes in one step, after a grace time for readers:
counted from when it was superseded, for until then a reader may have resolved the pointer to it.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from opus_pipelines.history.versions import contents_in_use
from opus_pipelines.lake import Lake, read_json, read_table, slug
from opus_pipelines.schemas import IMPLEMENTATIONS, OPTIMIZED, REJECTS, RUNS, SOURCES
from opus_pipelines.settings import Retention
from opus_pipelines.wkg.changes import prune_changes

_SNAPSHOT = re.compile(r"w[0-9a-f]{16}")
Manifests = Mapping[str, dict[str, Any]]


def prune(lake: Lake, retention: Retention, now: datetime) -> list[str]:
    """Remove what is past retention; returns the snapshots removed."""
    manifests = manifests_of(lake)
    pointer = read_json(lake.root / "wkg" / "current.json") or {}
    gone = expired(manifests, retention, now, named_snapshots(lake), pointer.get("published_at"))
    for snapshot in gone:
        lake.remove(lake.snapshot_folder(snapshot))
    prune_changes(lake, gone)
    kept = [manifest for snapshot, manifest in manifests.items() if snapshot not in gone]
    _prune_parts(lake, kept, now - timedelta(minutes=retention.grace_minutes))
    return gone


def expired(manifests: Manifests, retention: Retention, now: datetime, named: set[str], published_at: str | None = None) -> list[str]:
    """Snapshots beyond the newest `snapshots` that are older than `days`, were superseded longer ago than the readers' grace, and that
    nothing names. `published_at`: when the current pointer was written, which superseded what has no newer snapshot."""
    published = {snapshot: datetime.fromisoformat(manifest["published_at"]) for snapshot, manifest in manifests.items()}
    newest_first = sorted(published, key=lambda s: (published[s], s), reverse=True)
    superseded = {old: published[new] for new, old in pairwise(newest_first)}
    last = datetime.fromisoformat(published_at) if published_at else now
    days, grace = timedelta(days=retention.days), timedelta(minutes=retention.grace_minutes)
    old = [s for s in newest_first[retention.snapshots :] if now - published[s] > days and now - superseded.get(s, last) >= grace]
    return sorted(s for s in old if s not in named)


def named_snapshots(lake: Lake) -> set[str]:
    """Snapshots that a pointer, a rollback or a kept result names."""
    named = {lake.current_snapshot(), *lake.rolled_back_from(), *(p.get("snapshot") for p in lake.results())}
    for folder in (lake.root / RUNS.name).glob("*/*/*"):
        named |= _snapshots_of(RUNS.name, folder) or _snapshots_of(OPTIMIZED.name, lake.root / OPTIMIZED.name / Path(*folder.parts[-3:]))
    return {snapshot for snapshot in named if snapshot}


def manifests_of(lake: Lake) -> dict[str, dict[str, Any]]:
    """The manifest of every published snapshot."""
    files = sorted((lake.root / "wkg").glob("*/manifest.json"))
    return {file.parent.name: manifest for file in files if (manifest := read_json(file))}


def _snapshots_of(name: str, folder: Path) -> set[str]:
    """The snapshots that the rows of one result's table say they were made from."""
    dataset = {RUNS.name: RUNS, OPTIMIZED.name: OPTIMIZED}[name]
    return {snapshot for snapshot in read_table(dataset, folder, columns=["snapshot"])["snapshot"].to_pylist() if snapshot}


def _prune_parts(lake: Lake, manifests: Iterable[dict[str, Any]], before: datetime) -> None:
    sources = [source for manifest in manifests for source in manifest["inputs"]["sources"]]
    named = {str(value) for source in sources for value in source.values()}
    in_use = {f"content={content}" for content in contents_in_use(lake)}
    of_history = {Path(source["folder"]).parts[-2:] for source in sources}
    for dataset in (REJECTS, IMPLEMENTATIONS):
        tree = lake.root / dataset.name
        kept = of_history | _latest(tree, _sources_there(lake)) | {f.parts[-2:] for f in tree.glob("*/content=*") if f.name in in_use}
        _remove(lake, (f for f in tree.glob("*/content=*") if f.parts[-2:] not in kept), before)
    _remove(lake, (f for f in lake.root.glob("aggregates/*/*=*") if f.relative_to(lake.root).as_posix() not in named), before)
    snapshots = (f for f in (lake.root / "wkg").glob("w*") if _SNAPSHOT.fullmatch(f.name))
    _remove(lake, (f for f in snapshots if not (f / "manifest.json").is_file()), before)


def _sources_there(lake: Lake) -> set[str]:
    """The partition names of the sources that lie in the history folder."""
    rows = read_table(SOURCES, lake.folder(SOURCES), columns=["source", "status"])
    pairs = zip(rows["source"].to_pylist(), rows["status"].to_pylist(), strict=True)
    return {f"source_key={slug(source)}" for source, status in pairs if status != "gone"}


def _latest(tree: Path, sources: set[str]) -> set[tuple[str, ...]]:
    """The content of each of these sources that was read last: where every record was rejected, no snapshot names it."""
    found = {source: [f for f in (tree / source).glob("content=*") if f.is_dir()] for source in sources}
    return {max(folders, key=lambda f: (f.stat().st_mtime_ns, f.name)).parts[-2:] for folders in found.values() if folders}


def _remove(lake: Lake, folders: Iterable[Path], before: datetime) -> None:
    for folder in sorted(folders):
        if folder.stat().st_mtime < before.timestamp():
            lake.remove(folder)
