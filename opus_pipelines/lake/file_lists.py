"""Lists the files of a published folder with their sizes and hashes, and finds by the list which of them are damaged.

The list is `_files.json` in the folder itself. It carries a hash of its own, so that a damaged list is found, too. A
quick check compares the sizes, and the hash of each file that was modified after the list was written; a thorough
check hashes every file. While a file is replaced, the list has the hash of its earlier content besides, so a process
that is killed in between leaves a file that fits its list.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError

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
