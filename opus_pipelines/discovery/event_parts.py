"""Events as columns of numbers, in parts of whole cases that wait on disk once they are many."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from opus_pipelines.discovery.case_keys import Keys

PARTS = 64
IN_MEMORY = 1 << 28  # bytes of events that are kept before they are stored on disk
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - PARTS.bit_length() + 1)
Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Batch:
    """Events sorted by part: `bounds` [PARTS + 1], and the columns or their places in the file."""

    bounds: npt.NDArray[np.int64]
    columns: Columns
    places: Mapping[str, tuple[int, np.dtype[Any]]]


class EventParts:
    """Keeps events in the order in which they are added. `folder` is for those beyond `in_memory` bytes."""

    def __init__(self, folder: Path | None, in_memory: int = IN_MEMORY) -> None:
        self._folder, self._limit = folder, in_memory
        self._batches: list[_Batch] = []
        self._bytes = self._end = 0
        self._file: IO[bytes] | None = None

    def add(self, case: Keys, columns: Columns) -> None:
        """Adds events with the numbers of their cases."""
        part = ((case * _MIX) >> _SHIFT).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=PARTS))])
        own = {name: column[order] for name, column in ({"case": case} | columns).items()}
        self._batches.append(_Batch(bounds, own, {}))
        self._bytes += sum(column.nbytes for column in own.values())
        if self._bytes > self._limit:
            self._store()

    def parts(self) -> Iterator[Columns]:
        """Yields the events of each part that has any, with the column `case`, in the order in which they came."""
        try:
            for number in range(PARTS):
                pieces = [self._piece(batch, number) for batch in self._batches]
                pieces = [piece for piece in pieces if len(piece["case"])]
                if pieces:
                    yield {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        finally:
            if self._file is not None:
                self._file.close()

    def _store(self) -> None:
        if self._file is None:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
            self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed behind the last part
        for number, batch in enumerate(self._batches):
            if batch.columns:
                places = {}
                for name, column in batch.columns.items():
                    places[name] = (self._end, column.dtype)
                    self._file.write(column.data)
                    self._end += column.nbytes
                self._batches[number] = _Batch(batch.bounds, {}, places)
        self._file.flush()
        self._bytes = 0

    def _piece(self, batch: _Batch, number: int) -> Columns:
        begin, end = int(batch.bounds[number]), int(batch.bounds[number + 1])
        if batch.columns or self._file is None:
            return {name: column[begin:end] for name, column in batch.columns.items()}
        file, read = self._file.fileno(), {}
        for name, (place, dtype) in batch.places.items():
            size = dtype.itemsize
            read[name] = np.frombuffer(os.pread(file, (end - begin) * size, place + begin * size), dtype)
        return read
