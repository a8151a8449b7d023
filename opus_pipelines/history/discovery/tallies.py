"""Counts of edges and tasks, added up from steps in execution order."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.records.arrow_arrays import Bools, Longs, array, strings
from opus_pipelines.history.records.step_arrays import begins_anew, consecutive, distinct

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
        size, case = len(self.names), steps.case()
        self._add_ends(steps, case)
        if steps.stated is None:
            self._add_chains(steps, case, size)
            return
        self._tasks.add(*_counted(steps, case, steps.task, size, steps.seen))
        before, after = consecutive(steps.lengths, steps.stated)
        if len(after):
            pair = steps.task[before] * size + steps.task[after]
            keys, counts = _counted(steps, case[after], pair, size * size, steps.seen[after])
            self._edges.add(keys // size << 32 | keys % size, counts)

    def _add_chains(self, steps: Steps, case: Longs, size: int) -> None:
        """Adds cases whose steps follow each other.

        The first step of a case follows the task `size`, which is none. Then each step ends one pair, and what is known
        of a task but its cases is the sum of what is known of the pairs that it ends.
        """
        before = np.empty_like(steps.task)
        before[1:] = steps.task[:-1]
        before[(np.cumsum(steps.lengths) - steps.lengths)[steps.lengths > 0]] = size
        keys, number, places = _numbered(steps.task * (size + 1) + before, size * (size + 1))
        owner, pair = _cells(case, number, len(steps.lengths), places)
        counts = _occurrences(steps, case, number, steps.seen, places)
        counts["cases"] = _summed(pair, steps.weights(owner), places)
        occurs = np.flatnonzero(counts["occurrences"])
        src, dst = keys[occurs] % (size + 1), keys[occurs] // (size + 1)
        follows = src < size
        of_pairs = {name: column[occurs] for name, column in counts.items()}
        self._edges.add((src << 32 | dst)[follows], {name: column[follows] for name, column in of_pairs.items()})
        del of_pairs["cases"]
        task = (keys // (size + 1))[pair]
        anew = begins_anew(owner * size + task)  # the pairs of a case stand together by the task that they end with
        cases = _summed(task[anew], steps.weights(owner[anew]), size)
        self._tasks.add(dst, of_pairs)
        self._tasks.add(np.flatnonzero(cases), {"cases": cases[cases > 0]})

    def _add_ends(self, steps: Steps, case: Longs) -> None:
        filled = steps.lengths > 0
        ends = np.cumsum(steps.lengths)[filled]
        for column, step in (("starts", ends - steps.lengths[filled]), ("ends", ends - 1)):
            keys, number, places = _numbered(steps.task[step], len(self.names))
            counts = _summed(number, steps.weights(case[step]), places)
            self._tasks.add(keys[counts > 0], {column: counts[counts > 0]})

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
    keys, number, places = _numbered(number, size)
    owner, own = _cells(case, number, len(steps.lengths), places)
    counts = _occurrences(steps, case, number, seen, places)
    counts["cases"] = _summed(own, steps.weights(owner), places)
    occurs = np.flatnonzero(counts["occurrences"])
    return keys[occurs], {name: column[occurs] for name, column in counts.items()}


def _numbered(number: Longs, size: int) -> tuple[Longs, Longs, int]:
    """Returns what numbers below `size` stand for, in ascending order, the place of each there, and the places."""
    if size <= _DENSE:
        return np.arange(size), number, size
    keys = distinct(number)
    return keys, np.searchsorted(keys, number), len(keys)


def _occurrences(steps: Steps, case: Longs, number: Longs, seen: Longs, places: int) -> dict[str, Longs]:
    """Returns how often, and when first and last, each number below `places` occurs."""
    known = seen != NO_TIME
    when, of = (seen, number) if known.all() else (seen[known], number[known])
    first, last = np.full(places, _LATEST), np.full(places, NO_TIME)
    np.minimum.at(first, of, when)
    np.maximum.at(last, of, when)
    return {"occurrences": _summed(number, steps.weights(case), places), "first_seen": first, "last_seen": last}


def _cells(case: Longs, number: Longs, cases: int, places: int) -> tuple[Longs, Longs]:
    """Returns the distinct pairs of a case and a number below `places`, by case and number."""
    kind = np.dtype(np.uint32 if cases * places < 1 << 32 else np.int64)
    cells = distinct(case.astype(kind) * places + number.astype(kind))
    owner = cells // places
    return owner.astype(np.int64), (cells - owner * places).astype(np.int64)


def _summed(number: Longs, weight: "int | Longs", places: int) -> Longs:
    if isinstance(weight, int):
        return np.bincount(number, minlength=places) * weight
    sums = np.zeros(places, np.int64)
    np.add.at(sums, number, weight)
    return sums


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
