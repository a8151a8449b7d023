"""Cases to Arrow, column by column and in batches: a list of dictionaries of a whole log would take gigabytes."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any

import pyarrow as pa

from opus_pipelines.history.content import with_hash
from opus_pipelines.history.records import Task
from opus_pipelines.schemas import IMPLEMENTATIONS, TASK_IMPLEMENTATION

BATCH_TASKS = 50_000
_TASK_NAMES = tuple(c.name for c in TASK_IMPLEMENTATION)
_TASK_TYPES = tuple(c.type for c in TASK_IMPLEMENTATION)
_values_of = attrgetter(*_TASK_NAMES)
_UNHASHED = pa.schema([field for field in IMPLEMENTATIONS.schema if field.name != "content_hash"])
_OWN = tuple(c.name for c in IMPLEMENTATIONS.columns if c.name not in ("tasks", "content_hash"))


class ImplementationBuilder:
    """Takes one implementation after the other, or whole columns of them, and hands on record batches of the dataset's schema.

    Every batch of every format is finished here: `redact` masks what is private in it, then `content_hash` is made.
    """

    def __init__(self, redact: Callable[[pa.RecordBatch], pa.RecordBatch], hand_on: Callable[[pa.RecordBatch], None]) -> None:
        self._redact, self._hand_on = redact, hand_on
        self._rows: list[tuple[Any, ...]] = []
        self._tasks: list[tuple[Any, ...]] = []
        self._offsets: list[int] = [0]

    def add(self, row: dict[str, Any], tasks: list[Task]) -> None:
        """One row without `tasks` and `content_hash`, which are made here."""
        own = tuple(row[name] for name in _OWN)
        values = [_values_of(task) for task in tasks]
        self._rows.append(own)
        self._tasks.extend(values)
        self._offsets.append(len(self._tasks))
        if len(self._tasks) >= BATCH_TASKS or len(self._rows) >= BATCH_TASKS:
            self.flush()

    def flush(self) -> None:
        """Turn what is pending into a batch."""
        if not self._rows:
            return
        values = dict(zip(_OWN, zip(*self._rows, strict=True), strict=True))
        columns = {c.name: _array(values[c.name], c.type) for c in IMPLEMENTATIONS.columns if c.name in values}
        columns["tasks"] = self._task_lists()
        self._rows, self._tasks, self._offsets = [], [], [0]
        self._finish(columns)

    def block(self, columns: Mapping[str, pa.Array]) -> None:
        """Rows as columns, all but `content_hash`; what is pending comes first."""
        self.flush()
        self._finish(columns)

    def _finish(self, columns: Mapping[str, pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays([columns[name] for name in _UNHASHED.names], schema=_UNHASHED)
        self._hand_on(with_hash(self._redact(batch), IMPLEMENTATIONS.schema))

    def _task_lists(self) -> pa.ListArray:
        columns: Iterable[tuple[Any, ...]] = zip(*self._tasks, strict=True) if self._tasks else [()] * len(_TASK_NAMES)
        arrays = [_array(values, kind) for values, kind in zip(columns, _TASK_TYPES, strict=True)]
        structs = pa.StructArray.from_arrays(arrays, fields=list(IMPLEMENTATIONS.schema.field("tasks").type.value_type))
        return pa.ListArray.from_arrays(pa.array(self._offsets, pa.int32()), structs, type=IMPLEMENTATIONS.schema.field("tasks").type)


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        offsets = [0]
        for value in values:
            offsets.append(offsets[-1] + len(value))
        keys = pa.array(list(chain.from_iterable(values)), pa.string())
        items = pa.array(list(chain.from_iterable(v.values() for v in values)), pa.string())
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
    return pa.array(values, kind)
