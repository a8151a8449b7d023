"""Retention removes snapshots and results past their settings, and the parts that no kept snapshot was made from.

What a pointer, a kept result or a rollback names is never removed. Each removal is one step, and happens after a grace
time that is counted from when the snapshot or the result was superseded: until then a reader may have followed the
pointer to it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from opus_pipelines.core.schemas import IMPLEMENTATIONS, OPTIMIZED, REJECTS, RUNS, SOURCES, WKG_CHANGES, Dataset
from opus_pipelines.core.settings import Retention
from opus_pipelines.history.ingestion.source_versions import contents_in_use
from opus_pipelines.lake.file_lists import COPIES
from opus_pipelines.lake.layout import Lake, read_json, read_table, slug
from opus_pipelines.lake.results import ResultKey, results_of
from opus_pipelines.wkg.upkeep.rollback import Manifests, manifests_of, named_parts

_SNAPSHOT = re.compile(r"w[0-9a-f]{16}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- snapshots


def prune(lake: Lake, retention: Retention, now: datetime) -> list[str]:
    """Removes the snapshots past retention and the parts that none of the others uses; returns those snapshots."""
    manifests = manifests_of(lake)
    pointer = lake.snapshot_pointer()
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
    superseded = _superseded(published, datetime.fromisoformat(published_at) if published_at else now)
    days, grace = timedelta(days=retention.days), timedelta(minutes=retention.grace_minutes)
    old = _newest_first(published)[retention.snapshots :]
    return sorted(s for s in old if s not in named and now - published[s] > days and now - superseded[s] >= grace)


def named_snapshots(lake: Lake) -> set[str]:
    """Returns the snapshots that a pointer, a rollback or a kept result names."""
    named = {lake.current_snapshot(), *lake.rolled_back_from(), *(p.get("snapshot") for p in lake.results())}
    for folder in (lake.root / RUNS.name).glob("*/*/*"):
        optimized = lake.root / OPTIMIZED.name / Path(*folder.parts[-3:])
        named |= _snapshots_of(RUNS, folder) or _snapshots_of(OPTIMIZED, optimized)
    return {snapshot for snapshot in named if snapshot}


def prune_changes(lake: Lake, gone: Iterable[str], forget: bool = False) -> None:
    """Removes the changes of removed snapshots; with `forget` also those from a removed to a kept one."""
    names = set(gone)
    for folder in sorted((lake.root / WKG_CHANGES.name).glob("snapshot=*")):
        if folder.name.removeprefix("snapshot=") in names:
            lake.remove(folder)
            continue
        for file in sorted(folder.glob("part-*.parquet")) if forget else ():
            if file.stem.removeprefix("part-") in names:
                lake.withdraw(file)


def _snapshots_of(dataset: Dataset, folder: Path) -> set[str]:
    """Returns the snapshots that the rows of one table of a result were made from."""
    rows = read_table(dataset, folder, columns=["snapshot"])
    return {snapshot for snapshot in rows["snapshot"].to_pylist() if snapshot}


def _prune_parts(lake: Lake, manifests: list[dict[str, Any]], before: datetime) -> None:
    named = named_parts(manifests)
    in_use = {f"content={content}" for content in contents_in_use(lake)}
    of_history = {Path(source["folder"]).parts[-2:] for m in manifests for source in m["inputs"]["sources"]}
    for dataset in (REJECTS, IMPLEMENTATIONS):
        tree = lake.root / dataset.name
        kept = (
            of_history
            | _latest(tree, _sources_there(lake))
            | {f.parts[-2:] for f in tree.glob("*/content=*") if f.name in in_use}
        )
        _remove(lake, (f for f in tree.glob("*/content=*") if f.parts[-2:] not in kept), before)
    aggregates = lake.root.glob("aggregates/*/*=*")
    _remove(lake, (f for f in aggregates if f.relative_to(lake.root).as_posix() not in named), before)
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


# --- results


def prune_results(lake: Lake, client: str, contract: str, retention: Retention, now: datetime) -> list[str]:
    """Removes a contract's results beyond the newest `retention.results`, and what a killed run had not finished.

    The first go once they are past the grace time, the others at once. The current result always stays. Returns the
    removed results.
    """
    pointer = lake.result_pointer(client, contract) or {}
    current = pointer.get("result")
    made = {one.result: _made_at(lake, one) for one in results_of(lake, client, contract)}
    whole = {name: at for name, at in made.items() if at is not None}
    since = datetime.fromisoformat(pointer["published_at"]) if pointer else now
    gone = expired_results(whole, current, retention, now, since)
    gone += [name for name, at in made.items() if at is None and name != current]
    for name in gone:
        ResultKey(client, contract, name).remove(lake)
    return gone


def expired_results(
    made: Mapping[str, datetime], current: str | None, retention: Retention, now: datetime, published_at: datetime
) -> list[str]:
    """Returns the results that are beyond the newest `results` and were superseded longer ago than the grace time.

    `made` has the time when each was made. The current one counts, and is never among them. A result is superseded by
    the next newer one or, where there is none, at `published_at`, when the pointer was written.
    """
    superseded, grace = _superseded(made, published_at), timedelta(minutes=retention.grace_minutes)
    old = [name for name in _newest_first(made) if name != current][retention.results - 1 :]
    return [name for name in old if now - superseded[name] >= grace]


def _made_at(lake: Lake, result: ResultKey) -> datetime | None:
    times = (
        result.read(lake, RUNS, ["generated_at"])["generated_at"].cast(pa.int64()).to_pylist()
    )  # as times they import pandas
    return _EPOCH + timedelta(microseconds=max(times)) if times else None


# --- both


def _newest_first(made: Mapping[str, datetime]) -> list[str]:
    return sorted(made, key=lambda name: (made[name], name), reverse=True)


def _superseded(made: Mapping[str, datetime], pointed: datetime) -> dict[str, datetime]:
    """Returns when each was superseded: by the next newer one or, where there is none, at the time of the pointer."""
    return {name: min((at for at in made.values() if at > made[name]), default=pointed) for name in made}


def withdraw_models(lake: Lake, erased: Collection[str], manifests: Manifests) -> int:
    """Removes all trained models and MLflow's record in the lake where they may follow from erased cases.

    That is where snapshots were `erased`, and where a model is of a snapshot that is not among `manifests`: nobody can
    say whether it learnt from the client. Returns how many models were removed.
    """
    folder = lake.root / "models"
    cards = [read_json(path) or {} for path in sorted(folder.glob("*/*/card.json"))]
    if not erased and all(card.get("snapshot") in manifests for card in cards):
        return 0
    count = sum(path.is_dir() and path.name != COPIES for path in folder.glob("*/*"))
    lake.remove(folder)
    lake.remove(lake.root / "mlflow")
    return count
