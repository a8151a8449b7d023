"""Rows of a flat log as columns: what is kept of them until all rows of the file are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.columns.flat_texts import coded_texts
from opus_pipelines.history.columns.plain_values import moment_text, plain_values
from opus_pipelines.history.columns.times import NO_TIME, in_utc, moments
from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import Bools, Longs, array, numbers, strings, validity
from opus_pipelines.history.records.redaction import Redactor
from opus_pipelines.history.records.times import TimeParser
from opus_pipelines.history.records.values import BadValueError

_SOME = 512  # texts that tell whether a column has few different ones
_SURE = 62_000_000_000_000_000  # microseconds: about year 1 to 3934


@dataclass(frozen=True)
class Rows:
    """Rows in file order: their columns by name, all of one length, and the position of each row in the file."""

    columns: Mapping[str, pa.Array]
    positions: Longs

    def some(self, rows: Longs) -> "Rows":
        """Returns some of the rows."""
        places = array(rows, pa.int64())
        return Rows({name: column.take(places) for name, column in self.columns.items()}, self.positions[rows])

    def records(self, rows: Longs) -> list[dict[str, Any]]:
        """Returns some rows as records."""
        some = array(rows, pa.int64())
        columns = [plain_values(column.take(some)) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class RowsPart:
    """Rows that were added together: their redacted columns, times by name, and which may have a value to reject.

    `bad_rows` has the latter as they were written.
    """

    rows: Rows
    moments: Mapping[str, Longs]
    bad: Bools
    bad_rows: Rows

    @property
    def nbytes(self) -> int:
        """Returns about how many bytes the part takes in memory."""
        return sum(column.nbytes for column in self.rows.columns.values()) + 8 * len(self.bad) * (1 + len(self.moments))


def as_texts(column: pa.Array, zero_is_missing: bool = False, encode: bool = False) -> pa.Array:
    """Returns a column as texts, written as `values.text` writes each value.

    A column is dictionary-encoded if its values repeat, and in any case with `encode`: then equal texts have one code.
    `zero_is_missing`: a number that is zero counts as no value. Raises UnusualError for lists and objects.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type):
        coded = column if not column.dictionary.null_count else column.cast(pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), coded.dictionary)
    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind):
        raise UnusualError
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.string()).dictionary_encode()
    if pa.types.is_string(kind):
        some = column.slice(0, 0 if encode else _SOME)
        mostly_distinct = len(some) == _SOME and 2 * pc.count_distinct(some).as_py() > _SOME
        return column if mostly_distinct else column.dictionary_encode()
    coded = column.dictionary_encode()
    texts = [
        None if value is None or (zero_is_missing and not value) else values.text(value)
        for value in plain_values(coded.dictionary)
    ]
    if pa.types.is_floating(kind) and any(value != value for value in coded.dictionary.to_pylist()):
        raise UnusualError
    written = pa.DictionaryArray.from_arrays(coded.indices, strings(texts))
    return written if None not in texts else written.cast(pa.string()).dictionary_encode()


def redacted(column: pa.Array, name: str, redactor: Redactor) -> pa.Array | None:
    """Returns a column of texts as `Redactor.flat` leaves it, None if it is dropped."""
    whole = {name: "x"}
    shown = redactor.flat(whole)
    if shown is whole:
        return column
    if name not in shown:
        return None
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [None if text is None else redactor.flat({name: text})[name] for text in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, strings(texts)).cast(pa.string()).dictionary_encode()


def times_of(column: pa.Array, parser: TimeParser, plain: bool) -> tuple[Longs, Bools]:
    """Returns the times of a column of texts or timestamps, and which rows have a time that cannot be read.

    `plain`: the settings state no `time_format`.
    """
    if pa.types.is_timestamp(column.type):
        return _of_timestamps(column, parser)
    if not pa.types.is_dictionary(column.type):
        return moments(column, parser, plain)
    coded = coded_texts(column)
    found, bad = moments(coded.values, parser, plain)
    if not len(found):
        return np.full(len(column), NO_TIME, np.int64), np.zeros(len(column), bool)
    known = coded.codes >= 0
    return np.where(known, found[coded.codes], NO_TIME), known & bad[coded.codes]


def _of_timestamps(column: pa.Array, parser: TimeParser) -> tuple[Longs, Bools]:
    zone = column.type.tz
    micros = numbers(column.cast(pa.timestamp("us", zone), safe=False), np.int64)
    valid, bad = validity(column), np.zeros(len(column), bool)
    if valid is None and len(micros) and micros.min() > -_SURE and micros.max() < _SURE:
        utc, in_zone = (micros, ~bad) if zone is not None else in_utc(micros, parser)
        if in_zone.all():  # as in nearly every log
            return utc, bad
    known = np.ones(len(column), bool) if valid is None else valid
    sure = known & (np.abs(micros) < _SURE)
    if zone is None:
        found, in_zone = in_utc(np.where(sure, micros, 0), parser)
        sure &= in_zone
    else:
        found = micros
    result = np.where(sure, found, NO_TIME)
    for row in np.flatnonzero(known & ~sure).tolist():
        try:
            result[row] = parser(moment_text(int(micros[row]), "" if zone is None else "+00:00"))
        except BadValueError:
            bad[row] = True
    return result, bad
