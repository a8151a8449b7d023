"""Puts the events of many cases in the order of their steps: by case, time and place in the file.

Times of one case and the number of the case are packed into one number where they fit, because NumPy sorts whole
numbers many times faster than it sorts by several columns. The order is that of `column_reading.tasks`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opus_pipelines.column_reading.tasks import NO_WORK, START, Spans, repeated_events, tasks_of
from opus_pipelines.column_reading.times import NO_TIME
from opus_pipelines.discovery.case_keys import Keys
from opus_pipelines.discovery.event_parts import Columns
from opus_pipelines.event_logs.arrow_arrays import Bools, Ints, Longs
from opus_pipelines.event_logs.step_arrays import begins_anew

_UNITS = (60_000_000, 1_000_000, 1_000, 1)  # microseconds: times are counted in the largest that they all share
_BITS = 63


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


def in_order(events: Columns, interval: bool, has_work: bool) -> Ordered:
    """Returns the steps of events, which stand in the order of the file.

    Left out are cases in which an event may occur twice, and, if the log has no start and no complete, those with
    another standard transition: what becomes of it depends on events that are read otherwise.
    """
    if not len(events["case"]):
        nothing = np.zeros(0, np.int64)
        return Ordered(nothing, nothing, nothing, 0, np.zeros(0, np.uint64))
    plain = not interval and not (events["time"] == NO_TIME).any()
    if (kind := events.get("kind")) is not None:
        plain = plain and not ((kind == START) | (kind == NO_WORK)).any()
    if not plain:
        return _by_rules(events, interval, has_work)
    case, order, starts = _by_case(events["case"])
    lengths = np.diff(np.append(starts, len(order)))
    packed = _Packed.of(case, order, events)
    if packed is None:
        return _by_rules(events, interval, has_work)
    if (found := packed.without_ties()) is not None:
        return Ordered(lengths, *found, 0, np.zeros(0, np.uint64))
    order, tied = packed.order()
    repeated = _repeated(events, order[tied], case[tied], interval)
    if repeated.any():
        unusual = np.unique(events["case"][order[tied][repeated]])
        return in_order(without(events, unusual), interval, has_work)._replace(unusual=unusual)
    activity = events["activity"][order].astype(np.int64)
    return Ordered(lengths, activity, events["time"][order], 0, np.zeros(0, np.uint64))


def without(events: Columns, unusual: Keys) -> Columns:
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


@dataclass(frozen=True)
class _Packed:
    """Events in some order by case (`rows`), each as one number: its case, and its time after `least` in `unit`s.

    `bits` are those of the time.
    """

    keys: Longs
    rows: Longs
    activity: Ints
    least: int
    unit: int
    bits: int

    @classmethod
    def of(cls, case: Ints, rows: Longs, events: Columns) -> "_Packed | None":
        """Packs events. `case` has the number of the case of each row. None: the numbers are too large."""
        moments = events["time"][rows]
        least = int(moments.min())
        moments = moments - least
        unit = next(unit for unit in _UNITS if unit == 1 or not (moments % unit).any())
        if unit > 1:
            moments //= unit
        bits = int(moments.max()).bit_length()
        if int(case[-1]).bit_length() + bits > _BITS:
            return None
        return cls(case.astype(np.int64) << bits | moments, rows, events["activity"][rows], least, unit, bits)

    def without_ties(self) -> tuple[Longs, Longs] | None:
        """Returns activity and time of each event by case and time.

        None: two events of a case have the same time, or the numbers are too large.
        """
        width = int(self.activity.max()).bit_length()
        if (int(self.keys[-1]) >> self.bits).bit_length() + self.bits + width > _BITS:
            return None
        whole = np.sort(self.keys << width | self.activity)
        by_time = whole >> width
        if (by_time[1:] == by_time[:-1]).any():
            return None
        moments = by_time & ((1 << self.bits) - 1)
        return whole & ((1 << width) - 1), moments * self.unit + self.least

    def order(self) -> tuple[Longs, Bools]:
        """Returns the rows by case, time and place, and which of them have the time of another of their case."""
        by_time = np.argsort(self.keys)
        keys, rows = self.keys[by_time], self.rows[by_time]
        same = keys[1:] == keys[:-1]
        tied = np.zeros(len(rows), bool)
        tied[1:] |= same
        tied[:-1] |= same
        places = np.flatnonzero(tied)
        rows[places] = rows[places][np.lexsort((rows[places], keys[places]))]
        return rows, tied


def _by_rules(events: Columns, interval: bool, has_work: bool) -> Ordered:
    """Returns the steps by the rules of `column_reading.tasks`, which pair starts with completes."""
    order = np.argsort(events["case"], kind="stable")
    keys = events["case"][order]
    unusual = keys[_repeated(events, order, _numbers(keys), interval)]
    kind = _of("kind", events, order)
    if not has_work:
        unusual = np.concatenate([unusual, keys[kind == NO_WORK]])
    if len(unusual):
        unusual = np.unique(unusual)
        stay = ~np.isin(keys, unusual)
        order, keys, kind = order[stay], keys[stay], kind[stay]
    case = _numbers(keys)
    cases = int(case[-1]) + 1 if len(case) else 0
    tasks = tasks_of(case, _spans(events, order, interval), kind, _run(events, order), has_work)
    lengths = np.bincount(tasks.case, minlength=cases)
    activity = events["activity"][order][tasks.own].astype(np.int64)
    seen = np.where(tasks.started != NO_TIME, tasks.started, tasks.ended)
    return Ordered(lengths, activity, seen, tasks.not_work, unusual)


def _numbers(keys: Keys) -> Ints:
    """Returns the number of each case, by keys of which equal ones stand together."""
    return np.cumsum(begins_anew(keys), dtype=np.int32) - np.int32(1)


def _repeated(events: Columns, rows: Longs, case: Ints, interval: bool) -> Bools:
    return repeated_events(case, _spans(events, rows, interval), _of("kind", events, rows), _run(events, rows))


def _spans(events: Columns, rows: Longs, interval: bool) -> Spans:
    times: dict[str, Longs] = {name: events[name][rows] for name in ("time", "start", "end") if name in events}
    return Spans.of(times, interval)


def _run(events: Columns, rows: Longs) -> Longs:
    return events["activity"][rows].astype(np.int64) << 32 | (_of("instance", events, rows) + 1)


def _of(name: str, events: Columns, rows: Longs) -> Ints:
    return events[name][rows] if name in events else np.zeros(len(rows), np.int32)
