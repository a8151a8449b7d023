"""Converts between NumPy and Arrow arrays through their buffers.

Arrow's own conversion from NumPy imports pandas, which takes a second or two.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
