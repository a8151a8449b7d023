"""Retention, rollback and the disk estimate of a rebuild.

Retention removes snapshots past its settings, and the history and aggregates that no kept snapshot was made from. What
a pointer, a kept result or a rollback names is never removed. Each removal is one step, and happens after a grace time
that is counted from when the snapshot was superseded: until then a reader may have followed the pointer to it.

A rollback makes an earlier snapshot current by replacing one pointer; nothing is made or removed. The pointer then
names the snapshots that were rolled back from, and these are kept. A rebuild that would make one of them again (the
same history, settings and code) leaves it alone, reports this, and exits with 0, because it must not silently undo the
decision of a person. Any other snapshot is published as usual, and `opus rebuild --publish` publishes in any case.

The disk estimate follows from the files of history and from what the lake already has of them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import IMPLEMENTATIONS, OPTIMIZED, REJECTS, RUNS, SOURCES
from opus_pipelines.core.settings import Retention, Settings
from opus_pipelines.event_logs.forgotten_clients import private_key
from opus_pipelines.ingestion.plan import FilePlan, SourcePlan, plan_history
from opus_pipelines.ingestion.source_versions import contents_in_use
from opus_pipelines.lake import disk_space
from opus_pipelines.lake.layout import PART, Lake, read_json, read_table, slug
from opus_pipelines.wkg.changes import prune_changes
from opus_pipelines.wkg.manifest import point

_SNAPSHOT = re.compile(r"w[0-9a-f]{16}")
Manifests = Mapping[str, dict[str, Any]]


def prune(lake: Lake, retention: Retention, now: datetime) -> list[str]:
    """Removes what is past retention; returns the snapshots removed."""
    manifests = manifests_of(lake)
    pointer = read_json(lake.root / "wkg" / "current.json") or {}
    gone = expired(manifests, retention, now, named_snapshots(lake), pointer.get("published_at"))
    for snapshot in gone:
        lake.remove(lake.snapshot_folder(snapshot))
    prune_changes(lake, gone)
    kept = [manifest for snapshot, manifest in manifests.items() if snapshot not in gone]
    _prune_parts(lake, kept, now - timedelta(minutes=retention.grace_minutes))
    return gone


def expired(
    manifests: Manifests, retention: Retention, now: datetime, named: set[str], published_at: str | None = None
) -> list[str]:
    """Returns the snapshots that retention removes.

    They are beyond the newest `snapshots`, older than `days`, superseded longer ago than the grace time, and nothing
    names them. `published_at` is the time when the current pointer was written: it superseded the snapshots that have
    no newer one.
    """
    published = {snapshot: datetime.fromisoformat(manifest["published_at"]) for snapshot, manifest in manifests.items()}
    newest_first = sorted(published, key=lambda s: (published[s], s), reverse=True)
    superseded = {old: published[new] for new, old in pairwise(newest_first)}
    last = datetime.fromisoformat(published_at) if published_at else now
    days, grace = timedelta(days=retention.days), timedelta(minutes=retention.grace_minutes)
    old = [
        s
        for s in newest_first[retention.snapshots :]
        if now - published[s] > days and now - superseded.get(s, last) >= grace
    ]
    return sorted(s for s in old if s not in named)


def named_snapshots(lake: Lake) -> set[str]:
    """Returns the snapshots that a pointer, a rollback or a kept result names."""
    named = {lake.current_snapshot(), *lake.rolled_back_from(), *(p.get("snapshot") for p in lake.results())}
    for folder in (lake.root / RUNS.name).glob("*/*/*"):
        named |= _snapshots_of(RUNS.name, folder) or _snapshots_of(
            OPTIMIZED.name, lake.root / OPTIMIZED.name / Path(*folder.parts[-3:])
        )
    return {snapshot for snapshot in named if snapshot}


def manifests_of(lake: Lake) -> dict[str, dict[str, Any]]:
    """Returns the manifest of every published snapshot."""
    files = sorted((lake.root / "wkg").glob("*/manifest.json"))
    return {file.parent.name: manifest for file in files if (manifest := read_json(file))}


def _snapshots_of(name: str, folder: Path) -> set[str]:
    """Returns the snapshots that the rows of one table of a result were made from."""
    dataset = {RUNS.name: RUNS, OPTIMIZED.name: OPTIMIZED}[name]
    return {
        snapshot for snapshot in read_table(dataset, folder, columns=["snapshot"])["snapshot"].to_pylist() if snapshot
    }


def _prune_parts(lake: Lake, manifests: Iterable[dict[str, Any]], before: datetime) -> None:
    sources = [source for manifest in manifests for source in manifest["inputs"]["sources"]]
    named = {str(value) for source in sources for value in source.values()}
    in_use = {f"content={content}" for content in contents_in_use(lake)}
    of_history = {Path(source["folder"]).parts[-2:] for source in sources}
    for dataset in (REJECTS, IMPLEMENTATIONS):
        tree = lake.root / dataset.name
        kept = (
            of_history
            | _latest(tree, _sources_there(lake))
            | {f.parts[-2:] for f in tree.glob("*/content=*") if f.name in in_use}
        )
        _remove(lake, (f for f in tree.glob("*/content=*") if f.parts[-2:] not in kept), before)
    _remove(
        lake,
        (f for f in lake.root.glob("aggregates/*/*=*") if f.relative_to(lake.root).as_posix() not in named),
        before,
    )
    snapshots = (f for f in (lake.root / "wkg").glob("w*") if _SNAPSHOT.fullmatch(f.name))
    _remove(lake, (f for f in snapshots if not (f / "manifest.json").is_file()), before)


def _sources_there(lake: Lake) -> set[str]:
    """Returns the partition names of the sources in the history folder."""
    rows = read_table(SOURCES, lake.folder(SOURCES), columns=["source", "status"])
    pairs = zip(rows["source"].to_pylist(), rows["status"].to_pylist(), strict=True)
    return {f"source_key={slug(source)}" for source, status in pairs if status != "gone"}


def _latest(tree: Path, sources: set[str]) -> set[tuple[str, ...]]:
    """Returns for each of these sources the content that was read last.

    No snapshot names it when all its records were rejected.
    """
    found = {source: [f for f in (tree / source).glob("content=*") if f.is_dir()] for source in sources}
    return {
        max(folders, key=lambda f: (f.stat().st_mtime_ns, f.name)).parts[-2:] for folders in found.values() if folders
    }


def _remove(lake: Lake, folders: Iterable[Path], before: datetime) -> None:
    for folder in sorted(folders):
        if folder.stat().st_mtime < before.timestamp():
            lake.remove(folder)


@dataclass(frozen=True)
class RollbackChoice:
    """A snapshot that can be made current.

    It has the time of its publication, the rows of its datasets, and the contracts whose results were made from it.
    """

    snapshot: str
    published_at: str
    counts: dict[str, int]
    is_current: bool
    contracts: tuple[str, ...]


def choices(lake: Lake) -> list[RollbackChoice]:
    """Returns every snapshot of the lake, the newest first."""
    current, results = lake.current_snapshot(), lake.results()
    found = [
        RollbackChoice(
            snapshot,
            manifest["published_at"],
            manifest.get("counts", {}),
            snapshot == current,
            _contracts(results, snapshot),
        )
        for snapshot, manifest in manifests_of(lake).items()
    ]
    return sorted(found, key=lambda choice: (choice.published_at, choice.snapshot), reverse=True)


def chosen(lake: Lake, prefix: str) -> RollbackChoice:
    """Returns the snapshot whose id begins with `prefix`; raises LakeError when none or several do."""
    known = choices(lake)
    fitting = [choice for choice in known if choice.snapshot.startswith(prefix)] if prefix else []
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(choice.snapshot for choice in fitting or known) or "none; `opus rebuild` makes one"
    problem = f"{len(fitting)} snapshots of {lake.root} begin" if fitting else f"no snapshot of {lake.root} begins"
    raise LakeError(f"{problem} with {prefix!r}; there is: {there}")


def roll_back(lake: Lake, prefix: str, now: datetime) -> tuple[str | None, RollbackChoice]:
    """Makes the snapshot that `prefix` names the current one; returns the previous one and the chosen one.

    The caller must hold the lock of the lake.
    """
    choice = chosen(lake, prefix)
    before = lake.current_snapshot()
    if not choice.is_current:
        left = {*lake.rolled_back_from(), *([before] if before else [])} - {choice.snapshot}
        point(lake, choice.snapshot, now, rolled_back_from=sorted(left))
    return before, choice


def stale(lake: Lake) -> list[str]:
    """Returns the contracts whose current result was made from another snapshot than the current one."""
    current = lake.current_snapshot()
    return [_name(result) for result in lake.results() if result["snapshot"] != current]


def _contracts(results: list[dict[str, Any]], snapshot: str) -> tuple[str, ...]:
    return tuple(_name(result) for result in results if result["snapshot"] == snapshot)


def _name(result: dict[str, Any]) -> str:
    return f"{result['client']} / {result['contract']}"


# Bytes in the lake - implementations, aggregates, and a source's share of the snapshot and the embedding cache - for
# each byte of a
# history file. Measured: bpic2012, bpic2013, BPIC_2017_W and helpdesk (gzipped XES and CSV) 2.1 to 3.3, the sample's
# CSV, JSONL and XES
# 0.2 to 1.1. The rest is a margin, for an estimate that is too high costs a message and one that is too low a night.
OF_COMPRESSED, OF_TEXT = 4.0, 2.0
_COMPRESSED = (".gz", ".parquet")


def plan_within_disk_space(work: Lake, home: Lake, settings: Settings) -> list[SourcePlan]:
    """Returns the plans of the history folder; raises LakeError when the disk is too small for the rebuild.

    `work` is the lake in which the parts are made: `home` itself or an empty one.
    """
    private_key(work)  # a plan's hashes are of it
    plans = plan_history(settings.paths.history, settings.currency.usd_per_unit, work)
    disk_space.require(home.root, needed_for_rebuild(work, home, plans), settings.disk.reserve_mb, "this rebuild")
    return plans


def needed_for_rebuild(work: Lake, home: Lake, plans: Iterable[SourcePlan]) -> int:
    """Returns the bytes that a rebuild needs.

    These are the size of the changed sources in the lake, plus a snapshot as large as the last one.
    """
    changed = (plan for plan in plans if not _is_there(work, plan))
    snapshot = home.current_snapshot()
    return int(sum(_in_lake(f) for plan in changed for f in plan.files)) + (
        disk_space.size_of(home.snapshot_folder(snapshot)) if snapshot else 0
    )


def _is_there(lake: Lake, plan: SourcePlan) -> bool:
    return (lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).is_file()


def _in_lake(file: FilePlan) -> float:
    return file.bytes * (OF_COMPRESSED if file.file.suffix.lower() in _COMPRESSED else OF_TEXT)
