"""Checks every published file of a lake against the list of its folder (`opus verify`), and repairs what it can.

Checks every published file of a lake against the list of its folder: size and SHA-256 (`opus verify`). The databases
of Dagster and MLflow, which no list has, are checked by SQLite.

Repairs a damaged lake as far as it can (`opus verify --repair`): copies are restored, the rest is set aside. What is
set aside is moved to `<lake>/damaged/<time>/` and never deleted. What follows from history is then made again by a
rebuild, and the results of contracts by generation.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import DECISIONS, SOURCES, WKG_CHANGES
from opus_pipelines.lake.damage import BESIDE, NEEDED, damaged_databases, damaged_results, snapshot_damage
from opus_pipelines.lake.file_lists import (
    COPIES,
    NAME,
    REPAIR,
    Damage,
    FileEntry,
    damage_in,
    entries_of,
    freshen,
    restored,
)
from opus_pipelines.lake.layout import Lake, unslug
from opus_pipelines.lake.results import RESULT_DATASETS, ResultKey
from opus_pipelines.wkg.upkeep.changes import write_changes
from opus_pipelines.wkg.upkeep.rollback import point

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


_OF_RESULTS = tuple(dataset.name for dataset in RESULT_DATASETS)
_AGAIN = {
    "forecasts": "`opus forecast`",
    "evaluations": "`opus evaluate`",
    "models": "`opus train`",
    "programs": "`opus program`",
    "flows": "`opus flow batch`",
    "ops": "nothing",
}
# kept files that cannot be made again, and what their loss means
_LOST = {
    "ids.parquet": "the next rebuild gives tasks new ids",
    "lambda.json": "the next rebuild chooses lambda anew",
    "history.json": "a source that cannot be read has no earlier version to keep",
    "put_back.json": "a version of a source that failed after it was read is tried again",
    "private.key": "values of hashed attributes change, and clients that were forgotten are not known any more",
    "forgotten.json": "clients that were forgotten are not known any more",
}


@dataclass
class Repair:
    """What was done with each damaged file, as (path in the lake, what), and what is still to be done."""

    done: list[tuple[str, str]] = field(default_factory=list)
    rebuild: bool = False
    contracts: set[tuple[str, str]] = field(default_factory=set)  # whose results are to be generated again


def repair(lake: Lake, damage: Iterable[Damage], now: datetime) -> Repair:
    """Restores and sets aside; the caller holds the lock of the lake, and then rebuilds and generates.

    `now` names the folder for what is set aside, and dates a pointer that is written anew.
    """
    work = _Work(lake, now)
    for one in damage:
        work.mend(one)
    return work.report


class _Work:
    def __init__(self, lake: Lake, now: datetime) -> None:
        self.lake, self.now, self.report = lake, now, Repair()
        self._aside = lake.root / SET_ASIDE / now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    def mend(self, damage: Damage) -> None:
        file = damage.file
        place = file.relative_to(self.lake.root)
        if place.parts[0] == ".empty":
            self.lake.remove(self.lake.root / ".empty")
            self.lake.ensure_empty()
            self._note(file, "was written anew")
        elif file.suffix == ".db":
            self._database(file)
        elif damage.reason == "is not in the list of its folder":
            self._set_aside(file, "was set aside: it was never published")
        elif place.parts[:2] == ("wkg", "current.json"):
            self._pointer(file)
        elif (key := self._result(place)) is not None:
            self._drop_result(key, place)
        elif place.parts[:2] == ("workflows", "current") and file.name != NAME:
            self._contract_pointer(file)
        elif place.parent.as_posix() in ("wkg", "wkg/kept", "workflows/current", SOURCES.name) or self._is_replaced(
            place
        ):
            self._replaced(file)
        elif place.as_posix().startswith(f"{WKG_CHANGES.name}/"):
            self._changes(file)
        else:
            self._folder(place)

    def _database(self, file: Path) -> None:
        """Sets a database of Dagster or MLflow aside, which then begin a new one."""
        for end in BESIDE:
            self._move(file.with_name(file.name + end))
        self._set_aside(file, "was set aside: the next run begins a new one; no result depends on it")

    def _is_replaced(self, place: Path) -> bool:
        return place.parts[0] == DECISIONS.name or (place.parts[0] == "models" and len(place.parts) == 3)

    def _replaced(self, file: Path) -> None:
        """Restores a file from its copy, or sets it aside and says what its loss means."""
        if file.name == NAME:
            self._set_aside(file, "was set aside: the next change of the folder lists its files again")
            return
        with self.lake.staging() as staged:
            is_restored = restored(staged, file)
        if is_restored:
            self._note(file, "was restored from its copy")
            return
        meaning = _LOST.get(file.name, "its rows are lost")
        if file.parent == self.lake.folder(SOURCES):
            meaning, self.report.rebuild = "every source is read again", True
        self._set_aside(file, f"was set aside, and has no sound copy: {meaning}")
        self.lake.withdraw(file)

    def _pointer(self, file: Path) -> None:
        with self.lake.staging() as staged:
            if restored(staged, file) and not any(snapshot_damage(self.lake, self.lake.current_snapshot() or "-")):
                self._note(file, "was restored from its copy")
                return
        self._set_aside(file, "was set aside")
        self.lake.withdraw(file)
        names = [file.parent.name for file in (self.lake.root / "wkg").glob("w*/manifest.json")]
        sound = [name for name in names if self._is_sound(name)]
        newest = sorted((str(self.lake.manifest(name).get("published_at")), name) for name in sound)
        if newest:
            point(self.lake, newest[-1][1], self.now)
            self._note(file, f"names the newest sound snapshot now, {newest[-1][1]}")
        self.report.rebuild = True

    def _is_sound(self, snapshot: str) -> bool:
        try:
            return not any(snapshot_damage(self.lake, snapshot)) and bool(self.lake.manifest(snapshot))
        except LakeError:
            return False

    def _contract_pointer(self, file: Path) -> None:
        with self.lake.staging() as staged:
            if restored(staged, file):
                self._note(file, "was restored from its copy")
                return
        client, _, contract = file.stem.partition("__")
        self._set_aside(file, "was set aside: the contract is generated again")
        self.lake.withdraw(file)
        self.report.contracts.add((unslug(client), unslug(contract)))

    def _result(self, place: Path) -> ResultKey | None:
        """Returns the result that a file belongs to."""
        if not place.as_posix().startswith(_OF_RESULTS) or len(place.parts) < 5:
            return None
        keys = dict(part.partition("=")[::2] for part in place.parts[2:5])
        names = [unslug(keys.get(name, "")) for name in ("client_key", "contract_key", "result")]
        return ResultKey(*names) if all(names) else None

    def _drop_result(self, key: ResultKey, place: Path) -> None:
        pointer = self.lake.result_pointer(key.client, key.contract)
        is_current = pointer is not None and pointer["result"] == key.result
        for folder in key.folders(self.lake):
            self._move(folder)
        if is_current:
            pointer_file = self.lake.pointer_path(key.client, key.contract)
            self._move(pointer_file)
            self.lake.withdraw(pointer_file)
            self.report.contracts.add((key.client, key.contract))
        what = "the contract is generated again" if is_current else "it was not the current one, and is lost"
        self._note(self.lake.root / place, f"its result {key.result} was set aside: {what}")

    def _changes(self, file: Path) -> None:
        """Makes the changes between two snapshots again, where both are there."""
        after, before = file.parent.name.partition("=")[2], file.stem.partition("-")[2]
        self._set_aside(file, "was set aside")
        self.lake.withdraw(file)
        if file.suffix == ".parquet":
            write_changes(self.lake, before, after)
            self._note(file, "was made again" if file.is_file() else "is lost: one of its snapshots is no longer there")

    def _folder(self, place: Path) -> None:
        """Sets a published folder aside as a whole."""
        depth = {"wkg": 2, "history": 4, "forecasts": 4, "flows": 5} | dict.fromkeys(
            ("aggregates", "evaluations", "models", "ops", "programs"), 3
        )
        folder = self.lake.root.joinpath(*place.parts[: depth.get(place.parts[0], len(place.parts))])
        of_history = place.parts[0] in ("wkg", "history")
        self.report.rebuild |= of_history or place.parts[0] == "aggregates"
        again = "a rebuild makes it again where history still gives it"
        if not of_history and place.parts[0] != "aggregates":
            again = f"{_AGAIN.get(place.parts[0], 'nothing')} makes it again"
        self._set_aside(folder, f"was set aside: {again}", self.lake.root / place)

    def _set_aside(self, path: Path, what: str, named: Path | None = None) -> None:
        self._move(path)
        self._note(named or path, what)

    def _move(self, path: Path) -> None:
        if not path.exists():
            return  # missing, or moved with its folder
        target = self._aside / path.relative_to(self.lake.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)

    def _note(self, file: Path, what: str) -> None:
        self.report.done.append((file.relative_to(self.lake.root).as_posix(), what))
