"""Counts the edges of a flat log by columns, without making implementations.

Rows are read as `FlatLog` reads them. Of each stay a number for its case, codes for its activity, transition and
instance, and its times. Cases that have an unusual row (a value to reject, an event that may occur twice) are left out,
and their keys are kept, so that the ordinary reading can read them alone.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.flat_log import FlatLog, Refusal
from opus_pipelines.history.columns.flat_rows import Rows
from opus_pipelines.history.columns.row_reader import RowReader
from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.columns.values import Coded, UnusualError
from opus_pipelines.history.discovery.case_keys import Keys, case_keys
from opus_pipelines.history.discovery.event_parts import EVENTS_IN_MEMORY, EventColumns, EventParts
from opus_pipelines.history.discovery.ordered_events import in_order, without
from opus_pipelines.history.discovery.tallies import Names, Steps, Tally
from opus_pipelines.history.records.arrow_arrays import Ints, Longs, strings, text_offsets
from opus_pipelines.history.records.records import Counts
from opus_pipelines.history.records.step_arrays import distinct
from opus_pipelines.history.records.values import LONGEST_TEXT

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
        if any(name == "weight" for name, _, _ in reader.maps.own.plan().fields):
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
        read, keys = self._reader.read(self._needed(rows)), self._reader.plan.keys
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
        steps = in_order(events, self._reader.plan.interval, self.has_work, self._has_ties)
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
