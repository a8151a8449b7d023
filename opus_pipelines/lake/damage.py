"""Finds damage in what readers are about to read: the current snapshot, the results of contracts, and the databases.

Finds damage in what readers are about to read: the current snapshot with its parts, and the results of contracts.
Damage of the snapshot stops every reader; damage of a result costs its contract alone. These checks are quick
(`lake.file_lists`); `wkg.upkeep.verify` checks everything thoroughly.

Finds damage in the SQLite databases of the lake: Dagster's record of runs, and MLflow's record of trainings. They
change with every run, so no list can hold their hashes: SQLite's own check says whether they are sound.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import (
    DECISIONS,
    FLOW_DATASETS,
    OPTIMIZED,
    REJECTS,
    RUNS,
    SOURCES,
    WKG_CHANGES,
    WORKFLOW_CHANGES,
)
from opus_pipelines.lake.file_lists import (
    NAME,
    REPAIR,
    Damage,
    FileEntry,
    damage_in,
    damage_of,
    entries_of,
    sound_pointer,
)
from opus_pipelines.lake.layout import Lake, unslug
from opus_pipelines.lake.results import ResultKey

NEEDED = (
    "history/runs.db",
    "history/runs/index.db",
    "schedules/schedules.db",
)  # in Dagster's home: no run without them
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database, by the ends of the names
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def databases(lake: Lake) -> Iterator[Path]:
    """Yields the databases of the lake that are there."""
    yield from (file for name in NEEDED if (file := lake.dagster_home / name).is_file())
    index = lake.dagster_home / "history" / "runs" / "index.db"
    yield from (file for file in sorted(index.parent.glob("*.db")) if file != index)
    yield from sorted((lake.root / "mlflow").glob("*.db"))


def damaged_databases(lake: Lake) -> Iterator[Damage]:
    """Yields the databases that SQLite's quick check finds damaged. It reads each database whole."""
    for file in databases(lake):
        try:
            with opened_database(file) as database:
                (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except LakeError:
            found = "it cannot be opened"
        if found != "ok":
            yield Damage(file, "is a damaged database")


def require_openable(lake: Lake) -> None:
    """Raises LakeError where a database that every run of Dagster needs cannot be opened.

    SQLite takes the path as a part of an address, in which `?` ends it and `%41` stands for a letter.
    """
    if found := re.search(r"\?|%[0-9A-Fa-f]{2}", str(lake.root.absolute())):
        raise LakeError(f"no database can be opened in {lake.root}, because of {found[0]!r} in the path; rename it")
    for name in NEEDED:
        if (file := lake.dagster_home / name).is_file():
            with opened_database(file) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()


@contextmanager
def opened_database(file: Path) -> Iterator[sqlite3.Connection]:
    """Opens a database for reading. Raises LakeError where it turns out to be damaged."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise
        raise LakeError(f"{file} is damaged ({error}); {REPAIR}") from None


_NAMED = 3  # damaged files that a message names
_EARLIER = (OPTIMIZED, WORKFLOW_CHANGES, RUNS)  # what the views read of the results that are not current

_OF_NO_CONTRACT = (  # folders of datasets that the views read, beside the snapshot and the results
    (SOURCES.name, "."),
    (REJECTS.name, "*/*"),
    (WKG_CHANGES.name, "*"),
    ("forecasts", "*/*/*"),
    ("evaluations", "*/*"),
    ("programs", "*/*"),
)


@dataclass(frozen=True)
class ContractDamage:
    """A damaged file that costs one contract alone.

    `file` is its path in the lake. `pointer` is the file name of the contract's pointer where its current result is
    lost with the file, else empty.
    """

    pointer: str
    client: str
    contract: str
    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.client} / {self.contract}: {self.file} {self.reason}"


def require_sound(lake: Lake, snapshot: str, thorough: bool = False) -> None:
    """Raises LakeError where the snapshot, or a part that it was made from, is damaged."""
    _raise_any(list(snapshot_damage(lake, snapshot, thorough)))


def _raise_any(found: list[Damage]) -> None:
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise LakeError(f"{'; '.join(map(str, found[:_NAMED]))}{more}; {REPAIR}")


def snapshot_damage(lake: Lake, snapshot: str, thorough: bool = False) -> Iterator[Damage]:
    """Yields the damage in the folder of a snapshot and in the history that its manifest names.

    A folder of an older version has no list, and is not checked. The aggregates are not looked at: no reader needs
    them, and a rebuild makes missing ones again.
    """
    folder = lake.snapshot_folder(snapshot)
    found = list(_damage(lake, folder, thorough))
    yield from found
    if found or not (folder / "manifest.json").is_file():
        return
    for source in lake.manifest(snapshot)["inputs"]["sources"]:
        if "folder" in source:
            yield from _damage(lake, lake.root / source["folder"], thorough)


def files_of(lake: Lake, result: ResultKey) -> dict[str, dict[str, Any]]:
    """Returns the list of all files of a result, by their paths in the lake, as its pointer states it."""
    listed = ((folder, entries_of(folder) or {}) for folder in result.folders(lake))
    return {
        (folder / name).relative_to(lake.root).as_posix(): entry.as_json()
        for folder, entries in listed
        for name, entry in entries.items()
    }


def contract_damage(lake: Lake) -> Iterator[ContractDamage]:
    """Yields what costs a contract alone: damage of its pointer, its results, its decisions and its flows."""
    yield from damaged_results(lake)
    own = (("*/*", DECISIONS.name), *(("*/*/*", name) for name in FLOW_DATASETS))
    below = (damage for pattern, place in own for damage in _damage_below(lake, place, pattern))
    for damage in (*_damaged_earlier_files(lake), *below):
        place = damage.file.relative_to(lake.root)
        keys = dict(part.split("=", 1) for part in place.parts if "=" in part)
        client, contract = unslug(keys["client_key"]), unslug(keys["contract_key"])
        yield ContractDamage("", client, contract, place.as_posix(), damage.reason)


def require_views_sound(lake: Lake) -> None:
    """Raises LakeError where a file is damaged that the views read and that belongs to no contract."""
    _raise_any([damage for place, pattern in _OF_NO_CONTRACT for damage in _damage_below(lake, place, pattern)])


def has_sound_empty_files(lake: Lake) -> bool:
    """Tells whether the empty typed files, by which the views know the columns, are sound."""
    return not any(_damage_below(lake, ".empty", "."))


def damaged_results(lake: Lake) -> Iterator[ContractDamage]:
    """Yields the first damaged file of each contract whose pointer or current result is damaged."""
    folder = lake.root / "workflows" / "current"
    lost = {one.file: one.reason for one in _damage_below(lake, "workflows/current", ".") if one.file.name != NAME}
    for file in sorted({*lake.pointers(), *lost}):
        pointer = sound_pointer(folder / file.name)
        if pointer is None:
            client, _, contract = file.stem.partition("__")
            place = file.relative_to(lake.root).as_posix()
            reason = lost.get(file, "is no sound pointer to a result")
            yield ContractDamage(file.name, unslug(client), unslug(contract), place, reason)
        elif (damage := _first_damage(lake, file, pointer)) is not None:
            place = damage.file.relative_to(lake.root).as_posix()
            yield ContractDamage(file.name, pointer["client"], pointer["contract"], place, damage.reason)


def _damaged_earlier_files(lake: Lake) -> Iterator[Damage]:
    """Yields the damaged files of results that are not current, as far as the views read them."""
    current = {ResultKey.of(pointer) for pointer in lake.results()}
    of_current = {key.folder(lake, dataset) for key in current for dataset in _EARLIER}
    for dataset in _EARLIER:
        for folder in sorted((lake.root / dataset.name).glob("*/*/*")):
            if folder not in of_current and (folder / NAME).is_file():
                yield from damage_in(folder)


def _damage_below(lake: Lake, place: str, pattern: str) -> Iterator[Damage]:
    """Yields the damage in the folders of a pattern that have a list."""
    root = lake.root / place
    for folder in [root] if pattern == "." else sorted(root.glob(pattern)):
        if (folder / NAME).exists():
            yield from damage_in(folder)


def _damage(lake: Lake, folder: Path, thorough: bool) -> Iterator[Damage]:
    is_old = not (folder / NAME).exists() and (folder.is_dir() or folder.parent == lake.root / "wkg")
    if is_old and not _must_have_list(lake, folder):
        return
    yield from damage_in(folder, thorough)


def _must_have_list(lake: Lake, folder: Path) -> bool:
    pointer = lake.snapshot_pointer()
    return folder == lake.snapshot_folder(pointer.get("snapshot", "-")) and pointer.get("has_file_list") is True


def _first_damage(lake: Lake, file: Path, pointer: Mapping[str, Any]) -> Damage | None:
    since = file.stat().st_mtime_ns
    entries = {name: FileEntry(**entry) for name, entry in pointer.get("files", {}).items()}
    for name, entry in entries.items():
        if (reason := damage_of(lake.root / name, entry, since)) is not None:
            return Damage(lake.root / name, reason)
    return None
