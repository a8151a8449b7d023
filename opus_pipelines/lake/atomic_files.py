"""Writes files and folders so that a reader sees them whole or not at all, and so that they survive a power cut.

A rename is atomic, but not durable: after a power cut a name may point to a file whose bytes were never written. So
every file and folder is synced before the rename that shows it, and the folder that holds the new name is synced after
it.

Checks that the disk has enough space for a run before it begins, because a run that fails half-way costs a night.
"""

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.formatting import clean

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_TEXTS = tuple(os.strerror(code) for code in sorted(_FULL))


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Lets `write(temporary)` write a file, then renames it to `path`; the file is durable before it is visible.

    Raises LakeError where the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with full_disk_named(path.parent):
            make_folder(path.parent)
            write(temporary)
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replaces a JSON file in one atomic step."""
    write_atomically(path, lambda p: p.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8"))


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the object of a JSON file, or None where there is no file. Raises LakeError where it is no object."""
    value = read_json_value(path)
    if value is None or isinstance(value, dict):
        return value
    raise LakeError(f"{path} is not a JSON object; was it edited by hand?")


def read_json_value(path: Path) -> Any:
    """Returns the value of a JSON file, or None where there is no file. Raises LakeError where it is not JSON."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, a number or a nesting beyond all bounds
        raise LakeError(f"{path} is not JSON ({clean(str(error))[:200]}); was it edited by hand?") from None


def move_into_place(staged: Path, final: Path) -> None:
    """Renames a finished folder to `final`, after all its files and folders are synced. `final` must not exist.

    Raises LakeError where the disk is full.
    """
    with full_disk_named(final.parent):
        sync_tree(staged)
        make_folder(final.parent)
        staged.rename(final)
        sync(final.parent)


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents where they are missing, and syncs each new name."""
    for place in reversed([folder, *folder.parents]):
        if not place.is_dir():
            place.mkdir(exist_ok=True)
            sync(place.parent)


def sync_tree(folder: Path) -> None:
    """Syncs every file below `folder`, then every folder, `folder` last."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))


def sync(path: Path) -> None:
    """Writes to the disk what the kernel still buffers of a file or a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Removes the temporary files that killed writers left in `folder`.

    Only the process that holds the lock may call it.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


@contextmanager
def opened_below(place: Path) -> Iterator[Path]:
    """Opens a new folder below `place`, and removes it afterwards. Raises LakeError where the disk is full."""
    folder = place / uuid.uuid4().hex
    with full_disk_named(folder):
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def full_disk_named(place: Path) -> Iterator[None]:
    """Turns any error that a library raises on a full disk into one LakeError that names the folder."""
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        raise LakeError(
            f"the disk is full: writing to {place} (or to Spark's temporary files) failed. "
            "What was published before stays as it is; free space and run again"
        ) from error


def is_full(error: BaseException) -> bool:
    """Returns whether an error means a full disk, an exhausted quota or a file past its limit.

    C++ libraries and the JVM raise errors without a number, so their text is searched too.
    """
    return getattr(error, "errno", None) in _FULL or any(text in str(error) for text in _FULL_TEXTS)


MB = 1_000_000


def require_free_space(root: Path, needed: int, reserve_mb: float, what: str) -> None:
    """Raises LakeError where the file system of `root` has less than `needed` bytes plus the reserve free.

    `what` names the run in the message.
    """
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed + reserve_mb * MB:
        raise LakeError(
            f"{what} needs about {needed / MB:,.0f} MB, and {reserve_mb:,.0f} MB are to stay free "
            f"([disk] reserve_mb), but the disk of {root} has {free / MB:,.0f} MB left; nothing was begun: "
            "free some, or keep less ([retention])"
        )


def bytes_below(folder: Path) -> int:
    """Returns the bytes of all files below `folder`, 0 where there is no such folder."""
    return sum(os.lstat(Path(place, name)).st_size for place, _, names in os.walk(folder) for name in names)
