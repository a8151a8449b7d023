"""Lists the data files of a source and opens them. No file outside the source's folder is read."""

import errno
import gzip
import io
import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings_files import hard_link_reason
from opus_pipelines.history.records.source_settings import FILE_NAME

BUFFER = 1 << 18
BOMB_BYTES, BOMB_RATIO = 1 << 26, 200  # real logs shrink 20 to 100 times
# a row of four letters takes half a kilobyte of memory; real logs have a line or two a byte
BOMB_LINES, LINES_A_BYTE = 2_000_000, 5
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NOT_DATA = (".md", ".rst", ".bak", ".tmp", "~")
_NOT_DATA_NAMES = frozenset({FILE_NAME, "readme", "readme.txt", "license", "license.txt", "thumbs.db", "desktop.ini"})


def data_files(folder: Path) -> Iterator[Path]:
    """Yields every data file at any depth, without notes and hidden files.

    The order is the natural order of the paths: numbers count as numbers, so that export_9 comes before export_10. A
    later file corrects an earlier one. A folder that cannot be listed is yielded itself: what is in it is not absent.
    """
    files: list[Path] = []
    unlisted: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=unlisted.append):
        files += [Path(root, name) for name in folders if _is_link(Path(root, name))]
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(root, name) for name in names if not name.startswith(".") and not _is_note(name.lower())]
    files += [Path(os.fsdecode(error.filename)) for error in unlisted if error.filename]
    yield from sorted(files, key=lambda p: natural_order(os.fsencode(p.relative_to(folder).as_posix())))


def folder_values(path: Path) -> dict[str, str]:
    """Returns the values that the folders of a path state in the manner of Hive: `client=Acme/day=2024-03-01/x.csv`."""
    pairs = (part.partition("=") for part in path.parts[:-1])
    return {key: unquote(value) for key, _, value in pairs if key and value not in ("", _NO_VALUE)}


def placed(file: Path) -> Path:
    """Returns a file's name with those folders around it that state a value, as it must lie in a source."""
    around = [*takewhile(lambda folder: "=" in folder.name.strip("="), file.absolute().parents)]
    return file.absolute().relative_to(around[-1].parent) if around else Path(file.name)


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # a path that is too long, for one: listing it fails, too, and names it
        return False


def natural_order(path: bytes) -> tuple[tuple[tuple[int, int, bytes], ...], bytes]:
    """Returns a sort key that compares runs of digits as numbers and all other characters by their bytes."""
    parts = tuple((0, int(part), b"") if part.isdigit() else (1, 0, part) for part in re.split(rb"(\d+)", path) if part)
    return parts, path


def _is_note(name: str) -> bool:
    return name in _NOT_DATA_NAMES or name.endswith(_NOT_DATA)


def unsafe_path_reason(path: Path, folder: Path, hard_links: bool = False) -> str | None:
    """Returns why a path must not be read, or None if it may be.

    A path is refused if it leads out of its source's folder, is not a regular file, or is a hard link. `hard_links`:
    they are allowed, because this program made them.
    """
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return "its path is too long to be read; move it up"
        return "it is a link to nothing; remove it or put the file itself there"
    if not real.is_relative_to(folder.resolve()):
        return "it is a link out of the source's folder; put the file itself there"
    if real.is_dir() and not path.is_symlink():
        return "it is a folder that cannot be listed; give the right to read it"
    if not real.is_file():
        return "it is not a plain file" + ("; link files, not folders" if real.is_dir() else "")
    return None if hard_links else hard_link_reason(real.stat())


def printable(path: Path) -> str:
    """Converts a path to text that can be stored in a table and printed on one line."""
    text = os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def open_data(path: Path) -> BinaryIO:
    """Opens the file, decompressed if its name ends in .gz. Raises InputError if it is empty."""
    packed = path.name.lower().endswith(".gz")
    file = io.BufferedReader(_Unpacked(path) if packed else io.FileIO(path), BUFFER)
    try:
        if not file.peek(1):
            raise InputError("the file is empty")
    except BaseException:
        file.close()
        raise
    return file


class _Unpacked(io.RawIOBase):
    """The content of a gzip file. Reading raises InputError if it expands to more than any real log does."""

    def __init__(self, path: Path) -> None:
        self._gzip = gzip.GzipFile(path, "rb")
        size = path.stat().st_size
        self._limit, self._most_lines = max(BOMB_BYTES, BOMB_RATIO * size), max(BOMB_LINES, LINES_A_BYTE * size)
        self._read = self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        size = self._gzip.readinto(buffer)
        self._read += size
        self._lines += bytes(buffer[:size]).count(b"\n")
        if self._lines > self._most_lines:
            raise InputError(
                f"it unpacks to more than {self._most_lines:,} lines, as no log of its size does; unpack it if "
                "it is one"
            )
        if self._read > self._limit:
            raise InputError(
                f"it unpacks to more than {BOMB_RATIO} times its size, as no log does; unpack it by hand if it is one"
            )
        return size

    def fileno(self) -> int:
        if self._gzip.fileobj is None:
            raise ValueError("the file is closed")
        return self._gzip.fileno()

    def close(self) -> None:
        self._gzip.close()
        super().close()
