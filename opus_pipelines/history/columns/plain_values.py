"""Converts Arrow columns to the plain values that readers of records take."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1)


def plain_values(column: pa.Array) -> list[Any]:
    """Converts a column to plain values: text and JSON types unchanged, all others as ISO text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        words = plain_values(column.dictionary)
        return [None if place is None else words[place] for place in column.indices.to_pylist()]
    if pa.types.is_timestamp(kind):  # as numbers: Arrow's conversion imports pandas and fails outside Python's years
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).to_pylist()
        return [None if m is None else moment_text(m, "" if kind.tz is None else "+00:00") for m in micros]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_floating(kind):
        return list(column.to_pylist())
    try:
        return [_plain(value) for value in column.to_pylist()]
    except OverflowError:  # dates and durations that Python has not
        return [_sayable(value) for value in column]


def _sayable(value: pa.Scalar) -> Any:
    try:
        return _plain(value.as_py())
    except OverflowError:
        return f"a {value.type} out of range"


def moment_text(micros: int, zone: str) -> str:
    """Returns microseconds since 1970 as ISO text with a zone."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat() + zone
    except OverflowError:
        return f"{micros} microseconds"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, Decimal | timedelta) else value
