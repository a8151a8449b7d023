"""Converts events to Task Implementations, a block of whole cases at a time.

The rules are those of `history.records.lifecycles`, with running counts instead of queues.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.columns.values import Coded
from opus_pipelines.history.records.arrow_arrays import Bools, Floats, Ints, Longs
from opus_pipelines.history.records.arrow_batches import mix_bits

OTHER, START, COMPLETE, NO_WORK = range(4)
_EXACT = 2**53  # microseconds that a float still holds
_STEP = np.uint64(0x9E3779B97F4A7C15)


class TooLongError(ValueError):
    """The difference of two times is too large for a float."""


@dataclass(frozen=True)
class Spans:
    """The times of events: the one that orders it, and for events that state start and end, all that they state.

    `begins` and `finishes` are the times of the task; `start` and `end` are stated. NO_TIME where unknown.
    """

    order: Longs
    begins: Longs
    finishes: Longs
    start: Longs | None = None
    end: Longs | None = None

    @classmethod
    def of(cls, moments: Mapping[str, Longs], interval: bool) -> "Spans":
        """Returns the times by `time`, and by `start` and `end` if events are intervals; one of the three is there."""
        unknown = np.full(len(next(iter(moments.values()))), NO_TIME, np.int64)
        moment = moments.get("time", unknown)
        if not interval:
            return cls(moment, moment, moment)
        start, end = moments.get("start", unknown), moments.get("end", unknown)
        first = np.where(start != NO_TIME, start, np.where(end != NO_TIME, end, moment))
        last = np.where((start != NO_TIME) | (end != NO_TIME), end, moment)
        return cls(first, first, last, start, end)


@dataclass
class Tasks:
    """The tasks of a block, in execution order.

    `own` is the event of each task, and `done` the event that completed it, else -1. `began` and `finished` bound the
    working time, where both are known.
    """

    case: Ints
    own: Ints
    done: Ints
    started: Longs  # NO_TIME where unknown
    ended: Longs
    began: Longs
    finished: Longs
    not_work: int

    def first_of_case(self) -> Bools:
        """Returns which tasks are the first of their case."""
        first: Bools = np.diff(self.case, prepend=-1) != 0
        return first

    def position(self) -> Ints:
        """Returns the position of each task in its case."""
        first = self.first_of_case()
        places = np.arange(len(self.case), dtype=np.int32)
        return places - np.maximum.accumulate(np.where(first, places, 0)).astype(np.int32)


def tasks_of_block(case: Ints, spans: Spans, kind: Ints, run: Longs, log_has_work: bool) -> Tasks:
    """Returns the tasks of events in file order.

    The arrays have one element per event: case (ascending), kind of transition, and number of task and instance.
    """
    order = _in_order(case, spans.order)
    if log_has_work:
        order = order[kind[order] != NO_WORK]
    if spans.start is not None and spans.end is not None:  # each event is a task of its own
        own = order.astype(np.int32)
        nobody = np.full(len(own), -1, np.int32)
        ends = (spans.begins[own], spans.finishes[own], spans.start[own], spans.end[own])
        return Tasks(case[own], own, nobody, *ends, len(case) - len(order))
    completed_by, taken = _pairs(case[order], kind[order], run[order])
    done = np.where(completed_by >= 0, order[completed_by], -1)[~taken].astype(np.int32)
    own = order[~taken].astype(np.int32)
    time = spans.order
    completed = np.where(done >= 0, time[done], NO_TIME)
    ended = np.where(kind[own] == START, completed, time[own])
    return Tasks(case[own], own, done, time[own], ended, time[own], completed, len(case) - len(order))


def runs(activity: Coded, instance: Coded) -> Longs:
    """Returns the number of activity and instance of every event, equal for equal pairs."""
    return activity.codes.astype(np.int64) * (len(instance.values) + 1) + instance.codes + 1


def repeated_events(case: Ints, spans: Spans, kind: Ints, run: Longs) -> Bools:
    """Tells which events may equal another of their case. Events without a time never do.

    Their numbers are compared by a 64-bit hash, so that some that differ may be named, but none that repeats is missed.
    """
    total = np.zeros(len(case), np.uint64)
    for column in (case, spans.order, run, kind, *(() if spans.end is None else (spans.finishes,))):
        total = mix_bits(total * _STEP + column.astype(np.int64).view(np.uint64))
    total[spans.order == NO_TIME] = np.arange(np.count_nonzero(spans.order == NO_TIME), dtype=np.uint64)
    ordered = np.sort(total)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return np.isin(total, twice) if len(twice) else np.zeros(len(case), bool)


def between(before: Longs, after: Longs) -> tuple[Floats, Bools]:
    """Returns the milliseconds from one time to another, and where both are known. Raises TooLongError."""
    known = (before != NO_TIME) & (after != NO_TIME)
    difference = np.where(known, after, 0) - np.where(known, before, 0)
    if len(difference) and max(int(difference.max()), -int(difference.min())) >= _EXACT:
        raise TooLongError
    return difference / 1000, known


def waits(tasks: Tasks) -> tuple[Floats, Bools]:
    """Returns the milliseconds from the end of the preceding task, and where that is known and not negative."""
    previous = np.roll(tasks.ended, 1)
    gaps, known = between(previous, tasks.started)
    return gaps, known & ~tasks.first_of_case() & (gaps >= 0)


def _in_order(case: Ints, time: Longs) -> Longs:
    """Sorts events by time within each case, then by position.

    An event without a time stays behind the one before it.
    """
    places = np.arange(len(case))
    same_case = np.diff(case, prepend=-1) == 0
    if (time == NO_TIME).any():
        time = time[np.maximum.accumulate(np.where((time != NO_TIME) | ~same_case, places, 0))]
    if (time[1:] >= time[:-1])[same_case[1:]].all():
        return places
    return np.lexsort((time, case))


def _pairs(case: Ints, kind: Ints, run: Longs) -> tuple[Longs, Bools]:
    """Pairs starts with completes, first in first out.

    Returns, for every event, the position of the event that completes it (-1: none), and whether it completes another.
    """
    completed_by, taken = np.full(len(case), -1, np.int64), np.zeros(len(case), bool)
    if not (kind == START).any():
        return completed_by, taken
    places = np.flatnonzero((kind == START) | (kind == COMPLETE))
    group = case[places] * (np.int64(run.max()) + 1) + run[places]
    places = places[np.argsort(group, kind="stable")]
    group = case[places] * (np.int64(run.max()) + 1) + run[places]
    is_start = kind[places] == START
    fresh = np.diff(group, prepend=-1) != 0
    number = np.cumsum(fresh) - 1
    level = np.cumsum(np.where(is_start, 1, -1))
    level -= (level - np.where(is_start, 1, -1))[fresh][number]
    stride = number * (2 * len(places) + 2)
    lowest = np.minimum(np.minimum.accumulate(level - stride) + stride, 0)
    before = np.where(fresh, 0, np.roll(lowest, 1))
    matched = ~is_start & (level >= before)
    starts = places[is_start]
    starts_before = (np.cumsum(is_start) - is_start)[fresh][number]
    matched_before = np.cumsum(matched) - matched
    rank = matched_before - matched_before[fresh][number]
    completed_by[starts[(starts_before + rank)[matched]]] = places[matched]
    taken[places[matched]] = True
    return completed_by, taken
