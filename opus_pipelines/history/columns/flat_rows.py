"""Rows of a flat log as columns: how they are read, and what is kept of them until all rows of the file are known.

Texts are redacted, times are read, and rows are marked that may have a value to reject; a check may mark a row that
turns out to be usable, never the other way round. The collection of rows into implementations and the counting of pairs
both begin here, so that they agree on every row. The distinct texts of all columns stand in one array, and columns
refer to them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.columns.cases import CaseBlocks, Maps, shows_work
from opus_pipelines.history.columns.values import NO_TIME, Coded, UnusualError, dollars, filled_texts, in_utc, moments
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import (
    Bools,
    Ints,
    Longs,
    array,
    booleans,
    booleans_of,
    indices,
    numbers,
    numbers_or,
    strings,
    text_offsets,
    validity,
)
from opus_pipelines.history.records.assembler import Assembler, WorkEvidence
from opus_pipelines.history.records.column_mapping import OUTCOME
from opus_pipelines.history.records.money import DOLLAR, Money
from opus_pipelines.history.records.raw import HOPELESS
from opus_pipelines.history.records.redaction import Redactor
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser

_EPOCH = datetime(1970, 1, 1)


def plain_values(column: pa.Array) -> list[Any]:
    """Converts a column to plain values: text and JSON types unchanged, all others as ISO text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        words = plain_values(column.dictionary)
        return [None if place is None else words[place] for place in column.indices.to_pylist()]
    if pa.types.is_timestamp(kind):  # as numbers: Arrow's conversion imports pandas and fails outside Python's years
        micros = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).to_pylist()
        if kind.unit == "ns":
            return [None if n is None else _fine_text(n, kind.tz) for n in column.cast(pa.int64()).to_pylist()]
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


def _fine_text(nanos: int, zone: str | None) -> str:
    """Returns nanoseconds since 1970 as ISO text, with the nanoseconds where there are any."""
    text, rest = moment_text(nanos // 1_000, ""), nanos % 1_000
    fraction = f"{'' if '.' in text else '.000000'}{rest:03d}" if rest else ""
    return text + fraction + ("" if zone is None else "+00:00")


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


_MOST_BYTES = (1 << 31) - (1 << 20)  # of one Arrow array of texts


class FlatTexts:
    """The texts of a block of whole cases, see `values.Texts`."""

    def __init__(self, texts: pa.Array, traces: int, event_trace: Ints) -> None:
        self.traces, self.event_trace = traces, event_trace
        self._texts = texts

    def values(self, places: Ints) -> pa.Array:
        """Returns the texts at these positions. A negative position gives NULL."""
        return self._texts.take(indices(places))

    def coded(self, places: Ints) -> Coded:
        """Returns the texts at these positions in dictionary encoding.

        No text is compared, so that equal texts of a column that is not dictionary-encoded have several codes.
        """
        known = places >= 0
        some: Longs = places[known].astype(np.int64)
        if not len(some):
            return Coded(np.full(len(places), -1, np.int32), self._texts.slice(0, 0))
        first, last = int(some.min()), int(some.max())
        if last - first > 4 * len(some) + 1024:
            found, codes_of_some = np.unique(some, return_inverse=True)
        else:
            present = np.zeros(last - first + 1, bool)
            present[some - first] = True
            found = np.flatnonzero(present) + first
            codes_of_some = (np.cumsum(present) - 1)[some - first]
        codes = np.full(len(places), -1, np.int32)
        codes[known] = codes_of_some
        return Coded(codes, self._texts.take(indices(found)))

    def replace(self, places: Ints, texts: pa.Array) -> None:
        """Replaces the texts at ascending positions."""
        marked = np.zeros(len(self._texts), bool)
        marked[places] = True
        self._texts = pa.compute.replace_with_mask(self._texts, booleans(marked), texts)


def coded_texts(column: pa.Array) -> Coded:
    """Returns a column of texts, in dictionary encoding or not, as codes. NULL and texts that say nothing have code -1.

    A column without dictionary encoding has a code for every row.
    """
    is_coded = pa.types.is_dictionary(column.type)
    values = column.dictionary if is_coded else column
    if is_coded:
        codes = numbers(column.indices.cast(pa.int32()), np.int32)
        valid = validity(column.indices)
    else:
        codes, valid = np.arange(len(column), dtype=np.int32), validity(column)
    filled = filled_texts(values)
    if valid is not None:
        codes = np.where(valid, codes, np.int32(-1))
    if not filled.all():
        codes = np.where((codes >= 0) & filled[codes], codes, np.int32(-1)) if len(filled) else codes
    return Coded(codes.astype(np.int32, copy=False), values)


def together(parts: list[pa.Array]) -> Coded:
    """Returns the parts of a column as one column of codes."""
    if not all(pa.types.is_dictionary(part.type) for part in parts):
        parts = [part.cast(pa.string()) for part in parts]
        if sum(part.nbytes for part in parts) > _MOST_BYTES:
            raise UnusualError
        return coded_texts(pa.concat_arrays(parts))
    whole = pa.chunked_array(parts).unify_dictionaries()
    return coded_texts(pa.concat_arrays(whole.chunks))


def in_one(columns: Mapping[str, Coded]) -> tuple[pa.Array, dict[str, int]]:
    """Returns the texts of all columns as one array, and where those of each column begin.

    Raises UnusualError if they are more than such an array holds.
    """
    if sum(column.values.nbytes for column in columns.values()) > _MOST_BYTES:
        raise UnusualError
    starts = np.cumsum([0, *(len(column.values) for column in columns.values())]).tolist()
    return pa.concat_arrays([column.values for column in columns.values()]), dict(zip(columns, starts, strict=False))


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
        None if values.says_nothing(value) or (zero_is_missing and not value) else values.text(value)
        for value in plain_values(coded.dictionary)
    ]
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
    written = coded.dictionary.to_pylist()
    texts = [None if values.says_nothing(text) else redactor.flat({name: text})[name] for text in written]
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
    if column.type.unit == "ns" and (numbers_or(column.cast(pa.int64()), np.int64, 0) % 1_000).any():
        raise UnusualError  # they decide the order of events
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


_NUMBER = r"^\d{1,11}(?:\.\d{1,15})?$"  # is an amount, a duration and a count, whatever the settings
_NUMBERS = ("duration_ms", "memory_gb", "threads")
Judge = Callable[[str], bool]


class RowChecks:
    """Checks the columns of flat rows. Raises UnusualError if amounts are in another currency than the dollar."""

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        plan, cases = maps.events, maps.own
        self._names = {maps.id_key, plan.keys["activity"], plan.keys["task_title"]}
        self._needed = (maps.id_key, plan.keys["activity"])
        self._checks: list[tuple[str, Judge, bool]] = []
        amounts = [key for _, _, key in plan.amounts] + ([cases.cost_key] if cases.cost_key else [])
        if amounts and (settings.currency or DOLLAR) != DOLLAR:
            raise UnusualError
        self._currencies = {key for key in (plan.currency, cases.currency_key if cases.cost_key else None) if key}
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
        ids = columns[self._needed[0]]
        _mark(bad, ids, booleans_of(pc.match_substring_regex(ids.values, f"^{values.ROUNDED_ID}$")))
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


_TIMES = ("start", "end", "time")


@dataclass(frozen=True)
class ReadRows:
    """Rows that were read together.

    `columns` are redacted, `coded` are those of them that are texts, `moments` are the times by name. `kind` is the
    kind of transition of each row, or None without such a column. `bad` tells which rows may have a value to reject.
    """

    columns: Mapping[str, pa.Array]
    coded: Mapping[str, Coded]
    moments: Mapping[str, Longs]
    kind: Ints | None
    bad: Bools


class RowReader:
    """Reads the rows of one file.

    `encodes_cases`: equal ids of cases get one code, else they need not. `is_whole`: it gets all rows of the file.
    Raises UnusualError, here or in `read`, if the whole file must be read by records.
    """

    def __init__(
        self,
        maps: Maps,
        settings: SourceSettings,
        sink: Assembler,
        encodes_cases: bool = True,
        is_whole: bool = True,
    ) -> None:
        self.maps, self.sink, self._settings, self._is_whole = maps, sink, settings, is_whole
        self.events = maps.events
        self.blocks = CaseBlocks(settings, maps, sink)
        self._checks = RowChecks(settings, maps, sink)
        keys = self.events.keys
        self.times = {name: keys[name] for name in _TIMES if keys[name]}
        self._compared = {keys["activity"], keys["transition"], keys["instance"]}
        self._compared |= {maps.id_key} if encodes_cases else set()
        self._zero_is_missing = {keys["transition"], keys["instance"], keys["task_title"]}
        self._good = self._bad = 0
        self.refused = 0
        self.has_work = False
        self.drops_repeated = settings.events.repeated == "drop"
        self._evidence = WorkEvidence()
        others = {key for _, _, key in (*self.events.fields, *self.events.amounts)} | set(maps.own.keys)
        others |= {key for name, key in keys.items() if name not in _TIMES}
        self.named = {key for key in others | set(self.times.values()) | settings.rows.columns if key}
        self.named |= {
            column
            for pair in (*settings.columns.joined_times.values(), *settings.columns.joined_id.values())
            for column in pair
        }
        is_forgotten = sink.is_forgotten(settings.constant("client"))
        is_ordered = bool(keys["order"])
        if not self.blocks.usable or self.events.template is not None or is_forgotten or is_ordered:
            raise UnusualError
        if others & set(self.times.values()) or self.events.group in self.times.values():
            raise UnusualError

    @property
    def is_empty(self) -> bool:
        """Tells whether no row was read."""
        return not self._good + self._bad

    def read(self, rows: Rows) -> ReadRows:
        """Reads rows of the file."""
        columns: dict[str, pa.Array] = {}
        for name, column in rows.columns.items():
            is_moment = name in self.times.values() and pa.types.is_timestamp(column.type)
            if is_moment and not self._settings.time_format and not self.sink.redactor.names(name):
                columns[name] = column
                continue
            kept = redacted(self.texts(name, column), name, self.sink.redactor)
            if kept is not None:
                columns[name] = kept
        moments, bad = {}, np.zeros(len(rows.positions), bool)
        for name, key in self.times.items():
            if key in columns:
                moments[name], unread = times_of(columns[key], self.events.times, not self._settings.time_format)
                bad |= unread
        coded = {
            name: coded_texts(column) for name, column in columns.items() if not pa.types.is_timestamp(column.type)
        }
        bad |= self._checks.bad(coded, len(bad))
        if "start" in moments and "end" in moments:
            start, end = moments["start"], moments["end"]
            bad |= (start != NO_TIME) & (end != NO_TIME) & (end < start)
        self._check_that_it_is_a_log(bad)
        kind = None
        if (transition := coded.get(self.events.keys["transition"])) is not None:
            kind = self.blocks.kinds(transition)
            activity = coded.get(self.events.keys["activity"])
            if activity is not None and not self.has_work:
                good = Coded(activity.codes[~bad], activity.values)
                self.has_work = shows_work(kind[~bad], good, self._evidence)
        return ReadRows(columns, coded, moments, kind, bad)

    def id_texts(self, rows: Rows) -> pa.Array:
        """Returns the redacted id of the case of each row. Raises UnusualError if ids are dropped."""
        key = self.maps.id_key
        ids = redacted(self.texts(key, rows.columns[key]), key, self.sink.redactor)
        if ids is None:
            raise UnusualError
        return ids

    def texts(self, name: str, column: pa.Array) -> pa.Array:
        """Returns a column as texts."""
        return as_texts(column, name in self._zero_is_missing, name in self._compared)

    def _check_that_it_is_a_log(self, bad: Bools) -> None:
        """Raises UnusualError if the reading by records might find that hardly a row can be used."""
        bad_rows, rows = int(bad.sum()), len(bad)
        if self._is_whole and self._bad + self.refused + bad_rows > HOPELESS:
            rejected = self._bad + self.refused + np.cumsum(bad)
            used = self._good + np.cumsum(~bad)
            if ((rejected > HOPELESS) & (rejected > 99 * used)).any():
                raise UnusualError
        self._bad, self._good = self._bad + bad_rows, self._good + rows - bad_rows
