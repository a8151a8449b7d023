"""Stores what belongs to cases on disk, in buckets of whole cases, where it does not fit into memory."""

import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Generic, TypeVar

_BUCKETS = 64
Item = TypeVar("Item")


class CaseBuckets(Generic[Item]):
    """Stores items by their case, in files of `folder`; None is the system's temporary folder.

    The files have no name, so that data which is not masked yet is deleted however the run ends.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[int, IO[bytes]] = {}

    def add(self, items: Iterable[tuple[str, Item]]) -> None:
        """Adds pairs of a case id and an item of that case."""
        buckets: defaultdict[int, list[Item]] = defaultdict(list)
        for case_id, item in items:
            buckets[zlib.crc32(case_id.encode("utf-8", "surrogatepass")) % _BUCKETS].append(item)
        for number, bucket in buckets.items():
            if number not in self._files:
                self._files[number] = self._unnamed_file()
            pickle.dump(bucket, self._files[number], protocol=pickle.HIGHEST_PROTOCOL)

    def __bool__(self) -> bool:
        """Tells whether anything was added."""
        return bool(self._files)

    def buckets(self) -> Iterator[list[Item]]:
        """Yields the items of each bucket, which has all items of its cases, in the order in which they were added."""
        for number in sorted(self._files):
            file = self._files[number]
            file.seek(0)
            yield list(_read(file))

    def close(self) -> None:
        """Deletes all items."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def _unnamed_file(self) -> IO[bytes]:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFile(dir=self._folder)


def _read(file: IO[bytes]) -> Iterator[Any]:
    while True:
        try:
            yield from pickle.load(file)  # this run wrote it, into a file that no other process can open
        except EOFError:
            return
