"""Pruning: snapshots past the retention settings, and the history and aggregates that no kept snapshot was made from."""

import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from opus_pipelines.lake import Lake, read_json
from opus_pipelines.settings import Retention


def prune(lake: Lake, retention: Retention, now: datetime) -> list[str]:
    """Remove what is past retention; returns the snapshots removed. Never the current one, nor one that a contract's pointer names."""
    manifests = _manifests(lake)
    gone = expired(manifests, retention, now, {lake.current_snapshot()} | {p.get("snapshot") for p in lake.results()})
    for snapshot in gone:
        shutil.rmtree(lake.snapshot_folder(snapshot), ignore_errors=True)
    kept = [manifest for snapshot, manifest in manifests.items() if snapshot not in gone]
    _prune_parts(lake, kept, now - timedelta(minutes=retention.grace_minutes))
    return gone


def expired(manifests: dict[str, dict[str, Any]], retention: Retention, now: datetime, named: set[str | None]) -> list[str]:
    """Snapshots beyond the newest `snapshots` that are older than `days` and than the readers' grace, and that nothing names."""
    newest_first = sorted(manifests, key=lambda s: (manifests[s]["published_at"], s), reverse=True)
    age = max(timedelta(days=retention.days), timedelta(minutes=retention.grace_minutes))
    old = [s for s in newest_first[retention.snapshots :] if now - datetime.fromisoformat(manifests[s]["published_at"]) > age]
    return sorted(s for s in old if s not in named)


def _manifests(lake: Lake) -> dict[str, dict[str, Any]]:
    files = sorted((lake.root / "wkg").glob("*/manifest.json"))
    return {file.parent.name: manifest for file in files if (manifest := read_json(file))}


def _prune_parts(lake: Lake, manifests: Iterable[dict[str, Any]], before: datetime) -> None:
    sources = [source for manifest in manifests for source in manifest["inputs"]["sources"]]
    history = {source["folder"] for source in sources}
    mined = {source[key] for source in sources for key in ("aggregates", "names")}
    for folder in _stale(lake, "history/implementations/*/content=*", history, before):
        # By way of the implementations: rejects of a content without any case are named by no snapshot, and stay.
        _remove(lake.root / "history" / "rejects" / folder.parent.name / folder.name)
        _remove(folder)
    for folder in _stale(lake, "aggregates/*/*=*", mined, before):
        _remove(folder)


def _stale(lake: Lake, pattern: str, named: set[str], before: datetime) -> list[Path]:
    folders = (f for f in sorted(lake.root.glob(pattern)) if f.relative_to(lake.root).as_posix() not in named)
    return [f for f in folders if f.stat().st_mtime < before.timestamp()]


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
