"""Gives readers the latest commit as a tree of files that nobody changes, and says what the store has of them.

A tree is made apart and then renamed, so a reader sees a whole commit or none. Files that an earlier tree or the
working folder has are linked, not fetched. A reader holds its tree by a lock of the kernel; trees that nobody holds
and that are not the latest are removed.

What the store has of the files of a lake: their addresses for analysts, whether they are there, and sound copies.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.atomic_files import make_folder
from opus_pipelines.lake.object_store.bucket import Bucket
from opus_pipelines.lake.object_store.commits import (
    FILES,
    Files,
    Head,
    key_of,
    read_files,
    read_head,
    read_state,
    write_state,
)
from opus_pipelines.lake.object_store.files import ObjectGone, download, facts_of
from opus_pipelines.lake.object_store.folders import Origin, origin_in

_ATTEMPTS = 5  # each finds the head replaced, and what it named before removed
_held: dict[Path, int] = {}  # the trees of this process with the handles of their locks


def current_tree(origin: Origin, folder: Path) -> Path:
    """Returns the tree of the latest commit, which this process holds from now on; an empty one before the first."""
    bucket, gone = Bucket(origin), LakeError("")
    for _ in range(_ATTEMPTS):
        head = read_head(bucket)
        tree = folder / "trees" / (head.name or "empty")
        _hold(tree)
        if not tree.is_dir():
            try:
                _make(bucket, head, folder, tree)
            except ObjectGone as error:
                gone = error
                continue
        remove_trees(folder, but=tree)
        return tree
    raise gone


def remove_trees(folder: Path, but: Path | None = None) -> None:
    """Removes the trees that no process holds, but one."""
    for lock in sorted((folder / "trees").glob("*.lock")):
        tree = lock.with_suffix("")
        if tree in (but, *_held):
            continue
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(tree, lock)
        except OSError:
            pass  # another process reads it
        finally:
            os.close(handle)


def erase_trees(folder: Path) -> None:
    """Removes every tree, also those that readers hold: they may have what is erased."""
    for lock in sorted((folder / "trees").glob("*.lock")):
        tree = lock.with_suffix("")
        if (handle := _held.pop(tree, None)) is not None:
            os.close(handle)
        _remove(tree, lock)


def _remove(tree: Path, lock: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    lock.unlink(missing_ok=True)


def _hold(tree: Path) -> None:
    while tree not in _held:
        make_folder(tree.parent)
        lock = tree.with_suffix(".lock")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_SH)
        if lock.exists() and os.fstat(handle).st_ino == lock.stat().st_ino:  # not removed in between
            _held[tree] = handle
        else:
            os.close(handle)


def _make(bucket: Bucket, head: Head, folder: Path, tree: Path) -> None:
    files = read_files(bucket, head)
    if files is None:
        raise ObjectGone(f"{head.commit} of {bucket.origin.url} is missing in the store")
    made = tree.with_name(f".{uuid.uuid4().hex}")
    made.mkdir()
    try:
        missing = [path for path in files if not _linked(path, files, list(_sources(folder)), made)]
        download(bucket, files, missing, made)
        set_folder_times(made, files)
        write_state(made, head.commit, files)
        (made / ".dagster").symlink_to(folder / "work" / ".dagster")
        if not tree.is_dir():
            made.rename(tree)
    except OSError:
        if not tree.is_dir():  # another reader has not made it meanwhile
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sources(folder: Path) -> Iterator[Path]:
    yield folder / "work"
    yield from (tree for tree in sorted((folder / "trees").glob("0*"), reverse=True) if tree.is_dir())


def _linked(path: str, files: Files, sources: list[Path], made: Path) -> bool:
    """Links a file that is there already with the size and the time that the commit states."""
    for source in sources:
        try:
            facts = os.lstat(source / path)
            if (facts.st_size, facts.st_mtime_ns) == facts_of(files[path]):
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).hardlink_to(source / path)
                return True
        except OSError:
            continue
    return False


def set_folder_times(root: Path, files: Files) -> None:
    """Gives each folder the time of its newest file, by which retention tells old results from new ones."""
    newest = dict[Path, int]()
    for path, entry in files.items():
        for folder in (root / path).parents[: len(Path(path).parts) - 1]:
            newest[folder] = max(newest.get(folder, 0), entry.mtime_ns)
    for folder, mtime_ns in newest.items():
        os.utime(folder, ns=(mtime_ns, mtime_ns))


def addresses(root: Path, origin: Origin) -> dict[str, str]:
    """Returns the address `s3://…` of every file of the commit that a tree or a working folder is based on."""
    _, files = read_state(root)
    return {path: f"{origin.url}/{key_of(path, entry)}" for path, entry in files.items()}


def missing(root: Path) -> list[tuple[str, str]]:
    """Returns the files of the current commit that the store lacks, or has with another size, each with a reason."""
    bucket = _bucket(root)
    files = read_files(bucket, read_head(bucket)) or {}
    sizes = {one.key: one.size for one in bucket.listed(FILES)}
    found = ((path, entry.bytes, sizes.get(key_of(path, entry))) for path, entry in sorted(files.items()))
    return [
        (path, "is missing in the store" if size is None else f"has {size:,} bytes in the store instead of {stated:,}")
        for path, stated, size in found
        if size != stated
    ]


def mend(root: Path, damaged: Iterable[str], lacking: Iterable[str]) -> list[str]:
    """Fetches damaged files of a working folder again, and lets the next publication send what the store lacks.

    Trees for readers are removed: the next reader makes a new one. The caller does not hold the lock, but takes it
    afterwards. Returns the files that were fetched.
    """
    bucket, (commit, files) = _bucket(root), read_state(root)
    gone = set(lacking)
    wanted = [path for path in damaged if path in files and path not in gone]
    fetched = root / ".staged" / "fetched"
    try:
        download(bucket, files, wanted, fetched)
        for path in wanted:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (fetched / path).replace(root / path)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
    write_state(root, commit, {path: entry for path, entry in files.items() if path not in gone})
    erase_trees(root.parent)
    return wanted


def _bucket(root: Path) -> Bucket:
    origin = origin_in(root)
    assert origin is not None
    return Bucket(origin)
