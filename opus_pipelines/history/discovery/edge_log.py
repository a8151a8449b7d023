"""Counts the edges of a flat log by columns, without making implementations.

Rows are read as `FlatLog` reads them. Of each stay a number for its case, codes for its activity, transition and
instance, and its times. These events wait in parts of whole cases, on disk once they are many, and are then put in the
order of their steps: by case, time and place in the file. Cases that have an unusual row (a value to reject, an event
that may occur twice) are left out, and their keys are kept, so that the ordinary reading can read them alone.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.history.columns.cases import Spans, by_records, repeated_events, tasks_of_block
from opus_pipelines.history.columns.flat_log import FlatLog, Refusal
from opus_pipelines.history.columns.flat_rows import RowReader, Rows
from opus_pipelines.history.columns.values import NO_TIME, Coded, UnusualError
from opus_pipelines.history.records.arrow_arrays import (
    Bools,
    Ints,
    Longs,
    array,
    begins_anew,
    consecutive,
    distinct,
    numbers_or,
    strings,
    text_hashes,
    text_offsets,
)
from opus_pipelines.history.records.duplicate_events import unnamed_file
from opus_pipelines.history.records.raw import CLOSE, COMPLETE, OTHER, Counts
from opus_pipelines.history.records.values import LONGEST_TEXT

_DENSE = 1 << 20  # numbers up to which there is a place for each, used or not
_LATEST = np.iinfo(np.int64).max
_SUMS = ("occurrences", "cases", "starts", "ends")
_MOMENT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Steps:
    """Steps of whole cases, one case after the other, in execution order.

    `lengths` [cases] are the numbers of steps, `task` and `seen` the code and the time of each step (NO_TIME where
    unknown), and `weight` how often the case was carried out, for all cases or for each. `stated` has the steps
    directly before each, where they are not the one in front of it (see `consecutive`).
    """

    lengths: Longs
    task: Longs
    seen: Longs
    weight: "int | Longs" = 1
    stated: pa.Array | None = None

    def case(self) -> Longs:
        """Returns the case of each step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def weights(self, case: Longs) -> "int | Longs":
        """Returns the weights of cases."""
        return self.weight if isinstance(self.weight, int) else self.weight[case]


class Names:
    """Codes of texts, in the order in which they came."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        """Returns the number of different texts."""
        return len(self._codes)

    def codes(self, texts: pa.Array) -> Longs:
        """Returns the code of each text. None of them is NULL."""
        codes = self._codes
        return np.array([codes.setdefault(text, len(codes)) for text in texts.to_pylist()], np.int64)

    def texts(self) -> pa.Array:
        """Returns the texts in the order of their codes."""
        return strings(list(self._codes))


class Tally:
    """Adds up edges and tasks of many cases. `names` has the codes of the tasks."""

    def __init__(self) -> None:
        self.names = Names()
        self._edges, self._tasks = _Sums(), _Sums()

    def add(self, steps: Steps) -> None:
        """Adds the steps of cases whose steps were not added before."""
        if not len(steps.task):
            return
        size, case = len(self.names), steps.case()
        self._add_ends(steps, case)
        if steps.stated is None:
            self._add_chains(steps, case, size)
            return
        self._tasks.add(*_counted(steps, case, steps.task, size, steps.seen))
        before, after = consecutive(steps.lengths, steps.stated)
        if len(after):
            pair = steps.task[before] * size + steps.task[after]
            keys, counts = _counted(steps, case[after], pair, size * size, steps.seen[after])
            self._edges.add(keys // size << 32 | keys % size, counts)

    def _add_chains(self, steps: Steps, case: Longs, size: int) -> None:
        """Adds cases whose steps follow each other.

        The first step of a case follows the task `size`, which is none. Then each step ends one pair, and what is known
        of a task but its cases is the sum of what is known of the pairs that it ends.
        """
        before = np.empty_like(steps.task)
        before[1:] = steps.task[:-1]
        before[(np.cumsum(steps.lengths) - steps.lengths)[steps.lengths > 0]] = size
        keys, number, places = _numbered(steps.task * (size + 1) + before, size * (size + 1))
        owner, pair = _cells(case, number, len(steps.lengths), places)
        counts = _occurrences(steps, case, number, steps.seen, places)
        counts["cases"] = _summed(pair, steps.weights(owner), places)
        occurs = np.flatnonzero(counts["occurrences"])
        src, dst = keys[occurs] % (size + 1), keys[occurs] // (size + 1)
        follows = src < size
        of_pairs = {name: column[occurs] for name, column in counts.items()}
        self._edges.add((src << 32 | dst)[follows], {name: column[follows] for name, column in of_pairs.items()})
        del of_pairs["cases"]
        task = (keys // (size + 1))[pair]
        anew = begins_anew(owner * size + task)  # the pairs of a case stand together by the task that they end with
        cases = _summed(task[anew], steps.weights(owner[anew]), size)
        self._tasks.add(dst, of_pairs)
        self._tasks.add(np.flatnonzero(cases), {"cases": cases[cases > 0]})

    def _add_ends(self, steps: Steps, case: Longs) -> None:
        filled = steps.lengths > 0
        ends = np.cumsum(steps.lengths)[filled]
        for column, step in (("starts", ends - steps.lengths[filled]), ("ends", ends - 1)):
            keys, number, places = _numbered(steps.task[step], len(self.names))
            counts = _summed(number, steps.weights(case[step]), places)
            self._tasks.add(keys[counts > 0], {column: counts[counts > 0]})

    def edges(self) -> pa.Table:
        """Returns a row for each pair of tasks, sorted by the names of both."""
        keys, sums = self._edges.result()
        named = {"src": self._named(keys >> 32), "dst": self._named(keys & 0xFFFFFFFF)}
        counts = {"transitions": sums["occurrences"], "cases": sums["cases"]}
        return _table(named, counts, sums).sort_by([("src", "ascending"), ("dst", "ascending")])

    def tasks(self) -> pa.Table:
        """Returns a row for each task, sorted by its name."""
        keys, sums = self._tasks.result()
        return _table({"task": self._named(keys)}, {name: sums[name] for name in _SUMS}, sums).sort_by("task")

    def _named(self, codes: Longs) -> pa.Array:
        return self.names.texts().take(array(codes, pa.int64()))


def _counted(steps: Steps, case: Longs, number: Longs, size: int, seen: Longs) -> tuple[Longs, dict[str, Longs]]:
    """Returns the distinct numbers below `size`, and how often, in how many cases, and when each of them occurs."""
    keys, number, places = _numbered(number, size)
    owner, own = _cells(case, number, len(steps.lengths), places)
    counts = _occurrences(steps, case, number, seen, places)
    counts["cases"] = _summed(own, steps.weights(owner), places)
    occurs = np.flatnonzero(counts["occurrences"])
    return keys[occurs], {name: column[occurs] for name, column in counts.items()}


def _numbered(number: Longs, size: int) -> tuple[Longs, Longs, int]:
    """Returns what numbers below `size` stand for, in ascending order, the place of each there, and the places."""
    if size <= _DENSE:
        return np.arange(size), number, size
    keys = distinct(number)
    return keys, np.searchsorted(keys, number), len(keys)


def _occurrences(steps: Steps, case: Longs, number: Longs, seen: Longs, places: int) -> dict[str, Longs]:
    """Returns how often, and when first and last, each number below `places` occurs."""
    known = seen != NO_TIME
    when, of = (seen, number) if known.all() else (seen[known], number[known])
    first, last = np.full(places, _LATEST), np.full(places, NO_TIME)
    np.minimum.at(first, of, when)
    np.maximum.at(last, of, when)
    return {"occurrences": _summed(number, steps.weights(case), places), "first_seen": first, "last_seen": last}


def _cells(case: Longs, number: Longs, cases: int, places: int) -> tuple[Longs, Longs]:
    """Returns the distinct pairs of a case and a number below `places`, by case and number."""
    kind = np.dtype(np.uint32 if cases * places < 1 << 32 else np.int64)
    cells = distinct(case.astype(kind) * places + number.astype(kind))
    owner = cells // places
    return owner.astype(np.int64), (cells - owner * places).astype(np.int64)


def _summed(number: Longs, weight: "int | Longs", places: int) -> Longs:
    if isinstance(weight, int):
        return np.bincount(number, minlength=places) * weight
    sums = np.zeros(places, np.int64)
    np.add.at(sums, number, weight)
    return sums


@dataclass
class _Sums:
    """Sums, and first and last times, by key."""

    keys: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    columns: dict[str, Longs] = field(default_factory=dict)

    def add(self, keys: Longs, columns: dict[str, Longs]) -> None:
        """Adds counts of keys."""
        merged = distinct(np.concatenate([self.keys, keys]))
        old, new = np.searchsorted(merged, self.keys), np.searchsorted(merged, keys)
        for name in (*_SUMS, "first_seen", "last_seen"):
            neutral = _LATEST if name == "first_seen" else NO_TIME if name == "last_seen" else 0
            total = np.full(len(merged), neutral, np.int64)
            if name in self.columns:
                total[old] = self.columns[name]
            if name in columns:
                join = {"first_seen": np.minimum, "last_seen": np.maximum}.get(name, np.add)
                join.at(total, new, columns[name])
            self.columns[name] = total
        self.keys = merged

    def result(self) -> tuple[Longs, dict[str, Longs]]:
        """Returns the keys and their sums."""
        nothing = np.zeros(0, np.int64)
        return self.keys, self.columns or dict.fromkeys((*_SUMS, "first_seen", "last_seen"), nothing)


def _table(names: dict[str, pa.Array], counts: dict[str, Longs], sums: dict[str, Longs]) -> pa.Table:
    columns = names | {name: array(column, pa.int64()) for name, column in counts.items()}
    for name in ("first_seen", "last_seen"):
        known: Bools = (sums[name] != NO_TIME) & (sums[name] != _LATEST)
        columns[name] = array(sums[name], _MOMENT, known)
    return pa.table(columns)


Keys = npt.NDArray[np.uint64]
_SHORT_ID = 7  # bytes: such a text is its own number, with its length in the last byte
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different numbers stay different


def case_keys(ids: pa.Array) -> Keys:
    """Returns the number of each text, which may be in dictionary encoding. The number of NULL is arbitrary.

    Texts of more than seven bytes are told apart by a 64-bit hash, as implementations are by their ids. The numbers of
    many texts are spread evenly.
    """
    if not pa.types.is_dictionary(ids.type):
        return _keys(ids) * _MIX
    if not len(ids.dictionary):
        return np.zeros(len(ids), np.uint64)
    codes = numbers_or(ids.indices.cast(pa.int32()), np.int32, 0)
    return (_keys(ids.dictionary) * _MIX)[codes]


def _keys(texts: pa.Array) -> Keys:
    offsets = text_offsets(texts)
    lengths = np.diff(offsets)
    longest = int(lengths.max()) if len(lengths) else 0
    long = np.flatnonzero(lengths > _SHORT_ID) if longest > _SHORT_ID else lengths[:0]
    if len(long) and len(long) == len(lengths):
        return text_hashes(texts)[0]
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros(end - first + 8, np.uint8)
    if end > first:
        data[: end - first] = np.frombuffer(texts.buffers()[2], np.uint8, end - first, first)
    words = np.ndarray((end - first + 1,), "<u8", data.data, 0, (1,))
    size = lengths.astype(np.uint64)
    keys: Keys = words[offsets[:-1] - first] << (64 - 8 * size)  # a shift by 64 leaves nothing
    keys |= size
    if len(long):
        keys[long] = text_hashes(texts.take(array(long, pa.int64())))[0]
    return keys


_PARTS = 256  # by the first byte of the number of the case
EVENTS_IN_MEMORY = 1 << 28  # bytes of events that are kept before they are stored on disk
_AT_ONCE = 1 << 17  # events of neighbouring parts that are handed out together: they fit into a processor's cache
EventColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Kept:
    """Events sorted by part: the columns, and `bounds` [PARTS + 1], where each part begins."""

    bounds: npt.NDArray[np.int64]
    columns: EventColumns

    def piece(self, first: int, end: int) -> EventColumns:
        """Returns the events of the parts from `first` to before `end`."""
        return {name: column[self.bounds[first] : self.bounds[end]] for name, column in self.columns.items()}


@dataclass(frozen=True)
class _Stored:
    """The same on disk: `places` are the place of each column in the file, and its type."""

    bounds: npt.NDArray[np.int64]
    places: Mapping[str, tuple[int, np.dtype[Any]]]
    file: int

    def piece(self, first: int, end: int) -> EventColumns:
        """Returns the events of the parts from `first` to before `end`."""
        begin, rows = int(self.bounds[first]), int(self.bounds[end] - self.bounds[first])
        return {
            name: np.frombuffer(os.pread(self.file, rows * kind.itemsize, place + begin * kind.itemsize), kind)
            for name, (place, kind) in self.places.items()
        }


class EventParts:
    """Keeps events in the order in which they are added. `folder` is for those beyond `in_memory` bytes."""

    def __init__(self, folder: Path | None, in_memory: int = EVENTS_IN_MEMORY) -> None:
        self._folder, self._limit = folder, in_memory
        self._kept: list[_Kept] = []
        self._stored: list[_Stored] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def add(self, case: Keys, columns: EventColumns) -> None:
        """Adds events with the numbers of their cases."""
        part = (case >> np.uint64(56)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        own = {name: column.take(order) for name, column in ({"case": case} | columns).items()}
        self._kept.append(_Kept(_bounds(np.bincount(part, minlength=_PARTS)), own))
        self._bytes += sum(column.nbytes for column in own.values())
        if self._bytes > self._limit:
            self._store()

    def parts(self) -> Iterator[EventColumns]:
        """Yields the events of whole cases, with the column `case`, those of a case in the order in which they came."""
        batches: list[_Stored | _Kept] = [*self._stored, *self._kept]
        groups = min(_PARTS, max(1, sum(int(batch.bounds[-1]) for batch in batches) // _AT_ONCE))
        edges = [_PARTS * group // groups for group in range(groups + 1)]
        try:
            for first, end in pairwise(edges):
                pieces = [batch.piece(first, end) for batch in batches]
                pieces = [piece for piece in pieces if len(piece["case"])]
                if pieces:
                    yield {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        finally:
            if self._file is not None:
                self._file.close()

    def _store(self) -> None:
        """Moves what is kept to the disk, with all events of a part side by side."""
        if self._file is None:
            self._file = unnamed_file(self._folder)
        places = {}
        for name, column in self._kept[0].columns.items():
            places[name] = (self._file.tell(), column.dtype)
            for number in range(_PARTS):
                for batch in self._kept:
                    self._file.write(batch.columns[name][batch.bounds[number] : batch.bounds[number + 1]].data)
        self._file.flush()
        bounds: npt.NDArray[np.int64] = np.sum([batch.bounds for batch in self._kept], axis=0)
        self._stored.append(_Stored(bounds, places, self._file.fileno()))
        self._kept, self._bytes = [], 0


def _bounds(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])


_UNITS = (60_000_000, 1_000_000, 1_000, 1)  # microseconds: times are counted in the largest that they all share
_BITS = 63
_WORD = 64  # bits


class Ordered(NamedTuple):
    """The steps of whole cases, one case after the other.

    `lengths` [cases] are the numbers of steps, `activity` and `seen` the code and the time of each step, and `not_work`
    the number of events that are no work. `unusual` are the keys of cases that were left out.
    """

    lengths: Longs
    activity: Longs
    seen: Longs
    not_work: int
    unusual: Keys
    has_ties: bool = False


def in_order(
    events: EventColumns, interval: bool, has_work: bool, has_ties: bool = False, drops: bool = True
) -> Ordered:
    """Returns the steps of events, which stand in the order of the file.

    `drops`: events that occur twice count once.

    `has_ties`: events of one case are expected to have the same time, so what works only without them is not tried.

    Left out are cases in which such an event may occur twice, and those with a transition that is read by records.
    """
    if not len(events["case"]):
        nothing = np.zeros(0, np.int64)
        return Ordered(nothing, nothing, nothing, 0, np.zeros(0, np.uint64))
    plain = not interval and not (events["time"] == NO_TIME).any()
    if (kind := events.get("kind")) is not None:
        ends = (kind == COMPLETE) | (kind == CLOSE) if has_work else np.zeros(len(kind), bool)
        plain = plain and bool((ends | (kind == OTHER)).all())
    if not plain:
        return _by_rules(events, interval, has_work, drops)
    times = _Times.of(events["time"])
    if not has_ties and (found := _without_ties(events["case"], times, events["activity"])) is not None:
        return found
    case, rows, starts = _by_case(events["case"])
    lengths = np.diff(np.append(starts, len(rows)))
    if int(case[-1]).bit_length() + times.bits > _BITS:
        return _by_rules(events, interval, has_work, drops)
    order, tied = _by_time(case.astype(np.int64) << times.bits | times.units[rows], rows)
    repeated = _repeated(events, order[tied], case[tied], interval) if drops else np.zeros(0, bool)
    if repeated.any():
        unusual = distinct(events["case"][order[tied][repeated]])
        rest = without(events, unusual)
        return in_order(rest, interval, has_work, has_ties=True)._replace(unusual=unusual, has_ties=True)
    activity = events["activity"][order].astype(np.int64)
    return Ordered(lengths, activity, events["time"][order], 0, np.zeros(0, np.uint64), bool(tied.any()))


def without(events: EventColumns, unusual: Keys) -> EventColumns:
    """Returns the events of all other cases."""
    if not len(unusual):
        return events
    stay = ~np.isin(events["case"], unusual)
    return {name: column[stay] for name, column in events.items()}


def _by_case(keys: Keys) -> tuple[Ints, Longs, Longs]:
    """Returns the number of the case of each event in some order by case, that order, and where each case begins."""
    order = np.argsort(keys)
    begins = begins_anew(keys[order])
    return (np.cumsum(begins, dtype=np.int32) - np.int32(1)), order, np.flatnonzero(begins)


class _Times(NamedTuple):
    """Times as whole numbers of a `unit` of microseconds after the `least` one. `bits` are those of the largest."""

    units: Longs
    least: int
    unit: int
    bits: int

    @classmethod
    def of(cls, moments: Longs) -> "_Times":
        least = int(moments.min())
        moments = moments - least
        for unit in _UNITS:
            units = moments // unit if unit > 1 else moments
            if unit == 1 or np.array_equal(units * unit, moments):
                break
        return cls(units, least, unit, int(units.max()).bit_length())


def _without_ties(case: Keys, times: _Times, activity: Ints) -> Ordered | None:
    """Returns the steps by one sort. None: two events of a case have the same time, or the numbers are too large.

    As many leading bits of the numbers of the cases are packed as there is room for, if they tell the cases apart.
    """
    width = int(activity.max()).bit_length()
    ordered = np.sort(case)
    most = int(ordered[0] ^ ordered[-1]).bit_length()  # the bits before are the same in all cases
    free = _WORD - times.bits - width
    left_out = np.uint64(max(0, most - free))
    if free < 1 or (left_out and _runs(ordered >> left_out) != _runs(ordered)):
        return None
    packed = (case >> left_out) << np.uint64(times.bits + width)
    packed |= times.units.view(np.uint64) << np.uint64(width)
    packed |= activity.astype(np.uint64)
    packed.sort()
    by_time = packed >> np.uint64(width)
    if (by_time[1:] == by_time[:-1]).any():
        return None
    starts = np.flatnonzero(begins_anew(packed >> np.uint64(times.bits + width)))
    seen = (by_time & np.uint64((1 << times.bits) - 1)).view(np.int64) * times.unit + times.least
    steps = (packed & np.uint64((1 << width) - 1)).view(np.int64)
    return Ordered(np.diff(np.append(starts, len(packed))), steps, seen, 0, np.zeros(0, np.uint64))


def _runs(ordered: Keys) -> int:
    return int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _by_time(keys: Longs, rows: Longs) -> tuple[Longs, Bools]:
    """Returns the rows by key and place, and which of them have the key of another."""
    by_time = np.argsort(keys)
    keys, rows = keys[by_time], rows[by_time]
    same = keys[1:] == keys[:-1]
    tied = np.zeros(len(rows), bool)
    tied[1:] |= same
    tied[:-1] |= same
    places = np.flatnonzero(tied)
    rows[places] = rows[places][np.lexsort((rows[places], keys[places]))]
    return rows, tied


def _by_rules(events: EventColumns, interval: bool, has_work: bool, drops: bool) -> Ordered:
    """Returns the steps by the rules of `history.columns.cases`, which pair starts with completes."""
    order = np.argsort(events["case"], kind="stable")
    keys = events["case"][order]
    kind = _of("kind", events, order)
    odd = by_records(kind, has_work)
    unusual = keys[_repeated(events, order, _numbers(keys), interval) | odd if drops else odd]
    if len(unusual):
        unusual = distinct(unusual)
        stay = ~np.isin(keys, unusual)
        order, keys, kind = order[stay], keys[stay], kind[stay]
    case = _numbers(keys)
    cases = int(case[-1]) + 1 if len(case) else 0
    tasks = tasks_of_block(case, _spans(events, order, interval), kind, _run(events, order), has_work)
    lengths = np.bincount(tasks.case, minlength=cases)
    activity = events["activity"][order][tasks.own].astype(np.int64)
    seen = np.where(tasks.started != NO_TIME, tasks.started, tasks.ended)
    return Ordered(lengths, activity, seen, tasks.not_work, unusual)


def _numbers(keys: Keys) -> Ints:
    """Returns the number of each case, by keys of which equal ones stand together."""
    return np.cumsum(begins_anew(keys), dtype=np.int32) - np.int32(1)


def _repeated(events: EventColumns, rows: Longs, case: Ints, interval: bool) -> Bools:
    return repeated_events(case, _spans(events, rows, interval), _of("kind", events, rows), _run(events, rows))


def _spans(events: EventColumns, rows: Longs, interval: bool) -> Spans:
    times: dict[str, Longs] = {name: events[name][rows] for name in ("time", "start", "end") if name in events}
    return Spans.of(times, interval)


def _run(events: EventColumns, rows: Longs) -> Longs:
    return events["activity"][rows].astype(np.int64) << 32 | (_of("instance", events, rows) + 1)


def _of(name: str, events: EventColumns, rows: Longs) -> Ints:
    return events[name][rows] if name in events else np.zeros(len(rows), np.int32)


_NEVER_TOO_LONG = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)
_SHORT = LONGEST_TEXT // 8  # bytes: what masks a text makes it a little longer at most


class EdgeLog:
    """Collects the rows of one file, and adds their edges and tasks to `tally` at its end.

    `unusual` are the keys of the cases that were left out, and `has_more` tells that records are left out with them.
    `counts` are those of all other records. Raises UnusualError if the settings give cases a weight of their own.
    """

    def __init__(
        self, reader: RowReader, tally: Tally, weight: int, folder: Path | None, in_memory: int = EVENTS_IN_MEMORY
    ) -> None:
        if any(name == "weight" for name, _, _ in reader.maps.own.fields):
            raise UnusualError
        self.distinct = frozenset({reader.maps.id_key})
        self.counts, self.unusual = Counts(), np.zeros(0, np.uint64)
        self.has_more = self._has_ties = False
        self._reader, self._tally, self._weight = reader, tally, weight
        self._activities, self._instances = Names(), Names()
        self._parts = EventParts(folder, in_memory)
        self._found: list[Keys] = []

    @property
    def has_work(self) -> bool:
        """Tells whether a row that is surely used is a start or a complete."""
        return self._reader.has_work

    def wanted(self, schema: pa.Schema) -> list[str]:
        """Returns the columns with a meaning, and those whose values may be too long to be read."""
        kept = self._reader.named
        return [f.name for f in schema if f.name in kept or not any(known(f.type) for known in _NEVER_TOO_LONG)]

    def add(self, rows: Rows) -> None:
        """Adds rows of the file."""
        if not len(rows.positions):
            return
        read, keys = self._reader.read(self._needed(rows)), self._reader.events.keys
        ids, activity = read.columns.get(self._reader.maps.id_key), read.coded.get(keys["activity"])
        if ids is None or activity is None:
            raise UnusualError
        case = case_keys(ids)
        events: EventColumns = dict(read.moments)
        if not events:
            events["time"] = np.full(len(case), NO_TIME, np.int64)
        events["activity"] = _codes(activity, self._activities)
        if read.kind is not None:
            events["kind"] = read.kind.astype(np.int8)
        if (instance := read.coded.get(keys["instance"])) is not None:
            events["instance"] = _codes(instance, self._instances)
        if read.bad.any():
            self._found.append(distinct(case[read.bad]))
            self.has_more = True
            good = ~read.bad
            case, events = case[good], {name: column[good] for name, column in events.items()}
        self._parts.add(case, events)

    def _needed(self, rows: Rows) -> Rows:
        """Returns rows without the columns of texts that have no meaning here and surely are short enough."""
        named = self._reader.named | {self._reader.maps.id_key}
        kept = {name: column for name, column in rows.columns.items() if name in named or not _is_short(column)}
        return Rows(kept, rows.positions)

    def refuse(self, refusal: Refusal) -> None:
        """Adds a row that cannot be split: the ordinary reading rejects it."""
        self._reader.refused += 1
        self.has_more = True
        if refusal.case_id is not None:
            self._found.append(case_keys(strings([refusal.case_id])))

    def finish(self) -> None:
        """Counts all cases that have no unusual row."""
        if self._reader.is_empty:
            raise UnusualError
        self.unusual = distinct(np.concatenate([self.unusual, *self._found]))
        names = self._reader.sink.redactor.task_names(self._activities.texts())
        tasks = self._tally.names.codes(names)
        later: list[Keys] = []
        for events in self._parts.parts():
            left_out = self._count(without(events, self.unusual), tasks)
            later.append(left_out)
        self.unusual = distinct(np.concatenate([self.unusual, *later]))
        self.has_more |= len(self.unusual) > 0

    def _count(self, events: EventColumns, tasks: Longs) -> Keys:
        """Counts the cases of these events, and returns the keys of those that were left out."""
        if not len(events["case"]):
            return np.zeros(0, np.uint64)
        steps = in_order(
            events, self._reader.events.interval, self.has_work, self._has_ties, self._reader.drops_repeated
        )
        self._has_ties |= steps.has_ties
        self._tally.add(Steps(steps.lengths, tasks[steps.activity], steps.seen, self._weight))
        records = len(without(events, steps.unusual)["case"])
        self.counts.records += records
        self.counts.used += records - steps.not_work
        self.counts.not_work += steps.not_work
        self.counts.implementations += len(steps.lengths)
        self.counts.task_implementations += len(steps.activity)
        return steps.unusual


class UnusualCases:
    """Passes on to the ordinary reading the rows of some cases, and those of no case. `keys` are those of the cases."""

    def __init__(self, reader: RowReader, log: FlatLog, keys: Keys) -> None:
        self.distinct: frozenset[str] = frozenset()
        self._reader, self._log, self._keys = reader, log, keys

    def wanted(self, schema: pa.Schema) -> list[str]:
        """Returns the columns that it reads: all of the file."""
        return self._log.wanted(schema)

    def add(self, rows: Rows) -> None:
        """Adds rows of the file, of which those of other cases are left out."""
        ids = self._reader.id_texts(rows)
        chosen = np.isin(case_keys(ids), self._keys) | np.asarray(ids.is_null())
        if chosen.any():
            self._log.add(rows.some(np.flatnonzero(chosen)))

    def refuse(self, refusal: Refusal) -> None:
        """Adds a row that cannot be split."""
        self._log.refuse(refusal)

    def finish(self) -> None:
        """Ends the file."""
        self._log.finish()


def _is_short(column: pa.Array) -> bool:
    return pa.types.is_string(column.type) and int(np.diff(text_offsets(column)).max(initial=0)) <= _SHORT


def _codes(column: Coded, names: Names) -> Ints:
    """Returns the code of each text, and -1 where there is none."""
    return np.append(names.codes(column.values), -1).astype(np.int32)[column.codes]
