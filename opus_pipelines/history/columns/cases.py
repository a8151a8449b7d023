"""Converts whole cases to implementations, a block at a time, as `assembler` does case by case.

Both give the same values and counts: the rules for tasks are those of `assembler.tasks_of`, with running counts instead
of queues, and those for costs are the ones of `money.price`, for tasks without token counts. What a column cannot
decide - a value to reject, an amount that is not in dollars, settings that combine an event's attributes - is left to
the reading by records: `CaseBlocks.add` then raises UnusualError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.schemas import IMPLEMENTATIONS, TASK_IMPLEMENTATION
from opus_pipelines.history.columns.values import (
    NO_TIME,
    Coded,
    Level,
    UnusualError,
    coded,
    dollars,
    later,
    maps,
    of_cases,
    only_dollars,
    parsed,
)
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import (
    Bools,
    Floats,
    Ints,
    Longs,
    array,
    booleans,
    mix_bits,
    numbers,
    repeated,
    strings,
    validity,
)
from opus_pipelines.history.records.assembler import CLOSES, OPENS, Assembler, Block, WorkEvidence
from opus_pipelines.history.records.column_mapping import (
    ATTRIBUTE,
    LAST_WINS,
    OF_CASE,
    OUTCOME,
    CaseMap,
    EventMap,
    succeeded,
    unprefixed,
)
from opus_pipelines.history.records.money import COST_PARTS, GROUP_ATTRIBUTES, MS_PER_HOUR, Rates
from opus_pipelines.history.records.raw import (
    ABORT,
    COMPLETE,
    FAIL,
    MEANINGS,
    NO_WORK,
    OTHER,
    RESUME,
    START,
    SUSPEND,
)
from opus_pipelines.history.records.source_settings import SourceSettings, Success

_EXACT = 2**53  # microseconds that a float still holds
_STEP = np.uint64(0x9E3779B97F4A7C15)


class UndecidedError(UnusualError):
    """Events state transitions, and nothing read so far tells whether the log states when work begins and ends."""


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

    The arrays have one element per event: case (ascending), kind of transition, and number of task and instance. No
    case has an event of `by_records`.
    """
    order = _in_order(case, spans.order)
    kind = _AS_WORK[kind] if log_has_work else np.zeros_like(kind)
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


_AS_WORK = np.array([OTHER, START, COMPLETE, NO_WORK, NO_WORK, NO_WORK, NO_WORK, COMPLETE, START, COMPLETE, NO_WORK])
_STATES = np.array([meaning in OPENS for meaning in MEANINGS]), np.array([meaning in CLOSES for meaning in MEANINGS])


def by_records(kind: Ints, has_work: bool, is_told: bool = False) -> Bools:
    """Tells which events make their cases ones for the reading by records.

    These are the ones that end work without success, or let it rest. Without `has_work` they are all that state a
    transition, because others may show later what it means; where all were read (`is_told`), each event is a task.
    """
    if not has_work:
        return np.zeros(len(kind), bool) if is_told else kind != OTHER
    found: Bools = (kind == ABORT) | (kind == FAIL) | (kind == SUSPEND) | (kind == RESUME)
    return found


def shows_work(kind: Ints, activity: Coded, evidence: WorkEvidence) -> bool:
    """Tells whether work begins and ends in these events, and adds what they show to the evidence."""
    if ((kind == START) | (kind == COMPLETE)).any():
        return True
    told = (activity.codes >= 0) & (kind != OTHER)
    named = [activity.values.take(array(np.unique(activity.codes[told & of[kind]]), pa.int32())) for of in _STATES]
    return bool(told.any()) and evidence.shows(named[0].to_pylist(), named[1].to_pylist())


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


_TEXTS = ("process_context", "title", "description")
_SETTLED = ("industry", "client", "contract")


@dataclass(frozen=True)
class Maps:
    """What the settings say of traces, of case values that events hold, and of events; `id_key` names the case."""

    trace: CaseMap
    own: CaseMap
    events: EventMap
    id_key: str


@dataclass(frozen=True)
class TasksOfCases:
    """The tasks of a block with the activity and the cost of each.

    `offsets` [cases + 1] are the positions where the tasks of each case begin.
    """

    tasks: Tasks
    activity: Coded
    cost_usd: pa.Array
    offsets: Ints


class CaseColumns:
    """Builds the columns of cases. `currency` is the key of the currency that a trace states."""

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        self._settings, self._trace_map, self._events, self._sink = settings, maps.trace, maps.events, sink
        trace, own = maps.trace, maps.own
        self.currency, self._own_currency = trace.currency_key, own.currency_key
        self._keys = {name: key for name, key, _ in trace.fields} | {"case_cost": trace.cost_key or ""}
        self._own_keys = {name: key for name, key, _ in own.fields} | {"case_cost": own.cost_key or ""}

    def ids(self, traces: Level, key: str) -> pa.Array:
        """Returns the id of every case. Raises UnusualError if one is missing or known already."""
        places = traces.places(key)
        texts = traces.scanned.values(places)
        names = set(texts.to_pylist())
        if (places < 0).any() or len(names) != len(texts) or self._sink.any_known(names):
            raise UnusualError
        return texts

    def columns(self, traces: Level, events: Level, of_tasks: TasksOfCases) -> dict[str, pa.Array]:
        """Returns the columns of all cases by name."""
        tasks, offsets = of_tasks.tasks, of_tasks.offsets
        rows, scanned = traces.rows, traces.scanned
        own = {name: self._value_places(name, traces, events) for name in (*self._keys, *self._own_keys)}
        none = np.full(rows, -1, np.int32)
        texts = {name: scanned.values(own.get(name, none)) for name in _TEXTS}
        for name in _SETTLED:
            constant = self._settings.constant(name)
            texts[name] = repeated(constant, pa.string(), rows) if constant else scanned.values(own.get(name, none))
        if any(self._sink.is_forgotten(client) for client in texts["client"].unique().to_pylist()):
            raise UnusualError
        moment = pa.timestamp("us", "UTC")
        started, ended = _least(tasks.started, offsets), _most(tasks.ended, offsets)
        expected = parsed(coded(scanned, own.get("expected_outcome", none)), values.boolean, pa.bool_())
        return texts | {
            "expected_outcome": expected.array(),
            "attributes": self._attributes(traces, events),
            "started_at": array(started, moment, started != NO_TIME),
            "ended_at": array(ended, moment, ended != NO_TIME),
            "success": self._success(traces, events, own, of_tasks.activity, offsets),
            "weight": self._weight(coded(scanned, own.get("weight", none))),
            "cost_usd": self._cost(traces, events, own["case_cost"], of_tasks.cost_usd, offsets),
        }

    def _value_places(self, name: str, traces: Level, events: Level) -> Ints:
        """Returns the positions of a case value.

        They are in the trace, else in the first event that has the value (for an outcome, in the last).
        """
        place = traces.places(self._keys.get(name))
        key = self._own_keys.get(name)
        if not key or key not in events.columns:
            return place
        last = name in LAST_WINS
        places = of_cases(events.places(key), events.event_trace, traces.rows, last)
        return np.where(places >= 0, places, place) if last else np.where(place >= 0, place, places)

    def _attributes(self, traces: Level, events: Level) -> pa.MapArray:
        columns = {key: places for key, places in traces.columns.items() if self._trace_map.wanted(key)}
        flat: set[str] = set()
        for key, places in events.columns.items():
            if self._events.role(key) == OF_CASE:
                name = unprefixed(key)
                if name in flat:
                    raise UnusualError
                flat.add(name)
                cases = of_cases(places, events.event_trace, traces.rows)
                own = columns.get(name)
                columns[name] = cases if own is None else np.where(own >= 0, own, cases)
        return maps(traces.scanned, columns.items(), traces.rows)

    def _weight(self, stated: Coded) -> pa.Array:
        constant = self._settings.weight
        if isinstance(constant, int):
            return repeated(constant, pa.int64(), len(stated.codes))
        return parsed(stated, values.weight, pa.int64()).array().fill_null(1)

    def _success(self, traces: Level, events: Level, own: dict[str, Ints], done: Coded, offsets: Ints) -> pa.Array:
        rule = self._settings.success
        for level, keys in ((traces, self._keys), (events, self._own_keys)):
            # each is read where it stands, whichever counts in the end
            level.parsed(keys.get("success"), values.boolean, pa.bool_())
        if rule.column is not None:
            places = own.get(OUTCOME, np.full(traces.rows, -1, np.int32))
            return parsed(coded(traces.scanned, places), partial(_by_column, rule), pa.bool_()).array()
        listed = next(
            (x for x in (rule.last_activity_in, rule.contains_activity, rule.contains_none_of) if x is not None), None
        )
        if listed is None:
            places = own.get("success", np.full(traces.rows, -1, np.int32))
            return parsed(coded(traces.scanned, places), values.boolean, pa.bool_()).array()
        among = np.array([text in listed for text in done.values.to_pylist()] or [False])[done.codes]
        some = offsets[1:] > offsets[:-1]
        if rule.last_activity_in is not None:
            last = np.zeros(traces.rows, bool)
            last[some] = among[offsets[1:][some] - 1]
            return booleans(last, some)
        before = np.concatenate(([0], np.cumsum(among)))
        contains = before[offsets[1:]] > before[offsets[:-1]]
        return booleans(contains if rule.contains_activity is not None else ~contains, some)

    def _cost(self, traces: Level, events: Level, places: Ints, cost: pa.Array, offsets: Ints) -> pa.Array:
        if (places >= 0).any():
            only_dollars(self._settings, traces.coded(self.currency), events.coded(self._own_currency))
        key, own = self._keys["case_cost"], self._own_keys["case_cost"]
        of_case = parsed(coded(traces.scanned, places), partial(dollars, self._sink.money, key or own), pa.float64())
        value, known = of_case.numbers()
        total, summed = _sums(cost, offsets)
        return array(np.where(known, value, total), pa.float64(), known | summed)


def _by_column(rule: Success, text: str) -> bool | None:
    return succeeded(rule, {}, text, [])


def _sums(cost: pa.Array, offsets: Ints) -> tuple[Floats, Bools]:
    """Sums the costs of the tasks of each case, exactly rounded, and returns where any cost is known."""
    known = validity(cost)
    total, some = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1, bool)
    if cost.null_count == len(cost):
        return total, some
    places = np.arange(len(cost)) if known is None else np.flatnonzero(known)
    figures = numbers(cost, np.float64)[places].tolist()
    bounds = np.searchsorted(places, offsets)
    some = bounds[1:] > bounds[:-1]
    for case in np.flatnonzero(some).tolist():
        total[case] = fsum(figures[bounds[case] : bounds[case + 1]])
    return total, some


def _most(times: Longs, offsets: Ints) -> Longs:
    latest = np.full(len(offsets) - 1, NO_TIME, np.int64)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        latest[some] = np.maximum.reduceat(times, offsets[:-1][some])
    return latest


def _least(times: Longs, offsets: Ints) -> Longs:
    latest = np.iinfo(np.int64).max
    earliest = np.full(len(offsets) - 1, latest, np.int64)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        earliest[some] = np.minimum.reduceat(np.where(times == NO_TIME, latest, times), offsets[:-1][some])
    return np.where(earliest == latest, NO_TIME, earliest)


_Figures = tuple[Floats, Bools]


def prices(
    amounts: Mapping[str, _Figures], duration: _Figures, actors: Sequence[Coded], actor_kind: Coded, rates: Rates
) -> dict[str, pa.Array]:
    """Returns `cost_usd`, its parts and `cost_basis` of every task.

    `amounts` are the stated amounts by column. `actors` are columns with names that may have a rate: the person's
    first, then roles and groups.
    """
    cost, stated = amounts["cost_usd"]
    parts = {name: amounts[name] for name in ("cost_compute_usd", "cost_model_usd", "cost_human_usd")}
    split = np.logical_or.reduce([known for _, known in parts.values()])
    total = np.zeros(len(cost))
    for value, known in parts.values():
        total = np.where(known, total + value, total)
    total = np.where(stated, cost, total)
    observed = stated | split
    rate, rated = _rates([*actors, actor_kind], rates)
    rated &= ~observed & duration[1]
    total = np.where(rated, duration[0] / MS_PER_HOUR * rate, total)
    known = observed | rated
    columns = {"cost_usd": array(total, pa.float64(), known), "cost_basis": _basis(observed, rated)}
    kinds = np.array(
        [list(COST_PARTS).index(k) if k in COST_PARTS else -1 for k in actor_kind.values.to_pylist()] or [-1]
    )
    kind = np.where(actor_kind.codes >= 0, kinds[actor_kind.codes], -1)
    whole = known & ~split
    for number, column in enumerate(COST_PARTS.values()):
        value, given = parts[column]
        mine = whole & (kind == number)
        columns[column] = array(np.where(mine, total, value), pa.float64(), given | mine)
    return columns


def _rates(columns: Sequence[Coded], rates: Rates) -> _Figures:
    """Returns the hourly rates in dollars, by the first column whose name has a rate."""
    rate, known = np.zeros(len(columns[0].codes)), np.zeros(len(columns[0].codes), bool)
    for column in columns:
        of_name = [rates.get(name) for name in column.values.to_pylist()] if rates else []
        if not any(isinstance(r, float) for r in of_name):
            continue
        value = np.array([r if isinstance(r, float) else np.nan for r in of_name])[column.codes]
        mine = ~known & (column.codes >= 0) & ~np.isnan(value)
        rate, known = np.where(mine, value, rate), known | mine
    return rate, known


def _basis(observed: Bools, rated: Bools) -> pa.Array:
    if not observed.any() and not rated.any():
        return repeated(None, pa.string(), len(observed))
    places: Ints = np.where(observed, 0, np.where(rated, 1, -1)).astype(np.int32)
    return Coded(places, strings(["observed", "rate"])).array()


_RECORDS_ONLY = frozenset({"model", "tokens_in", "tokens_out", "predecessors"})
_AMOUNTS = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd")


class CaseBlocks:
    """Hands blocks of whole cases of one file to `sink`.

    `usable`: columns can do all that the settings require of single events, without intervals and combined values.
    `is_told`: the file was read to its end, so that one without a start or a complete has none.
    """

    is_told = False

    def __init__(self, settings: SourceSettings, maps: Maps, sink: Assembler) -> None:
        self._settings, self._sink, self._events, self._id_key = settings, sink, maps.events, maps.id_key
        self._cases = CaseColumns(settings, maps, sink)
        fields = {field for field, _, _ in self._events.fields}
        self.usable = not (fields & _RECORDS_ONLY or self._events.keys["event_id"])

    def ids(self, traces: Level) -> pa.Array:
        """Returns the id of every case. Raises UnusualError if one is missing or known already."""
        return self._cases.ids(traces, self._id_key)

    def add(self, traces: Level, events: Level, moments: Mapping[str, Longs], has_work: bool, dropped: int = 0) -> int:
        """Builds the implementations of whole cases and returns the number of their events.

        `moments` has the times of the events, by `time`, or by `start`, `end` and `time` if the events are intervals.
        `has_work`: the log has a start or a complete elsewhere. `dropped`: duplicates that are left out already. Raises
        UnusualError or BadValueError, before anything is handed on, if the events must be read one by one, and
        UndecidedError if the rest of the file may tell more.
        """
        keys = self._events.keys
        activity = events.coded(keys["activity"])
        if (activity.codes < 0).any() or not all(text.strip() for text in activity.values.to_pylist()):
            raise UnusualError
        kind = self.kinds(events.coded(keys["transition"]))
        has_work = has_work or shows_work(kind, activity, self._sink.evidence)
        if by_records(kind, has_work, self.is_told).any():
            raise UnusualError if has_work else UndecidedError
        if not has_work and (kind != OTHER).any():
            self._sink.waited_for_work = True
        run = runs(activity, events.coded(keys["instance"]))
        case = events.event_trace
        spans = Spans.of(moments, self._events.interval)
        drops = self._settings.events.repeated == "drop"
        if drops and (repeated := repeated_events(case, spans, kind, run)).any():
            return self._without_duplicates(repeated, traces, events, moments, has_work)
        tasks = tasks_of_block(case, spans, kind, run, has_work)
        task_columns = self._task_columns(tasks, events, traces, activity)
        offsets = np.searchsorted(tasks.case, np.arange(traces.rows + 1)).astype(np.int32)
        of_tasks = Coded(activity.codes[tasks.own], activity.values)
        columns = self._cases.columns(traces, events, TasksOfCases(tasks, of_tasks, task_columns["cost_usd"], offsets))
        columns |= {
            "case_id": traces.scanned.values(traces.places(self._id_key)),
            "tasks": _lists(task_columns, offsets),
        }
        self._sink.block(Block(columns, events.rows + dropped, tasks.not_work, len(tasks.own), has_work, dropped))
        return events.rows + dropped

    def _without_duplicates(
        self, repeated: Bools, traces: Level, events: Level, moments: Mapping[str, Longs], has_work: bool
    ) -> int:
        """Does what `add` does without the events that equal an earlier one of their case in every column.

        Raises UnusualError where events are about the same and differ.
        """
        gone = events.twice(np.flatnonzero(repeated))
        if not len(gone):
            raise UnusualError
        kept = np.ones(events.rows, bool)
        kept[gone] = False
        rest = {name: times[kept] for name, times in moments.items()}
        return self.add(traces, events.some(kept), rest, has_work, len(gone))

    def kinds(self, transition: Coded) -> Ints:
        """Returns the kind of transition of every event: the place of its meaning in `raw.MEANINGS`."""
        kinds = [MEANINGS.index(self._events.meaning(text)) for text in transition.values.to_pylist()]
        return np.where(transition.codes >= 0, np.array([*kinds, OTHER], np.int32)[transition.codes], np.int32(OTHER))

    def _task_columns(self, tasks: Tasks, events: Level, traces: Level, activity: Coded) -> dict[str, pa.Array]:
        moment, number = pa.timestamp("us", "UTC"), pa.float64()
        key = activity.array(tasks.own)
        columns = {
            "task_key": key,
            "title": self._titles(tasks, events, key),
            "position": array(tasks.position(), pa.int32()),
        }
        parsed = self._parsed(tasks, events)
        stated = parsed.pop("duration_ms", None)
        spent, known = between(tasks.began, tasks.finished)
        if stated is not None:
            given, is_given = stated.numbers()
            spent, known = np.where(is_given, given, spent), known | is_given
        gaps, waited = waits(tasks)
        columns |= {
            "started_at": array(tasks.started, moment, tasks.started != NO_TIME),
            "ended_at": array(tasks.ended, moment, tasks.ended != NO_TIME),
            "duration_ms": array(spent, number, known),
            "wait_ms": array(gaps, number, waited),
        }
        columns |= {name: column.array() for name, column in parsed.items()}
        nobody = Coded(np.full(len(key), -1, np.int32), strings([]))
        amounts = {name: column.numbers() for name, column in self._amounts(tasks, events, traces).items()}
        names = (
            [self._key_of("actor"), *(n for n in GROUP_ATTRIBUTES if self._events.role(n) == ATTRIBUTE)]
            if self._settings.rates
            else []
        )
        actors = [self._later(tasks, events.coded(name)) for name in names if name in events.columns]
        columns |= prices(amounts, (spent, known), actors, parsed.get("actor_kind", nobody), self._settings.rates)
        attributes = [
            (k, later(c, tasks.own, tasks.done)) for k, c in events.columns.items() if self._events.role(k) == ATTRIBUTE
        ]
        columns["attributes"] = maps(events.scanned, attributes, len(tasks.own))
        for field, _, name in self._events.fields:
            if field not in columns:
                columns[field] = events.scanned.values(later(events.places(name), tasks.own, tasks.done))
        return {
            c.name: columns[c.name] if c.name in columns else repeated(None, c.type, len(key))
            for c in TASK_IMPLEMENTATION
        }

    @staticmethod
    def _later(tasks: Tasks, column: Coded) -> Coded:
        """Returns the value of each task's last event."""
        return Coded(later(column.codes, tasks.own, tasks.done), column.values)

    def _titles(self, tasks: Tasks, events: Level, key: pa.Array) -> pa.Array:
        stated = events.places(self._events.keys["task_title"])
        if not (stated >= 0).any():
            return key
        titles = np.where(stated >= 0, stated, events.places(self._events.keys["activity"]))
        return events.scanned.values(titles[np.where(tasks.done >= 0, tasks.done, tasks.own)])

    def _parsed(self, tasks: Tasks, events: Level) -> dict[str, Coded]:
        """Returns the fields of the tasks that are not plain text."""
        kinds = {c.name: c.type for c in TASK_IMPLEMENTATION}
        fields = {}
        for field, parse, key in self._events.fields:
            if parse is not values.text:
                column = events.parsed(key, parse, kinds[field])
                fields[field] = Coded(later(column.codes, tasks.own, tasks.done), column.values)
        return fields

    def _amounts(self, tasks: Tasks, events: Level, traces: Level) -> dict[str, Coded]:
        keys: Mapping[str, str] = {field: key for _, field, key in self._events.amounts}
        amounts = {}
        for field in _AMOUNTS:
            key = keys.get(field)
            if key in events.columns:
                only_dollars(self._settings, events.coded(self._events.currency), traces.coded(self._cases.currency))
            column = events.parsed(key, partial(dollars, self._sink.money, key or ""), pa.float64())
            amounts[field] = Coded(later(column.codes, tasks.own, tasks.done), column.values)
        return amounts

    def _key_of(self, field: str) -> str | None:
        return next((key for name, _, key in self._events.fields if name == field), None)


def _lists(columns: dict[str, pa.Array], offsets: Ints) -> pa.ListArray:
    kind: Any = IMPLEMENTATIONS.schema.field("tasks").type
    structs = pa.StructArray.from_arrays([columns[f.name] for f in kind.value_type], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(array(offsets, pa.int32()), structs, type=kind)
