"""Counts of edges and tasks, added up from steps in execution order."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from opus_pipelines.column_reading.times import NO_TIME
from opus_pipelines.event_logs.arrow_arrays import Bools, Longs, array, strings
from opus_pipelines.event_logs.step_arrays import consecutive, distinct

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

    def pairs(self) -> tuple[Longs, Longs]:
        """Returns the earlier and the later step of each pair."""
        if self.stated is not None:
            return consecutive(self.lengths, self.stated)
        first = np.zeros(len(self.task) + 1, bool)
        first[np.cumsum(self.lengths) - self.lengths] = True
        after = np.flatnonzero(~first[:-1])
        return after - 1, after


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
        size = len(self.names)
        case, filled = steps.case(), steps.lengths > 0
        self._tasks.add(*_counted(steps, case, steps.task, size, steps.seen))
        ends = np.cumsum(steps.lengths)[filled]
        for column, step in (("starts", ends - steps.lengths[filled]), ("ends", ends - 1)):
            self._tasks.add(steps.task[step], {column: _broadcast(steps.weights(case[step]), len(step))})
        before, after = steps.pairs()
        if len(after):
            pair = steps.task[before] * size + steps.task[after]
            keys, counts = _counted(steps, case[after], pair, size * size, steps.seen[after])
            self._edges.add(keys // size << 32 | keys % size, counts)

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
    keys = np.arange(size) if size <= _DENSE else distinct(number)
    if size > _DENSE:
        number = np.searchsorted(keys, number)
    places = len(keys)
    cells = case * places + number
    most = len(steps.lengths) * places
    in_cases = distinct(cells.astype(np.uint32) if most < 1 << 32 else cells).astype(np.int64)
    known = seen != NO_TIME
    when, of = (seen, number) if known.all() else (seen[known], number[known])
    first, last = np.full(places, _LATEST), np.full(places, NO_TIME)
    np.minimum.at(first, of, when)
    np.maximum.at(last, of, when)
    counts = {
        "occurrences": _summed(number, steps.weights(case), places),
        "cases": _summed(in_cases % places, steps.weights(in_cases // places), places),
        "first_seen": first,
        "last_seen": last,
    }
    occurs = np.bincount(number, minlength=places) > 0
    return keys[occurs], {name: column[occurs] for name, column in counts.items()}


def _summed(number: Longs, weight: "int | Longs", places: int) -> Longs:
    if isinstance(weight, int):
        return np.bincount(number, minlength=places) * weight
    sums = np.zeros(places, np.int64)
    np.add.at(sums, number, weight)
    return sums


def _broadcast(weight: "int | Longs", length: int) -> Longs:
    return np.full(length, weight) if isinstance(weight, int) else weight


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
