"""Columns of cases and events: a column has the position of each record's text in the texts of a block, or -1.

A whole column of times is parsed at once, in the forms of ISO 8601 that nearly all logs use. All other times go through
the parser of single times.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.records.arrow_arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    array,
    booleans_of,
    indices,
    numbers,
    strings,
    text_offsets,
    typed,
    validity,
)
from opus_pipelines.history.records.money import DOLLAR, Money
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import (
    LONGEST_NO_VALUE,
    NO_VALUE,
    BadValueError,
    TimeParser,
    nanoseconds,
    says_nothing,
)

_MOST_CELLS = 1 << 26


class UnusualError(ValueError):
    """Columns cannot represent the records; they must be read one by one."""


class Coded(NamedTuple):
    """A column in dictionary encoding: the code of each record's value, -1 if it has none, and the distinct values."""

    codes: Ints
    values: pa.Array

    def array(self, records: Ints | None = None) -> pa.Array:
        """Returns the values of all records, or of some. A negative position gives NULL."""
        codes = self.codes if records is None else at(self.codes, records)
        return self.values.take(indices(codes))

    def numbers(self) -> tuple[Floats, Bools]:
        """Returns the values as numbers, and which of them are known."""
        known = self.codes >= 0
        if not len(self.values):
            return np.zeros(len(known)), known
        return np.where(known, numbers(self.values, np.float64)[self.codes], 0.0), known


class Texts(Protocol):
    """The texts of a block of whole cases, which columns refer to by position.

    `traces` is the number of cases, and `event_trace` the case of each event, ascending.
    """

    traces: int
    event_trace: Ints

    def values(self, places: Ints) -> pa.Array:
        """Returns the texts at these positions. A negative position gives NULL."""
        ...

    def coded(self, places: Ints) -> Coded:
        """Returns the same in dictionary encoding."""
        ...

    def replace(self, places: Ints, texts: pa.Array) -> None:
        """Replaces the texts at ascending positions."""
        ...


@dataclass
class Level:
    """The events, or the cases, of a block. `columns` has the columns by key, without empty values.

    `cases`: the case of each event, ascending, where these are not all events of the block.
    """

    rows: int
    columns: dict[str, Ints]
    scanned: Texts
    cases: Ints | None = None

    @property
    def event_trace(self) -> Ints:
        """The case of each event, ascending."""
        return self.scanned.event_trace if self.cases is None else self.cases

    def places(self, key: str | None) -> Ints:
        """Returns the column of a key."""
        column = self.columns.get(key) if key else None
        return np.full(self.rows, -1, np.int32) if column is None else column

    def coded(self, key: str | None) -> Coded:
        """Returns the column of a key in dictionary encoding."""
        return coded(self.scanned, self.places(key))

    def parsed(self, key: str | None, parse: Callable[[str], Any], kind: pa.DataType) -> Coded:
        """Returns the column of a key with each distinct text parsed once.

        A text without a meaning counts as missing. Raises BadValueError.
        """
        return parsed(self.coded(key), parse, kind)

    def some(self, rows: Bools) -> "Level":
        """Returns some of the events, which refer to the same texts."""
        columns = {key: places[rows] for key, places in self.columns.items()}
        return Level(int(np.count_nonzero(rows)), columns, self.scanned, self.event_trace[rows])

    def twice(self, rows: Longs) -> Longs:
        """Returns which of these events, ascending, equal an earlier one of them: in their case and in every column."""
        codes = [self.event_trace[rows], *(self.scanned.coded(places[rows]).codes for places in self.columns.values())]
        _, first = np.unique(np.stack(codes, 1), axis=0, return_index=True)
        return np.delete(rows, first)

    def redact(self, flat: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Removes and replaces values as `flat` does for a record."""
        for key in list(self.columns):
            whole = {key: "x"}
            if flat(whole) is whole:
                continue
            column = self.coded(key)
            shown = [flat({key: text}).get(key) for text in column.values.to_pylist()]
            places = self.columns.pop(key)
            if None not in shown:
                known = places >= 0
                self.columns[key] = places
                self.scanned.replace(places[known], strings(shown).take(array(column.codes[known], pa.int32())))


def coded(texts: Texts, places: Ints) -> Coded:
    """Converts a column to dictionary encoding."""
    return texts.coded(places)


def parsed(column: Coded, parse: Callable[[str], Any], kind: pa.DataType) -> Coded:
    """Parses each distinct text once. A text without a meaning counts as missing."""
    values = typed([parse(text) for text in column.values.to_pylist()], kind)
    known = validity(values)
    codes = (
        column.codes
        if known is None
        else np.where((column.codes >= 0) & known[column.codes], column.codes, np.int32(-1))
    )
    return Coded(codes, values)


def at(column: Ints, records: Ints) -> Ints:
    """Returns the column at some records, -1 for a negative record."""
    return np.where(records >= 0, column[records], np.int32(-1)) if len(column) else np.full(len(records), -1, np.int32)


def later(column: Ints, own: Ints, done: Ints) -> Ints:
    """Returns the column at `done`, and at `own` where `done` has no value."""
    first = column[own]
    second = at(column, done)
    return np.where(second >= 0, second, first)


def of_cases(column: Ints, case: Ints, cases: int, last: bool = False) -> Ints:
    """Returns the value of the first record (or the last) of each case that has one.

    `case` is the case of each record, ascending.
    """
    rows = np.flatnonzero(column >= 0)
    positions = np.full(cases, -1, np.int32)
    owners = case[rows]
    edge = np.diff(owners, append=-1) != 0 if last else np.diff(owners, prepend=-1) != 0
    positions[owners[edge]] = column[rows[edge]]
    return positions


def maps(scanned: Texts, columns: Iterable[tuple[str, Ints]], rows: int) -> pa.MapArray:
    """Returns the values of several columns as one map per row, by name.

    Raises UnusualError if it would be too large.
    """
    filled = sorted((name, places) for name, places in columns if (places >= 0).any())
    if rows * len(filled) > _MOST_CELLS:
        raise UnusualError
    table = np.stack([places for _, places in filled], axis=1) if filled else np.empty((rows, 0), np.int32)
    present = table >= 0
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    names = np.broadcast_to(np.arange(len(filled), dtype=np.int32), table.shape)[present]
    keys = strings([name for name, _ in filled]).take(array(names, pa.int32()))
    return pa.MapArray.from_arrays(array(offsets, pa.int32()), keys, scanned.values(table[present]))


def dollars(money: Money, key: str, text: str) -> float:
    """Returns an amount in dollars. Raises UnusualError for another currency, BadValueError for no amount."""
    amount = money.read(text, None, key)
    if amount.currency != DOLLAR or amount.usd is None:
        raise UnusualError
    return amount.usd


def only_dollars(settings: SourceSettings, *currencies: Coded) -> None:
    """Raises UnusualError if amounts may be in another currency than the dollar."""
    stated = {text.strip().upper() for column in currencies for text in column.values.to_pylist()}
    if stated - {DOLLAR} or (settings.currency or DOLLAR) != DOLLAR:
        raise UnusualError


NO_TIME = np.iinfo(np.int64).min
_CLOCK = r"^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3}|\.\d{6})?"
_FORMS = ((_CLOCK + "$", None), (_CLOCK + r"(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$", "UTC"))  # without and with a zone
_EPOCH_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
_EPOCH, _DAY = datetime(1970, 1, 1), 86_400_000_000
_MOST_DAYS = 1 << 17  # between the first and the last one, up to which each has a place in a table
_FIRST_DAY, _LAST_DAY = -_EPOCH_DAY + 366, 2_932_896 - 366


def microseconds(texts: pa.Array, parser: TimeParser, plain: bool) -> Longs:
    """Returns microseconds since 1970 in UTC of every text.

    `plain`: no `time_format` is stated, so ISO 8601 may be read here. Raises BadValueError for the first text that is
    no time.
    """
    results, bad = moments(texts, parser, plain)
    if bad.any():
        parser(texts[int(np.argmax(bad))].as_py())
    return results


def moments(texts: pa.Array, parser: TimeParser, plain: bool) -> tuple[Longs, Bools]:
    """Returns microseconds since 1970 in UTC of every text, and which texts are no time that can be read.

    NULL and a text that says nothing have no time, and are not bad. Raises UnusualError for nanoseconds.
    """
    results, bad = np.full(len(texts), NO_TIME, np.int64), np.zeros(len(texts), bool)
    rest = filled_texts(texts)
    for form, zone in _FORMS if plain and rest.any() else ():
        rows = np.flatnonzero(booleans_of(pc.match_substring_regex(texts, form)))
        if not len(rows):
            continue
        some = texts if len(rows) == len(texts) else texts.take(array(rows.astype(np.int32), pa.int32()))
        try:
            clocks = numbers(some.cast(pa.timestamp("us", zone)), np.int64)
        except pa.ArrowInvalid:  # a day that no calendar has, such as 30 February
            continue
        utc, sure = (clocks, _is_sure(clocks)) if zone else in_utc(clocks, parser)
        results[rows[sure]] = utc[sure]
        rest[rows[sure]] = False
    if rest.any():
        places = np.flatnonzero(rest)
        coded = texts.take(array(places.astype(np.int32), pa.int32())).dictionary_encode()
        written = coded.dictionary.to_pylist()
        if any(map(nanoseconds, written)):
            raise UnusualError
        single = [_or_none(parser, text) for text in written]
        codes = numbers(coded.indices, np.int32)
        bad[places] = np.array([moment is None for moment in single])[codes]
        results[places] = np.array([NO_TIME if moment is None else moment for moment in single], np.int64)[codes]
    return results, bad


_FIRST_BYTES = np.zeros(256, bool)  # of words that say nothing, and of blanks before them
_FIRST_BYTES[[word.encode()[0] for word in (*NO_VALUE, " ")]] = True


def filled_cells(lengths: Ints, starts: Ints, content: bytes | pa.Buffer, texts: Callable[[Longs], list[str]]) -> Bools:
    """Tells which texts say something, see `records.values.says_nothing`.

    The arrays have the number of bytes of each text and where it begins in `content`; `texts` returns some of them.
    """
    filled: Bools = lengths > 0
    places = np.flatnonzero(filled & (lengths <= LONGEST_NO_VALUE))
    if len(places):
        places = places[_FIRST_BYTES[np.frombuffer(content, np.uint8)[starts[places]]]]
    if len(places):
        filled[places] = [not says_nothing(text) for text in texts(places)]
    return filled


def filled_texts(texts: pa.Array) -> Bools:
    """Tells which of these texts say something. NULL does not."""
    offsets, valid = text_offsets(texts), validity(texts)
    told = filled_cells(
        np.diff(offsets),
        offsets[:-1],
        texts.buffers()[2] or b"",
        lambda some: texts.take(array(some, pa.int64())).to_pylist(),
    )
    return told if valid is None else told & valid


def _is_sure(moments: Longs) -> Bools:
    return (moments > _FIRST_DAY * _DAY) & (moments < _LAST_DAY * _DAY)


def in_utc(local: Longs, parser: TimeParser) -> tuple[Longs, Bools]:
    """Converts microseconds of clocks without a zone to UTC, and tells which are sure.

    Not sure are those outside the years 2 to 9998, and those of days on which the offset of the parser's zone changes.
    """
    if not len(local):
        return local, np.zeros(0, bool)
    fixed = parser.fixed_offset
    if fixed is not None and local.min() >= (_FIRST_DAY + 1) * _DAY and local.max() < _LAST_DAY * _DAY:
        return local - fixed // timedelta(microseconds=1), np.ones(len(local), bool)
    day = local // _DAY
    first = int(day.min())
    if int(day.max()) - first < _MOST_DAYS:
        place = day - first
        present = np.zeros(int(place.max()) + 1, bool)
        present[place] = True
        of_day = np.zeros(len(present), np.int64)
        days = np.flatnonzero(present)
        of_day[days] = [_offset(parser, first + one) for one in days.tolist()]
        offsets = of_day[place]
    else:
        days, place = np.unique(day, return_inverse=True)
        offsets = np.array([_offset(parser, int(one)) for one in days.tolist()], np.int64)[place]
    return np.where(offsets == NO_TIME, local, local - offsets), offsets != NO_TIME


@lru_cache(maxsize=1 << 14)
def _offset(parser: TimeParser, day: int) -> int:
    """Returns by how many microseconds the clock is before UTC on a day since 1970, NO_TIME if that is not sure."""
    if not _FIRST_DAY < day < _LAST_DAY:
        return NO_TIME
    start = _EPOCH + timedelta(days=day)
    found = {parser.offset(start + timedelta(hours=hours)) for hours in (0, 6, 12, 18, 24)}
    only = found.pop()
    return NO_TIME if found or only is None else only // timedelta(microseconds=1)


def _or_none(parser: TimeParser, text: str) -> int | None:
    try:
        return parser(text)
    except BadValueError:
        return None
