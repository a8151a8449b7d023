"""The published snapshots of a lake with their manifests, and the pointer to the current one."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from opus_pipelines.lake import file_lists
from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.wkg.upkeep.changes import write_changes

Manifests = Mapping[str, dict[str, Any]]


def manifests_of(lake: Lake) -> dict[str, dict[str, Any]]:
    """Returns the manifest of every published snapshot, by its id. Raises LakeError where one is damaged."""
    folders = (file.parent for file in sorted((lake.root / "wkg").glob("*/manifest.json")))
    return {folder.name: lake.manifest(folder.name) for folder in folders}


def named_parts(manifests: Iterable[Mapping[str, Any]]) -> set[str]:
    """Returns the folders of history and aggregates that snapshots were made from, as paths in the lake."""
    sources = [source for manifest in manifests for source in manifest["inputs"]["sources"]]
    return {str(value) for source in sources for value in source.values()}


def point(lake: Lake, snapshot: str, now: datetime, **more: Any) -> None:
    """Makes a snapshot the current one, and writes what changed since the one before it.

    The pointer also names the snapshot before it (`before`) and holds `more`.
    """
    before = lake.current_snapshot()
    write_changes(lake, before, snapshot)
    lake.replace_json(
        lake.root / "wkg" / "current.json",
        {
            "snapshot": snapshot,
            "before": before,
            "published_at": stamp(now),
            **({"has_file_list": True} if (lake.snapshot_folder(snapshot) / file_lists.NAME).is_file() else {}),
            **more,
        },
    )


def rewrite_manifest(lake: Lake, snapshot: str, manifest: Mapping[str, Any]) -> None:
    """Replaces the manifest of a published snapshot, and its entry where the snapshot has a list of files."""
    folder = lake.snapshot_folder(snapshot)
    if (folder / file_lists.NAME).is_file():
        lake.replace_json(folder / "manifest.json", manifest, copy=False)
    else:  # a snapshot of an older version
        write_json(folder / "manifest.json", manifest)


def stamp(now: datetime) -> str:
    """Formats a time as the manifests have it: UTC, whole seconds."""
    return now.astimezone(UTC).isoformat(timespec="seconds")
