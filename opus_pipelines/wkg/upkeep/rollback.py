"""The published snapshots of a lake, the pointer to the current one, and the return to an earlier one.

Makes an earlier snapshot current by replacing one pointer; nothing is made or removed. The pointer then names the
snapshots that were rolled back from, and retention keeps these. A rebuild that would make one of them again (the same
history, settings and code) leaves it alone, reports this, and exits with 0, because it must not silently undo the
decision of a person. Any other snapshot is published as usual, and `opus rebuild --publish` publishes in any case.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from opus_pipelines.core.errors import LakeError
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
            manifest.get("published_at", ""),
            manifest.get("counts", {}),
            snapshot == current,
            tuple(_name(result) for result in results if result.get("snapshot") == snapshot),
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


def _name(result: Mapping[str, Any]) -> str:
    return f"{result['client']} / {result['contract']}"
