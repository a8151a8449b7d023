"""Replaces the few files of a lake that are not immutable, with an entry in the list of their folder and a copy.

The entry is written first, and fits the old and the new file; then the copy; then the file; then the entry of the new
file alone. So a process that is killed at any moment leaves a file that is known to be sound.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake import file_lists
from opus_pipelines.lake.atomic_files import make_folder, sync
from opus_pipelines.lake.file_lists import FileEntry

_SMALL = 1 << 16  # bytes
REPAIR = "`opus verify` names all that is damaged, and `opus verify --repair` mends it"


def replace(staged: Path, final: Path, write: Callable[[Path], Any], copy: bool) -> None:
    """Replaces or adds a file; `write` writes the new content into the folder `staged`, which is not visible.

    With `copy`, a copy is kept in the folder `_copies` beside the file.
    """
    new = staged / final.name
    write(new)
    make_folder(final.parent)
    entries = file_lists.replacing(_entries(final.parent), final.name, final, new)
    _write_list(staged, final.parent, entries)
    if copy:
        spare = copy_of(final)
        make_folder(spare.parent)
        _show(staged, spare, lambda path: shutil.copy(new, path))
    sync(new)
    new.replace(final)
    sync(final.parent)
    _write_list(staged, final.parent, entries | {final.name: file_lists.entry_of(final)})


def withdraw(staged: Path, file: Path) -> None:
    """Removes a file, its copy and its entry in the list of its folder."""
    entries = _entries(file.parent)
    if entries.pop(file.name, None) is not None:
        _write_list(staged, file.parent, entries)
    for path in (file, copy_of(file)):
        path.unlink(missing_ok=True)


def require_sound(file: Path) -> None:
    """Raises LakeError where a file is not as it was written last, by the list of its folder.

    A small file is always hashed: one that was restored from a backup may have the size and an earlier time.
    """
    try:
        entry = (file_lists.entries_of(file.parent) or {}).get(file.name)
    except LakeError as error:
        raise LakeError(f"{error}; {REPAIR}") from None
    is_small = entry is not None and entry.bytes <= _SMALL
    since = None if entry is None or is_small else (file.parent / file_lists.NAME).stat().st_mtime_ns
    if entry and (reason := file_lists.damage_of(file, entry, since)) is not None:
        raise LakeError(f"{file} {reason}; {REPAIR}")


def copy_of(file: Path) -> Path:
    """Returns where the copy of a file lies."""
    return file.parent / file_lists.COPIES / file.name


def restored(staged: Path, file: Path) -> bool:
    """Puts the copy of a damaged file in its place, and tells whether there was one that fits the list."""
    entry, spare = _entries(file.parent).get(file.name), copy_of(file)
    if not spare.is_file() or (entry is not None and file_lists.damage_of(spare, entry, None) is not None):
        return False
    replace(staged, file, lambda path: shutil.copy(spare, path), copy=True)
    return True


def sound_pointer(file: Path) -> dict[str, Any] | None:
    """Returns the pointer of a contract, None where there is none, or where it is damaged.

    A pointer of an older version states no hash of its content, and is taken as it is where it names a result.
    """
    try:
        pointer = json.loads(file.read_bytes())
        if "sha256" in pointer:
            pointer = file_lists.opened(file)
        named = all(isinstance(pointer.get(name), str) for name in ("client", "contract", "result"))
        named = named and isinstance(pointer.get("snapshot", ""), str) and _lists_files(pointer)
        json.dumps(pointer, ensure_ascii=False).encode()  # half a surrogate can be written nowhere
    except (LakeError, OSError, ValueError, RecursionError, TypeError, AttributeError):
        return None
    return pointer if named else None


def _lists_files(pointer: Mapping[str, Any]) -> bool:
    """Tells whether the list of files in the pointer of a contract, if it has one, is such a list."""
    files = pointer.get("files", {})
    try:
        entries = {name: FileEntry(**entry) for name, entry in files.items()}
    except (TypeError, AttributeError):
        return False
    return all(file_lists.is_inside(name) and isinstance(entry.bytes, int) for name, entry in entries.items())


def json_text(value: Mapping[str, Any]) -> str:
    """Returns the text of a JSON file of the lake."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _entries(folder: Path) -> dict[str, FileEntry]:
    """Returns the list of a folder; of a damaged list nothing is known, and writing goes on."""
    try:
        return file_lists.entries_of(folder) or {}
    except LakeError:
        return {}


def _write_list(staged: Path, folder: Path, entries: Mapping[str, FileEntry]) -> None:
    try:
        whole = file_lists.is_complete(folder)
    except LakeError:
        whole = False
    text = file_lists.text_of(entries, whole)
    _show(staged, folder / file_lists.NAME, lambda path: path.write_text(text, "utf-8"))


def _show(staged: Path, final: Path, write: Callable[[Path], Any]) -> None:
    """Writes a file in the staging folder, and renames it durably to `final`."""
    temporary = staged / uuid.uuid4().hex
    write(temporary)
    sync(temporary)
    temporary.replace(final)
    sync(final.parent)
