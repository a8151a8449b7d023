"""Reads flat logs by columns: a row is an event, and the rows of a case may be anywhere.

Rows are collected as columns. At the end of the file they are grouped by case and built into implementations a block of
cases at a time. Cases that have an unusual row - a value to reject, an event that may occur twice, a case joined from
several files - go row by row to the reading by records, so that both ways give the same rows, rejects and counts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.column_reading.blocks import CaseBlocks
from opus_pipelines.column_reading.cases import Maps
from opus_pipelines.column_reading.flat_rows import Rows, as_texts, redacted, times_of
from opus_pipelines.column_reading.flat_texts import FlatTexts, coded_texts, in_one, together
from opus_pipelines.column_reading.row_checks import RowChecks
from opus_pipelines.column_reading.tasks import (
    COMPLETE,
    NO_WORK,
    START,
    Spans,
    TooLongError,
    repeated_events,
    runs,
)
from opus_pipelines.column_reading.times import NO_TIME
from opus_pipelines.column_reading.values import Coded, Level, UnusualError
from opus_pipelines.event_logs.arrow_arrays import Bools, Ints, Longs, numbers
from opus_pipelines.event_logs.assembler import Assembler
from opus_pipelines.event_logs.column_mapping import ATTRIBUTE, OF_CASE, unprefixed
from opus_pipelines.event_logs.records import HOPELESS
from opus_pipelines.event_logs.source_settings import SourceSettings
from opus_pipelines.event_logs.values import BadValueError

BLOCK_EVENTS = 400_000  # of whole cases that are built at once
_BLOCK_CELLS = 1 << 24
_ACTOR_GROUP = "actor_group"
_TIMES = ("start", "end", "time")


class Records(Protocol):
    """Reads single rows of the same file, into the same sink."""

    def row(self, position: int, fields: dict[str, Any], is_redacted: bool = False) -> None:
        """Adds one row."""
        ...

    def refuse(self, position: int, code: str, reason: str, record: str, case_id: str | None = None) -> None:
        """Rejects a row that cannot be split."""
        ...

    def finish(self) -> None:
        """Hands all cases to the sink."""
        ...


@dataclass(frozen=True)
class Refusal:
    """A row that cannot be split into columns, with its text and its case, if that is known."""

    position: int
    code: str
    reason: str
    record: str
    case_id: str | None


@dataclass(frozen=True)
class _Part:
    """Rows that were added together: their redacted columns, times by name, and which may have a value to reject.

    `bad_rows` has the latter as they were written.
    """

    rows: Rows
    moments: Mapping[str, Longs]
    bad: Bools
    bad_rows: Rows


class FlatLog:
    """Collects the rows of one file.

    A caller gives Arrow batches to `add`, in the order of the file or of any part of it that has all rows of its cases,
    and then calls `finish`, which hands the implementations to `sink` as Arrow batches. So a reader of parts of a file
    (byte ranges of a CSV, row groups of a Parquet file) distributes the batches by case first.

    `records` creates the reading by records, for the rows that need it. Raises UnusualError, here, in `add`, or in
    `finish` before anything is handed on, if the whole file must be read by records.
    """

    def __init__(self, maps: Maps, settings: SourceSettings, sink: Assembler, records: Callable[[], Records]) -> None:
        self._maps, self._settings, self._sink, self._records = maps, settings, sink, records
        self._plan = maps.events.plan()
        self._blocks = CaseBlocks(settings, maps, sink)
        self._checks = RowChecks(settings, maps, sink)
        keys = self._plan.keys
        self._times = {name: keys[name] for name in _TIMES if keys[name]}
        self._compared = {maps.id_key, keys["activity"], keys["transition"], keys["instance"]}
        self._zero_is_missing = {keys["transition"], keys["instance"], keys["task_title"]}
        self._parts: list[_Part] = []
        self._refusals: list[Refusal] = []
        others = {key for _, _, key in (*self._plan.fields, *self._plan.amounts)} | set(maps.own.keys)
        others |= {key for name, key in keys.items() if name not in _TIMES}
        is_forgotten = sink.is_forgotten(settings.constant("client"))
        if not self._blocks.usable or self._plan.template is not None or is_forgotten:
            raise UnusualError
        if others & set(self._times.values()) or self._plan.group in self._times.values():
            raise UnusualError

    def add(self, rows: Rows) -> None:
        """Adds rows of the file."""
        if not len(rows.positions):
            return
        columns: dict[str, pa.Array] = {}
        for name, column in rows.columns.items():
            is_moment = name in self._times.values() and pa.types.is_timestamp(column.type)
            if is_moment and not self._settings.time_format and not self._sink.redactor.names(name):
                columns[name] = column
                continue
            kept = redacted(self._texts(name, column), name, self._sink.redactor)
            if kept is not None:
                columns[name] = kept
        moments, bad = {}, np.zeros(len(rows.positions), bool)
        for name, key in self._times.items():
            if key in columns:
                moments[name], unread = times_of(columns[key], self._plan.times, not self._settings.time_format)
                bad |= unread
        coded = {
            name: coded_texts(column) for name, column in columns.items() if not pa.types.is_timestamp(column.type)
        }
        bad |= self._checks.bad(coded, len(bad))
        if "start" in moments and "end" in moments:
            start, end = moments["start"], moments["end"]
            bad |= (start != NO_TIME) & (end != NO_TIME) & (end < start)
        places = np.flatnonzero(bad)
        some = pa.array(places.tolist(), pa.int64())
        bad_rows = Rows({name: column.take(some) for name, column in rows.columns.items()}, rows.positions[places])
        self._parts.append(_Part(Rows(columns, rows.positions), moments, bad, bad_rows))

    def _texts(self, name: str, column: pa.Array) -> pa.Array:
        return as_texts(column, name in self._zero_is_missing, name in self._compared)

    def refuse(self, refusal: Refusal) -> None:
        """Adds a row that cannot be split."""
        self._refusals.append(refusal)

    def finish(self) -> None:
        """Ends the file and hands over all cases."""
        if not self._parts:
            raise UnusualError
        table = _Table.of(self._parts, self._moments_of_all(), frozenset(self._times.values()))
        self._check_that_it_is_a_log(table)
        case = table.columns[self._maps.id_key]
        texts, starts = in_one(table.columns)
        unusual, has_work = self._unusual_cases(table, case)
        by_records = table.bad | ((case.codes >= 0) & unusual[case.codes])
        records = self._records()
        for position, read in merge(self._refused(records), self._odd(records, by_records), key=itemgetter(0)):
            read()
            self._sink.report_progress(position)
        records.finish()
        left = self._read_blocks(table, _Texts(texts, starts), np.flatnonzero(~by_records), has_work)
        if left is not None:
            rest = self._records()
            for _, read in self._odd(rest, left):
                read()
            rest.finish()

    def _moments_of_all(self) -> list[str]:
        return [name for name in self._times if any(name in part.moments for part in self._parts)]

    def _check_that_it_is_a_log(self, table: "_Table") -> None:
        """Raises UnusualError if the reading by records might find that hardly a row can be used."""
        rejected = np.sort(np.concatenate([table.positions[table.bad], [r.position for r in self._refusals]]))
        number = np.arange(1, len(rejected) + 1)
        used = np.searchsorted(table.positions[~table.bad], rejected)
        if ((number > HOPELESS) & (number > 99 * used)).any():
            raise UnusualError

    def _unusual_cases(self, table: "_Table", case: Coded) -> tuple[Bools, bool]:
        """Tells which cases must be read by records, and whether the log has a start or a complete."""
        unusual = np.zeros(max(1, len(case.values)), bool)
        unusual[case.codes[table.bad & (case.codes >= 0)]] = True
        refused = pa.array([r.case_id for r in self._refusals if r.case_id is not None], pa.string())
        unusual[: len(case.values)] |= _is_in(case.values, refused)
        if held := self._sink.held:
            unusual[: len(case.values)] |= _is_in(case.values, pa.array(sorted(held), pa.string()))
        keys, good = self._plan.keys, ~table.bad
        kind = self._blocks.kinds(table.column(keys["transition"]))
        has_work = bool((((kind == START) | (kind == COMPLETE)) & good).any()) or self._sink.log_has_work
        if not has_work:
            unusual[case.codes[good & (kind == NO_WORK)]] = True
        run = runs(table.column(keys["activity"]), table.column(keys["instance"]))
        repeated = repeated_events(case.codes, Spans.of(table.moments, self._plan.interval), kind, run)
        unusual[case.codes[repeated & (case.codes >= 0)]] = True
        return unusual, has_work

    def _refused(self, records: Records) -> Iterator[tuple[int, Callable[[], None]]]:
        for r in sorted(self._refusals, key=lambda r: r.position):
            yield r.position, lambda r=r: records.refuse(r.position, r.code, r.reason, r.record, r.case_id)  # type: ignore[misc]

    def _odd(self, records: Records, chosen: Bools) -> Iterator[tuple[int, Callable[[], None]]]:
        """Yields the chosen rows in file order, with what reads them."""
        begin = 0
        for part in self._parts:
            end = begin + len(part.bad)
            mine = np.flatnonzero(chosen[begin:end])
            is_bad = part.bad[mine]
            written = iter(part.bad_rows.records(np.flatnonzero(chosen[begin:end][part.bad])))
            usable = iter(part.rows.records(mine[~is_bad]))
            for row, bad in zip(mine.tolist(), is_bad.tolist(), strict=True):
                position = int(part.rows.positions[row])
                fields = next(written if bad else usable)
                yield position, lambda p=position, f=fields, bad=bad: records.row(p, f, not bad)  # type: ignore[misc]
            begin = end

    def _read_blocks(self, table: "_Table", texts: "_Texts", rows: Longs, has_work: bool) -> Bools | None:
        """Builds all cases of these rows by columns. Returns the rows of blocks that must be read by records."""
        codes = table.columns[self._maps.id_key].codes[rows]
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            rows, codes = rows[order], codes[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        size = max(1, min(BLOCK_EVENTS, _BLOCK_CELLS // max(1, len(table.columns))))
        left = None
        for begin, end in _bounds(first, len(rows), size):
            chosen = rows[begin:end]
            try:
                self._block(table, texts, chosen, has_work)
            except (UnusualError, TooLongError, BadValueError):
                left = np.zeros(len(table.bad), bool) if left is None else left
                left[chosen] = True
        return left

    def _block(self, table: "_Table", texts: "_Texts", rows: Longs, has_work: bool) -> None:
        codes = table.columns[self._maps.id_key].codes[rows]
        is_first = np.diff(codes, prepend=-1) != 0
        case = (np.cumsum(is_first) - 1).astype(np.int32)
        flat = FlatTexts(texts.texts, int(case[-1]) + 1, case)
        columns = {}
        for name, column in table.columns.items():
            found = column.codes[rows]
            if (found >= 0).any():
                columns[name] = np.where(found >= 0, found + np.int32(texts.starts[name]), np.int32(-1))
        if self._plan.group in columns:
            if _ACTOR_GROUP in columns or self._maps.events.role(_ACTOR_GROUP) != ATTRIBUTE:
                raise UnusualError
            columns[_ACTOR_GROUP] = columns[self._plan.group]
        ids: Ints = columns[self._maps.id_key][is_first]
        traces = Level(flat.traces, {self._maps.id_key: ids}, flat)
        moments = {name: times[rows] for name, times in table.moments.items()}
        self._blocks.add(traces, Level(len(rows), columns, flat), moments, has_work)


@dataclass(frozen=True)
class _Texts:
    """The distinct texts of all columns, and where those of each column begin."""

    texts: pa.Array
    starts: Mapping[str, int]


@dataclass(frozen=True)
class _Table:
    """All rows of a file."""

    columns: Mapping[str, Coded]
    moments: Mapping[str, Longs]
    positions: Longs
    bad: Bools

    @classmethod
    def of(cls, parts: list[_Part], moments: list[str], left_out: frozenset[str]) -> "_Table":
        """Puts the parts together, without the columns of times."""
        names = [name for name in parts[0].rows.columns if name not in left_out]
        columns = {name: together([part.rows.columns[name] for part in parts]) for name in names}
        bad = np.concatenate([part.bad for part in parts])
        times = {name: np.concatenate([part.moments[name] for part in parts]) for name in moments}
        unknown = {"time": np.full(len(bad), NO_TIME, np.int64)}
        return cls(columns, times or unknown, np.concatenate([part.rows.positions for part in parts]), bad)

    def column(self, name: str) -> Coded:
        """Returns the column of that name, without values if there is none."""
        missing = Coded(np.full(len(self.bad), -1, np.int32), pa.array([], pa.string()))
        return self.columns.get(name, missing)


def _is_in(values: pa.Array, wanted: pa.Array) -> Bools:
    return numbers(pc.is_in(values, wanted).cast(pa.uint8()), np.uint8).astype(bool)


def _bounds(first: Longs, rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields the bounds of blocks of whole cases, each of about `size` rows."""
    begin = 0
    while begin < rows:
        after = np.searchsorted(first, begin + size)
        end = int(first[after]) if after < len(first) else rows
        yield begin, end
        begin = end


def only_one_attribute_each(header: list[str], maps: Maps) -> bool:
    """Tells whether no two columns are the same attribute of a case under two prefixes."""
    names = [unprefixed(name) for name in header if maps.events.role(name) == OF_CASE]
    return len(set(names)) == len(names)
