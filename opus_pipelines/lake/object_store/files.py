"""Moves the files of a lake between a folder of this machine and the store, many at once, and checks what arrives."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake import file_lists
from opus_pipelines.lake.file_lists import FileEntry
from opus_pipelines.lake.object_store.bucket import PART_BYTES, Bucket
from opus_pipelines.lake.object_store.commits import Entry, Files, key_of
from opus_pipelines.lake.object_store.folders import STATE

# What stays on this machine: the state of Dagster and MLflow, unfinished files, and what has paths of this machine
LOCAL = frozenset(
    (".dagster", "mlflow", ".staging", ".staged", ".unlocked", ".lock", "damaged", "views.sql", ".origin.json")
)
ADDED_WITHOUT_LOCK = "ops/runs/"  # rows that are added, and seldom removed, by processes that do not hold the lock
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")
_ATTEMPTS = 4
In = TypeVar("In")
Out = TypeVar("Out")


class ObjectGone(LakeError):
    """An object that a commit names is not in the store: a newer commit may have replaced it."""


def scan(root: Path) -> dict[str, tuple[int, int]]:
    """Returns size in bytes and time of modification in ns of every file that belongs to the lake, by its path."""
    return {path: facts for path, facts in _below(root, "") if path.partition("/")[0] not in LOCAL | {STATE}}


def _below(folder: Path, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as found:
        for one in found:
            path = prefix + one.name
            if one.is_dir(follow_symlinks=False):
                if path not in LOCAL:
                    yield from _below(Path(one.path), path + "/")
            elif not _TEMPORARY.fullmatch(one.name) and not one.is_symlink():
                facts = one.stat()
                yield path, (facts.st_size, facts.st_mtime_ns)


def changed(now: Mapping[str, tuple[int, int]], base: Files) -> tuple[list[str], list[str]]:
    """Returns the paths that a folder has otherwise than a commit, and those that it no longer has."""
    differ = [path for path, facts in now.items() if path not in base or facts != facts_of(base[path])]
    return sorted(differ), sorted(path for path in base if path not in now)


def facts_of(entry: Entry) -> tuple[int, int]:
    """Returns size and time of modification of a file."""
    return entry.bytes, entry.mtime_ns


def upload(bucket: Bucket, root: Path, paths: Collection[str], base: Files, token: int) -> dict[str, Entry]:
    """Writes changed files to the store; returns their entries.

    A file that has only another time is not written again. Raises LakeError where a file is not as the list of its
    published folder says: damage is not published.
    """
    lists = Lists(root)

    def one(path: str) -> Entry | None:
        file = root / path
        try:
            facts = file.stat()
            content: bytes | Path = file if facts.st_size > PART_BYTES else file.read_bytes()
            sha256 = file_lists.hash_of(file) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()
        except FileNotFoundError:
            if path.startswith(ADDED_WITHOUT_LOCK):
                return None
            raise
        lists.require(path, sha256)
        before = base.get(path)
        if before is not None and before.sha256 == sha256:
            return replace(before, mtime_ns=facts.st_mtime_ns)
        size = facts.st_size if isinstance(content, Path) else len(content)
        entry = Entry(size, sha256, facts.st_mtime_ns, token)
        bucket.upload(key_of(path, entry), content)
        return entry

    return {path: entry for path, entry in in_parallel(bucket, one, paths) if entry is not None}


def download(bucket: Bucket, files: Files, paths: Collection[str], to: Path) -> None:
    """Fetches files of a commit into a folder, each with its time, and checks their hashes.

    Raises ObjectGone where the store has one no longer, and LakeError where one arrives damaged again and again.
    """
    for folder in {(to / path).parent for path in paths}:
        folder.mkdir(parents=True, exist_ok=True)

    def one(path: str) -> None:
        entry, file = files[path], to / path
        for _ in range(_ATTEMPTS):
            if not bucket.download(key_of(path, entry), entry.bytes, file):
                raise ObjectGone(f"{path} of {bucket.origin.url} is missing in the store")
            if file_lists.hash_of(file) == entry.sha256:
                os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
                return
        raise LakeError(
            f"{path} of {bucket.origin.url} is damaged in the store ({key_of(path, entry)}): its content does not have "
            "the hash that its commit states"
        )

    for _ in in_parallel(bucket, one, paths):
        pass


def in_parallel(bucket: Bucket, work: Callable[[In], Out], items: Iterable[In]) -> Iterator[tuple[In, Out]]:
    """Yields each item with what `work` makes of it; many are worked on at once."""
    all_items = list(items)
    if not all_items:
        return
    pool = ThreadPoolExecutor(min(bucket.origin.parallel, len(all_items)), thread_name_prefix="object-store")
    try:
        yield from zip(all_items, pool.map(work, all_items), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


class Lists:
    """The lists of the published folders below a root, each read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[Path, dict[str, FileEntry]] = {}

    def require(self, path: str, sha256: str) -> None:
        """Raises LakeError where the list that has a file states another hash."""
        file = self.root / path
        for folder in file.parents[: len(Path(path).parts)]:
            entry = self._entries(folder).get(file.relative_to(folder).as_posix())
            if entry is not None and sha256 not in (entry.sha256, entry.before):
                raise LakeError(
                    f"{file} has other content than was published, so nothing is written to the store; "
                    "`opus verify --repair` mends it"
                )

    def _entries(self, folder: Path) -> dict[str, FileEntry]:
        if folder not in self._read:
            self._read[folder] = file_lists.entries_of(folder) or {}
        return self._read[folder]
