"""Files and folders that become visible whole: on the disk before they can be seen, and gone in one step when they go.

A rename is atomic, but not durable: after a power cut a name may point to a file whose bytes never arrived. So every
file and folder is synced before the rename that shows it, and the folder that holds the new name after it.
"""

import errno
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_TEXTS = tuple(os.strerror(code) for code in sorted(_FULL))


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write(temporary)` make the file, then rename it over `path`; durable before it is visible. LakeError where
    the disk is full.
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
    """Replace a JSON file in one atomic step."""
    write_atomically(path, lambda p: p.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8"))


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON file's object, None where there is no file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise LakeError(f"{path} is not JSON ({error}); was it edited by hand?") from None


def move_into_place(staged: Path, final: Path) -> None:
    """Rename a finished folder to where it is read, its files and folders synced first. `final` must not exist."""
    with full_disk_named(final.parent):
        sync_tree(staged)
        make_folder(final.parent)
        staged.rename(final)
        sync(final.parent)


def make_folder(folder: Path) -> None:
    """Like mkdir -p, each new name synced."""
    for place in reversed([folder, *folder.parents]):
        if not place.is_dir():
            place.mkdir(exist_ok=True)
            sync(place.parent)


def sync_tree(folder: Path) -> None:
    """Every file below `folder`, then every folder, `folder` last."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))


def sync(path: Path) -> None:
    """Have what the kernel holds of a file or a folder on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the temporary files that killed writers left in `folder`. Only a lake's one writer may."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


@contextmanager
def full_disk_named(place: Path) -> Iterator[None]:
    """Turns whatever a library raises on a full disk into one LakeError for a person."""
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        raise LakeError(
            f"the disk is full: writing to {place} (or to Spark's temporary files) failed. What was published before stays as it is; "
            "free space and run again"
        ) from error


def is_full(error: BaseException) -> bool:
    """Is this a full disk, an exhausted quota or a file past its limit? C++ and the JVM say it in words only."""
    return getattr(error, "errno", None) in _FULL or any(text in str(error) for text in _FULL_TEXTS)
