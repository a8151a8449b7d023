"""Converts plain XES traces to implementations, a block at a time, as `xes` and `assembler` do record by record.

What a column cannot decide is left to the reading by records: `read` then returns None.
"""

import numpy as np

from opus_pipelines.history.columns.blocks import CaseBlocks
from opus_pipelines.history.columns.cases import Maps
from opus_pipelines.history.columns.tasks import TooLongError
from opus_pipelines.history.columns.times import NO_TIME, microseconds
from opus_pipelines.history.columns.values import Level, UnusualError
from opus_pipelines.history.formats.xes_columns.scan import Scanned, scan
from opus_pipelines.history.records.arrow_arrays import Longs, numbers
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError

_MOST_KEYS = 1 << 14


class ColumnarTraces:
    """Reads blocks of plain traces of one file into `sink`.

    `usable`: columns can do all that the settings require.
    """

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        self._settings, self._sink, self._id_key = settings, sink, maps.id_key
        self._plan = maps.events.plan()
        self._blocks = CaseBlocks(settings, maps, sink)
        self.usable = self._blocks.usable and not self._plan.combines

    def read(self, padded: bytes) -> int | None:
        """Reads whole traces (padded, see `scan`).

        Returns the number of events, or None if the records must be read one by one.
        """
        try:
            scanned = scan(padded) if self.usable else None
            return None if scanned is None else self._block(*levels(scanned))
        except (UnusualError, TooLongError, BadValueError):
            return None

    def _block(self, traces: Level, events: Level) -> int:
        for level in (traces, events) if self._sink.redactor.active else ():
            level.redact(self._sink.redactor.flat)
        self._blocks.ids(traces)
        return self._blocks.add(traces, events, {"time": self._times(events)}, self._sink.log_has_work)

    def _times(self, events: Level) -> Longs:
        places = events.places(self._plan.keys["time"])
        known = places >= 0
        moments = np.full(events.rows, NO_TIME, np.int64)
        if known.any():
            moments[known] = microseconds(
                events.scanned.values(places[known]), self._plan.times, plain=not self._settings.time_format
            )
        return moments


def levels(scanned: Scanned) -> tuple[Level, Level]:
    """Returns traces and events. Raises UnusualError if a record has a key twice, or an empty key."""
    keys = scanned.keys().dictionary_encode()
    names, codes = keys.dictionary.to_pylist(), numbers(keys.indices, np.int32)
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
