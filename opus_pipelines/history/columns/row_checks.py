"""Tells which rows must be read by records, from whole columns: those that may have a value to reject.

A check may name a row that turns out to be usable, never the other way round.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.columns.cases import Maps
from opus_pipelines.history.columns.values import Coded, UnusualError, dollars
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import Bools, array, booleans_of, numbers, text_offsets
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import OUTCOME
from opus_pipelines.history.records.money import DOLLAR, Money
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError

_NUMBER = r"^\d{1,11}(?:\.\d{1,15})?$"  # is an amount, a duration and a count, whatever the settings
_NUMBERS = ("duration_ms", "memory_gb", "threads")
Judge = Callable[[str], bool]


class RowChecks:
    """Checks the columns of flat rows. Raises UnusualError if amounts are in another currency than the dollar."""

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        plan, cases = maps.events.plan(), maps.own.plan()
        self._names = {maps.id_key, plan.keys["activity"], plan.keys["task_title"]}
        self._needed = (maps.id_key, plan.keys["activity"])
        self._checks: list[tuple[str, Judge, bool]] = []
        amounts = [key for _, _, key in plan.amounts] + ([cases.cost] if cases.cost else [])
        if amounts and (settings.currency or DOLLAR) != DOLLAR:
            raise UnusualError
        self._currencies = {key for key in (plan.currency, cases.currency if cases.cost else None) if key}
        money = Money(settings)
        plain = settings.decimal != ","
        for key in amounts:
            self._checks.append((key, _judge(lambda text, key=key: dollars(money, key, text)), plain))  # type: ignore[misc]
        for field, parse, key in plan.fields:
            if parse is not values.text:
                self._checks.append((key, _judge(parse), plain and field in _NUMBERS))
        for name, key, parse in cases.fields:
            if name == "client":
                self._checks.append((key, lambda text: not sink.is_forgotten(text), False))
            elif parse is not values.text and name != OUTCOME:
                self._checks.append((key, _judge(parse), False))

    def bad(self, columns: Mapping[str, Coded], rows: int) -> Bools:
        """Tells which of the rows may be rejected, by all columns but those of times."""
        bad = np.zeros(rows, bool)
        for key in self._needed:
            column = columns.get(key)
            if column is None:
                return np.ones(rows, bool)
            bad |= column.codes < 0
            _mark(bad, column, _blank(column.values))
        for key, column in columns.items():
            most = values.LONGEST_NAME if key in self._names else values.LONGEST_TEXT
            _mark(bad, column, numbers(pc.binary_length(column.values), np.int32) > most)
            if key in self._currencies:
                stated = [text.strip().upper() != DOLLAR for text in column.values.to_pylist()]
                _mark(bad, column, np.array(stated, bool))
        for key, judge, is_number in self._checks:
            if key in columns:
                _mark(bad, columns[key], _unreadable(columns[key].values, judge, is_number))
        return bad


def _judge(parse: Callable[[str], Any]) -> Judge:
    def is_readable(text: str) -> bool:
        try:
            parse(text)
        except (BadValueError, UnusualError):
            return False
        return True

    return is_readable


def _unreadable(texts: pa.Array, judge: Judge, is_number: bool) -> Bools:
    unreadable = np.zeros(len(texts), bool)
    rest = np.arange(len(texts))
    if is_number:
        rest = np.flatnonzero(~booleans_of(pc.match_substring_regex(texts, _NUMBER)))
    words = texts.take(pa.array(rest.tolist(), pa.int32())).to_pylist() if is_number else texts.to_pylist()
    unreadable[rest] = [text is not None and not judge(text) for text in words]
    return unreadable


def _blank(texts: pa.Array) -> Bools:
    """Tells which texts consist of white space."""
    blank = np.zeros(len(texts), bool)
    places = np.flatnonzero(~_begins_visibly(texts))
    if not len(places):
        return blank
    some = texts.take(array(places, pa.int64()))
    for place in np.flatnonzero(~booleans_of(pc.match_substring_regex(some, r"[\x21-\x7e]"))):
        blank[places[place]] = not (some[int(place)].as_py() or "").strip()
    return blank


def _begins_visibly(texts: pa.Array) -> Bools:
    """Tells which texts begin with a visible character of ASCII, as nearly all ids and names do."""
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    starts = text_offsets(texts)
    if not len(content):
        return np.zeros(len(texts), bool)
    first = content[np.minimum(starts[:-1], len(content) - 1)]
    return (starts[1:] > starts[:-1]) & (first > 0x20) & (first < 0x7F)


def _mark(bad: Bools, column: Coded, bad_values: Bools) -> None:
    if bad_values.any():
        bad |= (column.codes >= 0) & bad_values[column.codes]
