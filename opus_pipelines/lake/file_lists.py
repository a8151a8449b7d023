"""Lists the files of a published folder with their sizes and hashes, and finds by the list which of them are damaged.

The list is `_files.json` in the folder itself. It carries a hash of its own, so that a damaged list is found, too. A
quick check compares the sizes, and the hash of each file that was modified after the list was written; a thorough
check hashes every file. While a file is replaced, the list has the hash of its earlier content besides, so a process
that is killed in between leaves a file that fits its list.

Replaces the few files of a lake that are not immutable, with an entry in the list of their folder and a copy. The
entry is written first, and fits the old and the new file; then the copy; then the file; then the entry of the new file
alone. So a process that is killed at any moment leaves a file that is known to be sound.
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.atomic_files import make_folder, sync

NAME = "_files.json"
COPIES = "_copies"  # a folder of copies beside files that nothing else could give back
_ABSENT = "absent"  # as the hash of the earlier content: there was no file


@dataclass(frozen=True)
class FileEntry:
    """Size in bytes and SHA-256 of a file; `before` is the hash of a content that is being replaced."""

    bytes: int
    sha256: str
    before: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the entry as it stands in a list."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Damage:
    """A published file that is not as it was published, and in what it differs.

    `is_folder`: a whole folder is missing, and `file` is its path.
    """

    file: Path
    reason: str
    is_folder: bool = False

    def __str__(self) -> str:
        return f"{self.file} {self.reason}"


Entries = Mapping[str, FileEntry]


def entry_of(file: Path, before: str | None = None) -> FileEntry:
    """Returns the entry of a file as it is now."""
    return FileEntry(file.stat().st_size, hash_of(file), before)


def hash_of(file: Path) -> str:
    """Returns the SHA-256 of a file's content."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def list_files(folder: Path) -> None:
    """Writes the list of all files below a folder, which is not visible yet, or which no other process writes to."""
    entries = {path.relative_to(folder).as_posix(): entry_of(path) for path in _files_below(folder)}
    (folder / NAME).write_text(text_of(entries, is_complete=True), "utf-8")


def text_of(entries: Entries, is_complete: bool) -> str:
    """Returns the text of a list, with its own hash. `is_complete`: the folder has no other files than these."""
    files = {name: entry.as_json() for name, entry in sorted(entries.items())}
    return sealed_text({"files": files, "is_complete": is_complete})


def sealed_text(value: Mapping[str, Any]) -> str:
    """Returns a JSON object with the hash of its content as `sha256`, by which `opened` finds damage."""
    return json.dumps({**value, "sha256": _content_hash(value)}, indent=2, sort_keys=True) + "\n"


def opened(file: Path) -> dict[str, Any]:
    """Returns the object that `sealed_text` wrote, without its hash.

    Raises LakeError where the file is damaged, and FileNotFoundError where there is none.
    """
    try:
        value = json.loads(file.read_bytes())
        content = {name: part for name, part in value.items() if name != "sha256"}
        sound = value["sha256"] == _content_hash(content)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        sound = False
    if not sound:
        raise LakeError(f"{file} is damaged: its content does not have the hash that it states")
    return content


def entries_of(folder: Path) -> dict[str, FileEntry] | None:
    """Returns the list of a folder, None where it has none. Raises LakeError where the list is damaged."""
    try:
        found = opened(folder / NAME)["files"]
        return {name: FileEntry(**entry) for name, entry in found.items()}
    except FileNotFoundError:
        return None
    except (LookupError, TypeError, AttributeError):
        raise LakeError(f"{folder / NAME} is damaged: it is no list of files") from None


def is_complete(folder: Path) -> bool:
    """Tells whether the list of a folder has all its files; lists of folders with replaced files have these alone.

    Raises LakeError where the list is damaged.
    """
    return (folder / NAME).is_file() and opened(folder / NAME).get("is_complete") is True


def damage_in(folder: Path, thorough: bool = False) -> Iterator[Damage]:
    """Yields what is damaged in a published folder.

    A thorough check hashes every file, and finds files that a complete list does not have.
    """
    if not folder.is_dir():
        yield Damage(folder, "is missing", is_folder=True)
        return
    try:
        entries = entries_of(folder)
    except LakeError:
        yield Damage(folder / NAME, "is damaged")
        return
    if entries is None:
        yield Damage(folder / NAME, "is missing")
        return
    since = (folder / NAME).stat().st_mtime_ns
    for name, entry in entries.items():
        if (reason := damage_of(folder / name, entry, None if thorough else since)) is not None:
            yield Damage(folder / name, reason)
    if thorough and is_complete(folder):
        known = {folder / name for name in entries}
        strange = (path for path in _files_below(folder) if path not in known)
        yield from (Damage(path, "is not in the list of its folder") for path in strange)


def damage_of(file: Path, entry: FileEntry, since_ns: int | None) -> str | None:
    """Returns in what a file differs from its entry, None where it does not.

    `since_ns`: a file that was not modified after this time (in nanoseconds) is not hashed; None hashes every file.
    """
    try:
        facts = os.lstat(file)
    except FileNotFoundError:
        return None if entry.before == _ABSENT else "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if since_ns is not None and facts.st_size == entry.bytes and facts.st_mtime_ns <= since_ns:
        return None
    if facts.st_size != entry.bytes and entry.before is None:
        return f"has {facts.st_size:,} bytes instead of {entry.bytes:,}"
    try:
        found = hash_of(file)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if found in (entry.sha256, entry.before) else "has other content than was published"


def replacing(entries: Entries | None, name: str, current: Path, staged: Path) -> dict[str, FileEntry]:
    """Returns the entries with which `staged` may replace `current` at any moment."""
    before = hash_of(current) if current.is_file() else _ABSENT
    return {**(entries or {}), name: entry_of(staged, before)}


def is_inside(place: str) -> bool:
    """Tells whether a path that a file of the lake states stays in the lake."""
    return not place.startswith("/") and ".." not in place.split("/") and "\0" not in place


def freshen(folder: Path) -> None:
    """Marks the list of a folder as newer than its files, after a thorough check, so that quick checks stay quick."""
    if (folder / NAME).is_file():
        os.utime(folder / NAME)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder and its subfolders, without lists, copies and temporary files."""
    for path in sorted(folder.rglob("*")):
        names = path.relative_to(folder).parts
        if path.is_file() and NAME not in names and COPIES not in names and not path.name.startswith("."):
            yield path


def _content_hash(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_SMALL = 1 << 16  # bytes
REPAIR = "`opus verify` names all that is damaged, and `opus verify --repair` mends it"


def replace(staged: Path, final: Path, write: Callable[[Path], Any], copy: bool) -> None:
    """Replaces or adds a file; `write` writes the new content into the folder `staged`, which is not visible.

    With `copy`, a copy is kept in the folder `_copies` beside the file.
    """
    new = staged / final.name
    write(new)
    make_folder(final.parent)
    entries = replacing(_entries(final.parent), final.name, final, new)
    _write_list(staged, final.parent, entries)
    if copy:
        spare = copy_of(final)
        make_folder(spare.parent)
        _show(staged, spare, lambda path: shutil.copy(new, path))
    sync(new)
    new.replace(final)
    sync(final.parent)
    _write_list(staged, final.parent, entries | {final.name: entry_of(final)})


def withdraw(staged: Path, file: Path) -> None:
    """Removes a file, its copy and its entry in the list of its folder."""
    entries = _entries(file.parent)
    if entries.pop(file.name, None) is not None:
        _write_list(staged, file.parent, entries)
    for path in (file, copy_of(file)):
        path.unlink(missing_ok=True)


def require_sound_file(file: Path) -> None:
    """Raises LakeError where a file is not as it was written last, by the list of its folder.

    A small file is always hashed: one that was restored from a backup may have the size and an earlier time.
    """
    try:
        entry = (entries_of(file.parent) or {}).get(file.name)
    except LakeError as error:
        raise LakeError(f"{error}; {REPAIR}") from None
    is_small = entry is not None and entry.bytes <= _SMALL
    since = None if entry is None or is_small else (file.parent / NAME).stat().st_mtime_ns
    if entry and (reason := damage_of(file, entry, since)) is not None:
        raise LakeError(f"{file} {reason}; {REPAIR}")


def copy_of(file: Path) -> Path:
    """Returns where the copy of a file lies."""
    return file.parent / COPIES / file.name


def restored(staged: Path, file: Path) -> bool:
    """Puts the copy of a damaged file in its place, and tells whether there was one that fits the list."""
    entry, spare = _entries(file.parent).get(file.name), copy_of(file)
    if not spare.is_file() or (entry is not None and damage_of(spare, entry, None) is not None):
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
            pointer = opened(file)
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
    return all(is_inside(name) and isinstance(entry.bytes, int) for name, entry in entries.items())


def json_text(value: Mapping[str, Any]) -> str:
    """Returns the text of a JSON file of the lake."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _entries(folder: Path) -> dict[str, FileEntry]:
    """Returns the list of a folder; of a damaged list nothing is known, and writing goes on."""
    try:
        return entries_of(folder) or {}
    except LakeError:
        return {}


def _write_list(staged: Path, folder: Path, entries: Mapping[str, FileEntry]) -> None:
    try:
        whole = is_complete(folder)
    except LakeError:
        whole = False
    text = text_of(entries, whole)
    _show(staged, folder / NAME, lambda path: path.write_text(text, "utf-8"))


def _show(staged: Path, final: Path, write: Callable[[Path], Any]) -> None:
    """Writes a file in the staging folder, and renames it durably to `final`."""
    temporary = staged / uuid.uuid4().hex
    write(temporary)
    sync(temporary)
    temporary.replace(final)
    sync(final.parent)
