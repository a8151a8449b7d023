"""Puts the events of many cases in the order of their steps: by case, time and place in the file.

The case, the time and the activity of an event are packed into one number where they fit, because NumPy sorts whole
numbers many times faster than it sorts by several columns. The order is that of `history.columns.tasks`.
"""

from typing import NamedTuple

import numpy as np

from opus_pipelines.history.columns.tasks import NO_WORK, START, Spans, repeated_events, tasks_of_block
from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.discovery.case_keys import Keys
from opus_pipelines.history.discovery.event_parts import EventColumns
from opus_pipelines.history.records.arrow_arrays import Bools, Ints, Longs
from opus_pipelines.history.records.step_arrays import begins_anew, distinct

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


def in_order(events: EventColumns, interval: bool, has_work: bool, has_ties: bool = False) -> Ordered:
    """Returns the steps of events, which stand in the order of the file.

    `has_ties`: events of one case are expected to have the same time, so what works only without them is not tried.

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
    times = _Times.of(events["time"])
    if not has_ties and (found := _without_ties(events["case"], times, events["activity"])) is not None:
        return found
    case, rows, starts = _by_case(events["case"])
    lengths = np.diff(np.append(starts, len(rows)))
    if int(case[-1]).bit_length() + times.bits > _BITS:
        return _by_rules(events, interval, has_work)
    order, tied = _by_time(case.astype(np.int64) << times.bits | times.units[rows], rows)
    repeated = _repeated(events, order[tied], case[tied], interval)
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


def _by_rules(events: EventColumns, interval: bool, has_work: bool) -> Ordered:
    """Returns the steps by the rules of `history.columns.tasks`, which pair starts with completes."""
    order = np.argsort(events["case"], kind="stable")
    keys = events["case"][order]
    unusual = keys[_repeated(events, order, _numbers(keys), interval)]
    kind = _of("kind", events, order)
    if not has_work:
        unusual = np.concatenate([unusual, keys[kind == NO_WORK]])
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
