"""Converts between NumPy and Arrow arrays through their buffers, and builds batches of implementations.

Arrow's own conversion from NumPy imports pandas, which takes a second or two. Batches keep memory small: the
dictionaries of a whole log would take gigabytes.

`content_hash` consists of two 64-bit hashes, with different seeds, of all other columns, written as 32 hex digits.
Equal rows have equal hashes whichever batch they are in. The hash detects changes; it does not protect against forgery.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.schemas import IMPLEMENTATIONS, TASK_IMPLEMENTATION
from opus_pipelines.history.records.raw import Task

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """Returns Arrow's validity bits, or None if all values are valid."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def array(values: npt.NDArray[Any], kind: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """Converts numbers of the width of `kind` to an Arrow array. Values that are not `valid` become NULL."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))])


def indices(places: npt.NDArray[Any]) -> pa.Array:
    """Converts positions to indices for Arrow's `take`. Negative positions become NULL."""
    return array(places.astype(np.int32, copy=False), pa.int32(), places >= 0)


def booleans(values: Bools, valid: Bools | None = None) -> pa.Array:
    """Converts truth values to an Arrow array. Values that are not `valid` become NULL."""
    return pa.Array.from_buffers(
        pa.bool_(), len(values), [bitmap(valid), pa.py_buffer(np.packbits(values, bitorder="little"))]
    )


def booleans_of(truths: pa.Array) -> Bools:
    """Returns truth values as NumPy's. NULL is false."""
    if isinstance(truths, pa.ChunkedArray):
        truths = truths.combine_chunks()
    found = numbers(truths.cast(pa.uint8()), np.uint8).astype(bool)
    valid = validity(truths)
    return found if valid is None else found & valid


def numbers(values: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Views an Arrow array of fixed width as NumPy numbers. The number at a NULL position is arbitrary."""
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), dtype)
    return np.frombuffer(buffer, dtype, len(values), values.offset * np.dtype(dtype).itemsize)


def numbers_or(values: pa.Array, dtype: npt.DTypeLike, missing: int) -> npt.NDArray[Any]:
    """Returns an Arrow array of fixed width as NumPy numbers, with `missing` where it has NULL.

    `fill_null` with a value of Python imports pandas.
    """
    found, valid = numbers(values, dtype), validity(values)
    return found if valid is None else np.where(valid, found, np.asarray(missing, dtype))


def text_offsets(texts: pa.Array) -> Ints:
    """Returns where each text begins in the bytes of all, and where the last one ends."""
    return np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)


def validity(values: pa.Array) -> Bools | None:
    """Returns which values are not NULL, or None if no value is NULL."""
    if not values.null_count:
        return None
    bits = np.frombuffer(values.buffers()[0], np.uint8)
    return np.unpackbits(bits, bitorder="little", count=values.offset + len(values))[values.offset :].astype(bool)


def strings(values: Sequence[str | None]) -> pa.Array:
    """Converts texts to an Arrow array. None becomes NULL."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    valid = np.array([value is not None for value in values], bool)
    return pa.Array.from_buffers(
        pa.string(), len(values), [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def typed(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Converts values to an Arrow array of type `kind`. None becomes NULL."""
    if pa.types.is_string(kind):
        return strings(values)
    if pa.types.is_nested(kind):
        return pa.array(values, kind) if len(values) else pa.nulls(0, kind)
    valid = np.array([value is not None for value in values], bool)
    plain = [value or 0 for value in values]
    return (
        booleans(np.array(plain, bool), valid)
        if pa.types.is_boolean(kind)
        else array(np.array(plain, _dtype(kind)), kind, valid)
    )


def repeated(value: Any, kind: pa.DataType, length: int) -> pa.Array:
    """Returns an array of `length` times the same value. None gives NULLs."""
    if value is None:
        return pa.nulls(length, kind)
    if not pa.types.is_string(kind):
        return array(np.full(length, value, _dtype(kind)), kind)
    text = str(value).encode()
    offsets = np.arange(length + 1, dtype=np.int32) * np.int32(len(text))
    return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(offsets), pa.py_buffer(text * length)])


def _dtype(kind: pa.DataType) -> str:
    return f"{'f' if pa.types.is_floating(kind) else 'i'}{kind.bit_width // 8}"


def consecutive(lengths: np.ndarray, stated: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Returns the numbers of the earlier and of the later step of each pair.

    `lengths` [cases] are the numbers of steps. `stated` [steps, one case after the other] are lists of places in the
    step's own case: the steps directly before it. NULL stands for the step in front of it. A place outside of the case
    is left out, and the same place counts once.
    """
    case = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    position = np.arange(len(case)) - first[case]
    after = np.flatnonzero(np.asarray(pc.is_null(stated)) & (position > 0))
    before = after - 1
    places = pc.list_flatten(stated)
    if len(places):
        owner = pc.list_parent_indices(stated).to_numpy()
        known = np.asarray(pc.is_valid(places))
        place, owner = pc.fill_null(places, -1).to_numpy()[known].astype(np.int64), owner[known]
        inside = (place >= 0) & (place < lengths[case[owner]])
        place, owner = place[inside], owner[inside]
        named = distinct(owner * np.int64(len(case)) + first[case[owner]] + place)
        before = np.concatenate([before, named % len(case)])
        after = np.concatenate([after, named // len(case)])
    return before, after


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of each value among the distinct ones in ascending order, and a place of each distinct one."""
    order = np.argsort(values)
    begins = begins_anew(values[order])
    number = np.empty(len(values), np.int64)
    number[order] = np.cumsum(begins) - 1
    return number, order[begins]


def packed(*parts: tuple[np.ndarray, int]) -> Longs:
    """Returns one whole number for each combination of codes; the codes of a part are 0 to its size - 1.

    `numpy.unravel_index` of the sizes gives the codes back. Raises OverflowError where 64 bits do not hold all
    combinations.
    """
    whole = math.prod(max(1, size) for _, size in parts)
    if whole > np.iinfo(np.int64).max:
        sizes = " x ".join(f"{size:,}" for _, size in parts)
        raise OverflowError(f"{sizes} combinations do not fit into a number of 64 bits")
    number = np.zeros(len(parts[0][0]), np.int64)
    for codes, size in parts:
        number = number * max(1, size) + codes
    return number


def distinct(values: np.ndarray) -> np.ndarray:
    """Returns the distinct values of an array of whole numbers, in ascending order."""
    ordered = np.sort(values)
    return ordered[begins_anew(ordered)]


def distinct_counts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct values of an array of whole numbers, in ascending order, and how often each occurs."""
    ordered = np.sort(values)
    first = np.flatnonzero(begins_anew(ordered))
    return ordered[first], np.diff(np.append(first, len(ordered)))


def begins_anew(ordered: np.ndarray) -> np.ndarray:
    """Returns for each of these ordered values whether it differs from the one before it; the first one does."""
    begins = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


Hashes = npt.NDArray[np.uint64]  # a row a seed
_SEEDS = np.array([[0x243F6A8885A308D3], [0x13198A2E03707344]], np.uint64)
_STEP, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0xA4093822299F31D0)
_SOME = 512  # texts that tell whether a column has few different ones
_LONG = 256  # bytes from which a text is hashed by itself


def with_hash(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Appends the last column of `schema`, the content hash, to a batch that has all other columns."""
    return pa.RecordBatch.from_arrays([*batch.columns, content_hashes(batch)], schema=schema)


def content_hashes(batch: pa.RecordBatch) -> pa.Array:
    """Computes the hash of every row, as 32 hex digits."""
    total = _all(batch.columns, batch.num_rows)
    digits = np.ascontiguousarray(total.T).astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, 32 * (batch.num_rows + 1), 32, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), batch.num_rows, [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


def mix_bits(values: Hashes) -> Hashes:
    """Mixes the bits of 64-bit values with the finaliser of SplitMix64, so that every bit depends on every bit."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def _all(columns: list[pa.Array], rows: int) -> Hashes:
    total = np.repeat(_SEEDS, rows, axis=1)
    for column in columns:
        total = mix_bits(total * _STEP + _column_hashes(column))
    return total


def _column_hashes(column: pa.Array) -> Hashes:
    """Computes the hashes of a column's values."""
    if column.null_count == len(column):
        return np.broadcast_to(_NULL, (2, len(column)))
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        hashes = _of_lists(column)
    elif pa.types.is_struct(kind):
        hashes = _all(column.flatten(), len(column))
    elif pa.types.is_string(kind):
        hashes = text_hashes(column) if _is_mostly_distinct(column) else _of_few(column)
    else:
        hashes = mix_bits(_numbers(column) + _SEEDS)
    valid = validity(column)
    return hashes if valid is None else np.where(valid, hashes, _NULL)


def _numbers(column: pa.Array) -> npt.NDArray[np.uint64]:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        return (numbers(column, np.float64) + 0.0).view(np.uint64)  # one zero, not two
    width = column.type.bit_width // 8
    return numbers(column, np.dtype(f"i{width}")).astype(np.int64).view(np.uint64)


def _of_lists(column: pa.Array) -> Hashes:
    offsets = numbers(column.offsets, np.int32)
    first, last = int(offsets[0]), int(offsets[-1])
    if pa.types.is_map(column.type):
        elements = _all([column.keys.slice(first, last - first), column.items.slice(first, last - first)], last - first)
    else:
        elements = _column_hashes(column.values.slice(first, last - first))
    lengths = np.diff(offsets)
    places = np.arange(last - first) - np.repeat(offsets[:-1] - first, lengths)
    return mix_bits(
        _sums(mix_bits(elements + places.astype(np.uint64) * _STEP), lengths) + lengths.astype(np.uint64) + _SEEDS
    )


def _sums(elements: Hashes, lengths: Ints) -> Hashes:
    """Sums consecutive runs of the given lengths, modulo 2^64."""
    running = np.zeros((2, elements.shape[1] + 1), np.uint64)
    np.cumsum(elements, axis=1, out=running[:, 1:])
    ends = np.concatenate(([0], np.cumsum(lengths)))
    return running[:, ends[1:]] - running[:, ends[:-1]]


def _is_mostly_distinct(texts: pa.Array) -> bool:
    """Tells whether the texts are so different that hashing each text costs less than hashing the distinct ones."""
    some = texts.slice(0, _SOME)
    return len(some) < _SOME or 2 * len(some.dictionary_encode().dictionary) > _SOME


def _of_few(texts: pa.Array) -> Hashes:
    coded = texts.dictionary_encode()
    codes = numbers(coded.indices, np.int32)
    valid = validity(coded.indices)
    return text_hashes(coded.dictionary)[:, codes if valid is None else np.where(valid, codes, 0)]


def text_hashes(column: pa.Array) -> Hashes:
    """Computes the two hashes of every text. That of NULL is arbitrary."""
    offsets = text_offsets(column)
    lengths = np.diff(offsets)
    content = column.buffers()[2]
    data = (content.to_pybytes() if content is not None else b"") + bytes(8)
    words = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    total = mix_bits(lengths.astype(np.uint64) * _STEP + _SEEDS)
    for rows, starts, rest in _eight_byte_steps(offsets[:-1], np.where(lengths > _LONG, 0, lengths)):
        chosen = words[starts] & _MASKS[np.minimum(rest, 8)]
        total[:, rows] = mix_bits(total[:, rows] * _STEP + chosen)
    for row in np.flatnonzero(lengths > _LONG):
        hashed = hashlib.sha256(data[offsets[row] : offsets[row + 1]]).digest()
        total[:, row] = np.frombuffer(hashed[:16], "<u8")
    return total


_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def _eight_byte_steps(starts: Ints, rest: Ints) -> Iterator[tuple[Longs, Ints, Ints]]:
    """Advances all texts by eight bytes at a time.

    Each step yields which texts have bytes left, where they continue, and how many bytes are left.
    """
    rows = np.flatnonzero(rest > 0)
    starts, rest = starts[rows], rest[rows]
    while len(rows):
        yield rows, starts, rest
        more = rest > 8
        rows, starts, rest = rows[more], starts[more] + np.int32(8), rest[more] - np.int32(8)


BATCH_TASKS = 50_000
_TASK_NAMES = tuple(c.name for c in TASK_IMPLEMENTATION)
_TASK_TYPES = tuple(c.type for c in TASK_IMPLEMENTATION)
_values_of = attrgetter(*_TASK_NAMES)
_UNHASHED = pa.schema([field for field in IMPLEMENTATIONS.schema if field.name != "content_hash"])
_OWN = tuple(c.name for c in IMPLEMENTATIONS.columns if c.name not in ("tasks", "content_hash"))


class ImplementationBuilder:
    """Builds record batches of the implementations dataset from single rows or from blocks of columns.

    Every batch of every format is finished here: `redact` masks private data, then `content_hash` is computed.
    """

    def __init__(
        self, redact: Callable[[pa.RecordBatch], pa.RecordBatch], hand_on: Callable[[pa.RecordBatch], None]
    ) -> None:
        self._redact, self._hand_on = redact, hand_on
        self._rows: list[tuple[Any, ...]] = []
        self._tasks: list[tuple[Any, ...]] = []
        self._offsets: list[int] = [0]

    def add(self, row: dict[str, Any], tasks: list[Task]) -> None:
        """Adds one row without `tasks` and `content_hash`, which the builder fills in."""
        own = tuple(row[name] for name in _OWN)
        values = [_values_of(task) for task in tasks]
        self._rows.append(own)
        self._tasks.extend(values)
        self._offsets.append(len(self._tasks))
        if len(self._tasks) >= BATCH_TASKS or len(self._rows) >= BATCH_TASKS:
            self.flush()

    def flush(self) -> None:
        """Turns the pending rows into a batch."""
        if not self._rows:
            return
        values = dict(zip(_OWN, zip(*self._rows, strict=True), strict=True))
        columns = {c.name: _array(values[c.name], c.type) for c in IMPLEMENTATIONS.columns if c.name in values}
        columns["tasks"] = self._task_lists()
        self._rows, self._tasks, self._offsets = [], [], [0]
        self._finish(columns)

    def block(self, columns: Mapping[str, pa.Array]) -> None:
        """Adds rows as columns without `content_hash`, after the pending rows."""
        self.flush()
        self._finish(columns)

    def _finish(self, columns: Mapping[str, pa.Array]) -> None:
        batch = pa.RecordBatch.from_arrays([columns[name] for name in _UNHASHED.names], schema=_UNHASHED)
        self._hand_on(with_hash(self._redact(batch), IMPLEMENTATIONS.schema))

    def _task_lists(self) -> pa.ListArray:
        columns: Iterable[tuple[Any, ...]] = zip(*self._tasks, strict=True) if self._tasks else [()] * len(_TASK_NAMES)
        arrays = [_array(values, kind) for values, kind in zip(columns, _TASK_TYPES, strict=True)]
        structs = pa.StructArray.from_arrays(arrays, fields=list(IMPLEMENTATIONS.schema.field("tasks").type.value_type))
        return pa.ListArray.from_arrays(
            pa.array(self._offsets, pa.int32()), structs, type=IMPLEMENTATIONS.schema.field("tasks").type
        )


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        offsets = [0]
        for value in values:
            offsets.append(offsets[-1] + len(value))
        keys = pa.array(list(chain.from_iterable(values)), pa.string())
        items = pa.array(list(chain.from_iterable(v.values() for v in values)), pa.string())
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
    return pa.array(values, kind)
