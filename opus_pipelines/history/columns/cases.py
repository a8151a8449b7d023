"""Builds the columns of the cases of a block: their own values and attributes, those of their events, and their costs.

The costs follow the rules of `costing`, for tasks without token counts, whole columns at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.tasks import Tasks
from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.columns.values import (
    Coded,
    Level,
    UnusualError,
    coded,
    dollars,
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
    numbers,
    repeated,
    strings,
    validity,
)
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import LAST_WINS, OF_CASE, OUTCOME, CaseMap, EventMap, unprefixed
from opus_pipelines.history.records.costing import COST_PARTS, MS_PER_HOUR, Rates
from opus_pipelines.history.records.outcome import succeeded
from opus_pipelines.history.records.source_settings import SourceSettings, Success

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
        trace, own = maps.trace.plan(), maps.own.plan()
        self.currency, self._own_currency = trace.currency, own.currency
        self._keys = {name: key for name, key, _ in trace.fields} | {"case_cost": trace.cost or ""}
        self._own_keys = {name: key for name, key, _ in own.fields} | {"case_cost": own.cost or ""}

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
            level.parsed(
                keys.get("success"), values.boolean, pa.bool_()
            )  # each is read where it stands, whichever counts in the end
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
