"""Checks every published file of a lake against the list of its folder: size and SHA-256 (`opus verify`).

The databases of Dagster and MLflow, which no list has, are checked by SQLite.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.damage import damaged_results, snapshot_damage
from opus_pipelines.lake.databases import NEEDED, damaged_databases
from opus_pipelines.lake.file_lists import COPIES, NAME, Damage, FileEntry, damage_in, entries_of, freshen
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.replaced_files import REPAIR
from opus_pipelines.lake.results import RESULT_DATASETS

SET_ASIDE = "damaged"  # the folder of the lake into which a repair moves what is damaged
_UNCHECKED = (SET_ASIDE, COPIES, "mlflow")
_LISTED = (
    ".empty",
    "wkg",
    "wkg/kept",
    "wkg/w*",
    "wkg/changes/*",
    "history/sources",
    "decisions/*/*",
    "workflows/current",
    "forecasts/*/*/*",
    "evaluations/*/*",
    "programs/*/*",
    "flows/*/*/*/*",
    "ops/*/*",
    "history/implementations/*/*",
    "history/rejects/*/*",
    "aggregates/*/*",
    "models/*/*",
    *(f"{dataset.name}/*/*/*" for dataset in RESULT_DATASETS),
)
# what a rebuild starts from; damage elsewhere costs a contract, a forecast or an evaluation
_OF_REBUILD = ("wkg", "history", "aggregates")


@dataclass
class Verification:
    """What `verify` found: how many files and bytes it hashed, what is damaged, and folders that have no list.

    The folders without a list were published by an older version, or their list was deleted: their files cannot be
    checked.
    """

    files: int = 0
    bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    unlisted: list[Path] = field(default_factory=list)


def verify(lake: Lake, progress: Callable[[int], None] = lambda files: None) -> Verification:
    """Hashes every published file of the lake; `progress(files)` is told how many are done.

    Damage is sorted by file. It changes nothing.
    """
    found, damage = Verification(), dict[Path, Damage]()
    for folder in _listed_folders(lake):
        for one in damage_in(folder, thorough=True):
            damage[one.file] = one
        for entry in _entries(folder).values():
            found.files += 1
            found.bytes += entry.bytes
        progress(found.files)
    for one in _missing(lake):
        damage.setdefault(one.file, one)
    damage.update((one.file, one) for one in damaged_databases(lake))
    found.damage = [damage[file] for file in sorted(damage)]
    folders = (folder for pattern in _LISTED for folder in lake.root.glob(pattern))
    found.unlisted = sorted(f for f in folders if f.is_dir() and not (f / NAME).exists() and f not in damage)
    return found


def require_sound_for_rebuild(lake: Lake) -> list[str]:
    """Checks the lake before a rebuild, and returns a line for each damage that the rebuild does not depend on.

    A folder that is missing as a whole does not count: the rebuild makes it again. Raises LakeError where a file of a
    snapshot, of the history or of the aggregates, a kept file, or a database that every run needs is damaged.
    """
    found = [one for one in verify(lake).damage if not one.is_folder]
    databases_needed = {lake.dagster_home / name for name in NEEDED}
    needed = [
        one for one in found if one.file.relative_to(lake.root).parts[0] in _OF_REBUILD or one.file in databases_needed
    ]
    if needed:
        more = f" and {len(needed) - 3} more files" if len(needed) > 3 else ""
        raise LakeError(f"damaged: {'; '.join(map(str, needed[:3]))}{more}; nothing was begun; {REPAIR}")
    return [f"damaged: {one}; {REPAIR}" for one in found]


def freshen_lists(lake: Lake) -> None:
    """Marks every list as newer than its files, so that quick checks stay quick in a lake that was copied.

    Only for a lake that was found sound; the caller holds its lock.
    """
    for folder in _listed_folders(lake):
        freshen(folder)
    for pointer in lake.pointers():
        os.utime(pointer)


def _listed_folders(lake: Lake) -> Iterator[Path]:
    for place, names, files in os.walk(lake.root):
        folder = Path(place)
        names[:] = sorted(n for n in names if n not in _UNCHECKED and (not n.startswith(".") or n == ".empty"))
        if NAME in files:
            yield folder


def _entries(folder: Path) -> dict[str, FileEntry]:
    try:
        return entries_of(folder) or {}
    except LakeError:
        return {}


def _missing(lake: Lake) -> Iterator[Damage]:
    """Yields what the pointers and the manifests name, but is not there."""
    for result in damaged_results(lake):
        yield Damage(lake.root / result.file, result.reason)
    there = {file.parent.name for file in (lake.root / "wkg").glob("*/manifest.json")}
    try:
        current = lake.current_snapshot()
    except LakeError:
        current = None  # the pointer itself is damaged, and was named
    for snapshot in sorted(there | ({current} if current else set())):
        try:
            yield from snapshot_damage(lake, snapshot)
        except LakeError:
            yield Damage(lake.snapshot_folder(snapshot) / "manifest.json", "is not JSON")
