"""Events as columns of numbers, in parts of whole cases that wait on disk once they are many."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from opus_pipelines.history.discovery.case_keys import Keys

_PARTS = 256  # by the first byte of the number of the case
EVENTS_IN_MEMORY = 1 << 28  # bytes of events that are kept before they are stored on disk
_AT_ONCE = 1 << 17  # events of neighbouring parts that are handed out together: they fit into a processor's cache
EventColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Kept:
    """Events sorted by part: the columns, and `bounds` [PARTS + 1], where each part begins."""

    bounds: npt.NDArray[np.int64]
    columns: EventColumns

    def piece(self, first: int, end: int) -> EventColumns:
        """Returns the events of the parts from `first` to before `end`."""
        return {name: column[self.bounds[first] : self.bounds[end]] for name, column in self.columns.items()}


@dataclass(frozen=True)
class _Stored:
    """The same on disk: `places` are the place of each column in the file, and its type."""

    bounds: npt.NDArray[np.int64]
    places: Mapping[str, tuple[int, np.dtype[Any]]]
    file: int

    def piece(self, first: int, end: int) -> EventColumns:
        """Returns the events of the parts from `first` to before `end`."""
        begin, rows = int(self.bounds[first]), int(self.bounds[end] - self.bounds[first])
        return {
            name: np.frombuffer(os.pread(self.file, rows * kind.itemsize, place + begin * kind.itemsize), kind)
            for name, (place, kind) in self.places.items()
        }


class EventParts:
    """Keeps events in the order in which they are added. `folder` is for those beyond `in_memory` bytes."""

    def __init__(self, folder: Path | None, in_memory: int = EVENTS_IN_MEMORY) -> None:
        self._folder, self._limit = folder, in_memory
        self._kept: list[_Kept] = []
        self._stored: list[_Stored] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def add(self, case: Keys, columns: EventColumns) -> None:
        """Adds events with the numbers of their cases."""
        part = (case >> np.uint64(56)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        own = {name: column.take(order) for name, column in ({"case": case} | columns).items()}
        self._kept.append(_Kept(_bounds(np.bincount(part, minlength=_PARTS)), own))
        self._bytes += sum(column.nbytes for column in own.values())
        if self._bytes > self._limit:
            self._store()

    def parts(self) -> Iterator[EventColumns]:
        """Yields the events of whole cases, with the column `case`, those of a case in the order in which they came."""
        batches: list[_Stored | _Kept] = [*self._stored, *self._kept]
        groups = min(_PARTS, max(1, sum(int(batch.bounds[-1]) for batch in batches) // _AT_ONCE))
        edges = [_PARTS * group // groups for group in range(groups + 1)]
        try:
            for first, end in pairwise(edges):
                pieces = [batch.piece(first, end) for batch in batches]
                pieces = [piece for piece in pieces if len(piece["case"])]
                if pieces:
                    yield {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        finally:
            if self._file is not None:
                self._file.close()

    def _store(self) -> None:
        """Moves what is kept to the disk, with all events of a part side by side."""
        if self._file is None:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
            self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed behind the last part
        places = {}
        for name, column in self._kept[0].columns.items():
            places[name] = (self._file.tell(), column.dtype)
            for number in range(_PARTS):
                for batch in self._kept:
                    self._file.write(batch.columns[name][batch.bounds[number] : batch.bounds[number + 1]].data)
        self._file.flush()
        bounds: npt.NDArray[np.int64] = np.sum([batch.bounds for batch in self._kept], axis=0)
        self._stored.append(_Stored(bounds, places, self._file.fileno()))
        self._kept, self._bytes = [], 0


def _bounds(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])
