"""Reads the columns of rows of a flat log: redacted texts, times, and which rows may have a value to reject.

The collection of rows into implementations and the counting of pairs both begin here, so that they agree on every row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.blocks import CaseBlocks
from opus_pipelines.history.columns.cases import Maps
from opus_pipelines.history.columns.flat_rows import Rows, as_texts, redacted, times_of
from opus_pipelines.history.columns.flat_texts import coded_texts
from opus_pipelines.history.columns.row_checks import RowChecks
from opus_pipelines.history.columns.tasks import COMPLETE, START
from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.columns.values import Coded, UnusualError
from opus_pipelines.history.records.arrow_arrays import Bools, Ints, Longs
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.records import HOPELESS
from opus_pipelines.history.records.source_settings import SourceSettings

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
        self.plan = maps.events.plan()
        self.blocks = CaseBlocks(settings, maps, sink)
        self._checks = RowChecks(settings, maps, sink)
        keys = self.plan.keys
        self.times = {name: keys[name] for name in _TIMES if keys[name]}
        self._compared = {keys["activity"], keys["transition"], keys["instance"]}
        self._compared |= {maps.id_key} if encodes_cases else set()
        self._zero_is_missing = {keys["transition"], keys["instance"], keys["task_title"]}
        self._good = self._bad = 0
        self.refused = 0
        self.has_work = False
        others = {key for _, _, key in (*self.plan.fields, *self.plan.amounts)} | set(maps.own.keys)
        others |= {key for name, key in keys.items() if name not in _TIMES}
        self.named = {key for key in others | set(self.times.values()) if key}
        is_forgotten = sink.is_forgotten(settings.constant("client"))
        if not self.blocks.usable or self.plan.template is not None or is_forgotten:
            raise UnusualError
        if others & set(self.times.values()) or self.plan.group in self.times.values():
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
                moments[name], unread = times_of(columns[key], self.plan.times, not self._settings.time_format)
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
        if (transition := coded.get(self.plan.keys["transition"])) is not None:
            kind = self.blocks.kinds(transition)
            self.has_work |= bool((((kind == START) | (kind == COMPLETE)) & ~bad).any())
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
