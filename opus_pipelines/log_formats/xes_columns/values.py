"""What plain traces hold, column by column: a column is the place of each record's attribute of one key, -1 where it
has none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from opus_pipelines.event_logs.arrow_arrays import (
    Bools,
    Floats,
    Ints,
    array,
    indices,
    numbers,
    strings,
    typed,
    validity,
)
from opus_pipelines.event_logs.money import DOLLAR, Money
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.log_formats.xes_columns.scan import Scanned

_MOST_KEYS = 1 << 14
_MOST_CELLS = 1 << 26


class UnusualError(ValueError):
    """Something that whole columns cannot hold: the records must be read one by one."""


class Coded(NamedTuple):
    """A column by its different values: the number of each record's value, -1 where it has none."""

    codes: Ints
    values: pa.Array

    def array(self, records: Ints | None = None) -> pa.Array:
        """The values of all records, or of some; a negative place gives NULL."""
        codes = self.codes if records is None else at(self.codes, records)
        return self.values.take(indices(codes))

    def numbers(self) -> tuple[Floats, Bools]:
        """The values as numbers, and which are known."""
        known = self.codes >= 0
        if not len(self.values):
            return np.zeros(len(known)), known
        return np.where(known, numbers(self.values, np.float64)[self.codes], 0.0), known


@dataclass
class Level:
    """The events, or the traces, of a block: `columns` by key, empty values left out."""

    rows: int
    columns: dict[str, Ints]
    scanned: Scanned

    def places(self, key: str | None) -> Ints:
        """The column of a key."""
        found = self.columns.get(key) if key else None
        return np.full(self.rows, -1, np.int32) if found is None else found

    def coded(self, key: str | None) -> Coded:
        """The column of a key by its different texts."""
        return coded(self.scanned, self.places(key))

    def parsed(self, key: str | None, parse: Callable[[str], Any], kind: pa.DataType) -> Coded:
        """The column of a key, each different text read once; a text that means nothing is none. Raises BadValueError."""
        return parsed(self.coded(key), parse, kind)

    def redact(self, flat: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """What `flat` leaves out of a record is left out, and what it replaces replaced."""
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


def levels(scanned: Scanned) -> tuple[Level, Level]:
    """Traces and events; raises UnusualError where a record has a key twice, or an empty one."""
    found = scanned.keys().dictionary_encode()
    names, codes = found.dictionary.to_pylist(), numbers(found.indices, np.int32)
    if len(names) > _MOST_KEYS or "" in names:
        raise UnusualError
    of_event = scanned.event >= 0
    group = (codes * 2 + of_event).astype(np.uint16)
    order = np.argsort(group, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(group, minlength=2 * len(names)))
    filled = scanned.lengths() > 0
    traces, events = Level(scanned.traces, {}, scanned), Level(len(scanned.event_trace), {}, scanned)
    for number, (start, end) in enumerate(zip(np.concatenate(([0], ends[:-1])), ends, strict=True)):
        level, owner = (events, scanned.event) if number % 2 else (traces, scanned.trace)
        places = order[start:end]
        owners = owner[places]
        if (owners[1:] == owners[:-1]).any():
            raise UnusualError
        kept = filled[places]
        if kept.any():
            column = np.full(level.rows, -1, np.int32)
            column[owners[kept]] = places[kept]
            level.columns[names[number // 2]] = column
    return traces, events


def coded(scanned: Scanned, places: Ints) -> Coded:
    """A column by its different texts."""
    known = np.flatnonzero(places >= 0)
    found = scanned.values(places[known]).dictionary_encode()
    codes = np.full(len(places), -1, np.int32)
    codes[known] = numbers(found.indices, np.int32)
    return Coded(codes, found.dictionary)


def parsed(column: Coded, parse: Callable[[str], Any], kind: pa.DataType) -> Coded:
    """Each different text read once; a text that means nothing is none."""
    values = typed([parse(text) for text in column.values.to_pylist()], kind)
    known = validity(values)
    codes = (
        column.codes
        if known is None
        else np.where((column.codes >= 0) & known[column.codes], column.codes, np.int32(-1))
    )
    return Coded(codes, values)


def at(column: Ints, records: Ints) -> Ints:
    """The column at some records, -1 where the record is negative."""
    return np.where(records >= 0, column[records], np.int32(-1)) if len(column) else np.full(len(records), -1, np.int32)


def later(column: Ints, own: Ints, done: Ints) -> Ints:
    """The column at `done`, and where that says nothing at `own`."""
    first = column[own]
    second = at(column, done)
    return np.where(second >= 0, second, first)


def of_cases(column: Ints, case: Ints, cases: int, last: bool = False) -> Ints:
    """Of each case what its first record (or its last) with a value holds; `case` of each record, ascending."""
    rows = np.flatnonzero(column >= 0)
    found = np.full(cases, -1, np.int32)
    owners = case[rows]
    edge = np.diff(owners, append=-1) != 0 if last else np.diff(owners, prepend=-1) != 0
    found[owners[edge]] = column[rows[edge]]
    return found


def maps(scanned: Scanned, columns: Iterable[tuple[str, Ints]], rows: int) -> pa.MapArray:
    """The values of several columns as a map a row, by name; raises UnusualError where that would be huge."""
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
    """An amount in dollars; raises UnusualError where it is in another currency, BadValueError where it is none."""
    amount = money.read(text, None, key)
    if amount.currency != DOLLAR or amount.usd is None:
        raise UnusualError
    return amount.usd


def only_dollars(settings: SourceSettings, *currencies: Coded) -> None:
    """Raises UnusualError where amounts may be in another currency than the dollar."""
    stated = {text.strip().upper() for column in currencies for text in column.values.to_pylist()}
    if stated - {DOLLAR} or (settings.currency or DOLLAR) != DOLLAR:
        raise UnusualError
