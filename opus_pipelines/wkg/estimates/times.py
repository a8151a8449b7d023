"""Waiting times (the rows of wkg/waits), and the waiting and working times of planned steps, from history.

Estimates waiting and working times of planned steps from history. Waiting times are known by edge, execution mode,
task and resource; working times by execution mode and task.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.wkg.estimates.aggregate_columns import MODE_COLUMNS, summed
from opus_pipelines.wkg.estimates.figures import grids
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.lead_time import LEVELS, DurationQuantiles, Wait
from opus_pipelines.workflow.evaluation.success import Floats
from opus_pipelines.workflow.model import Actor

PER_MS = 1_000  # microseconds a millisecond
# What each level tells apart. A plan asks from the first to the last: the most specific that history has.
LEVEL_KEYS = {
    "edge_way": ("src", "dst", *MODE_COLUMNS),
    "edge": ("src", "dst"),
    "way": ("dst", *MODE_COLUMNS),
    "task": ("dst",),
    "resource": MODE_COLUMNS,
}
_P50, _P90 = LEVELS.index(500), LEVELS.index(900)
_Row = dict[str, Any]


@dataclass(frozen=True)
class WaitFigures:
    """One distribution of waiting time, in milliseconds; `quantiles` at LEVELS."""

    n: int
    with_work_n: int
    mean: float
    quantiles: tuple[float, ...]

    @property
    def columns(self) -> _Row:
        """As wkg/waits and wkg/edges name them."""
        return {
            "wait_n": self.n,
            "wait_ms_mean": self.mean,
            "wait_ms_p50": self.quantiles[_P50],
            "wait_ms_p90": self.quantiles[_P90],
        }


def wait_figures(waits: pa.Table, keys: tuple[str, ...]) -> dict[tuple[str | None, ...], WaitFigures]:
    """Returns the distribution of waiting times for each value of `keys`.

    `waits` are rows of the aggregate of any number of sources, not added up yet.
    """
    whole = summed(waits.select([*keys, "count", "sum"]), keys)
    with_work = waits.filter(pc.equal(waits["with_work"], True))
    work = summed(with_work.select([*keys, "count"]), keys)
    counted = dict(zip(_names(work, keys), work["count"].to_pylist(), strict=True))
    quantiles = grids(waits, keys)
    return {
        name: WaitFigures(
            n, counted.get(name, 0), float(Decimal(total) / (n * PER_MS)), tuple(q / PER_MS for q in quantiles[name])
        )
        for name, n, total in zip(
            _names(whole, keys), whole["count"].to_pylist(), whole["sum"].to_pylist(), strict=True
        )
    }


def wait_rows(waits: pa.Table) -> list[_Row]:
    """Returns the rows of wkg/waits, sorted by key."""
    none = dict.fromkeys(("src", "dst", *MODE_COLUMNS))
    rows = [
        none
        | dict(zip(keys, name, strict=True))
        | of.columns
        | {"level": level, "with_work_n": of.with_work_n, "wait_ms_quantiles": list(of.quantiles)}
        for level, keys in sorted(LEVEL_KEYS.items())
        for name, of in wait_figures(waits, keys).items()
    ]
    return sorted(rows, key=lambda row: (row["level"], *((row[k] is not None, row[k] or "") for k in none)))


def edge_waits(waits: pa.Table) -> Mapping[tuple[str | None, ...], WaitFigures]:
    """Returns the distributions by (src, dst)."""
    return wait_figures(waits, LEVEL_KEYS["edge"])


def _names(table: pa.Table, keys: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    return list(zip(*(table[key].to_pylist() for key in keys), strict=True))


LEAST = 20  # waiting times from which a level is believed, where a less specific one knows more
LEAST_SCORED = 20  # waiting times of an edge from which its ranks say which of them were long
MOST_CORRELATED = 0.9
LEAST_WHOLE = 20  # cases that did the same steps from which their own lead times tell more than the sum of waits
MACHINES = ("code", "model")
Doing = tuple[str, str | None]  # a task, and the kind of actor that does it


@dataclass(frozen=True)
class Moments:
    """Of one task in the cases that did it, by ascending number of the case: when it first began and ended, and when it
    ended at last, in ms.
    """

    cases: np.ndarray
    began: Floats
    ended: Floats
    ended_last: Floats

    def among(self, cases: np.ndarray, values: Floats) -> Floats:
        """Returns the values of these cases, all of which did the task."""
        found: Floats = values[np.searchsorted(self.cases, cases)]
        return found


@dataclass(frozen=True)
class WholeCases:
    """The times of the cases that did a set of tasks, whatever they repeated or did between them.

    `tasks`: by task the moments of all cases that did it. `cases`: the numbers of those that did all of the set.
    """

    tasks: Mapping[str, Moments]
    cases: np.ndarray

    @property
    def n(self) -> int:
        """The number of cases."""
        return len(self.cases)

    @cached_property
    def _began(self) -> Floats:
        first: Floats = np.min([m.among(self.cases, m.began) for m in self.tasks.values()], axis=0)
        return first

    @cached_property
    def lead_ms(self) -> Floats:
        """The lead time of each case in ms, (cases,): from the first to the last of these tasks."""
        last: Floats = np.max([m.among(self.cases, m.ended_last) for m in self.tasks.values()], axis=0)
        return last - self._began

    def until_ms(self, until: str, since: str | None = None) -> Floats:
        """Returns the time of each case in ms, (cases,), up to the first end of the task `until`.

        It begins at the start of the first task, or at the first end of the task `since`. A negative time counts as 0,
        because the task was done before.
        """
        end = self.tasks[until].among(self.cases, self.tasks[until].ended)
        begin = self._began if since is None else self.tasks[since].among(self.cases, self.tasks[since].ended)
        return np.maximum(end - begin, 0.0)


@dataclass(frozen=True)
class CaseMoments:
    """When the cases that did not fail did each task.

    `did` has their numbers by task and kind of actor, `sizes` the number of tasks of each case.
    """

    did: Mapping[Doing, np.ndarray] = field(default_factory=dict)
    tasks: Mapping[str, Moments] = field(default_factory=dict)
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, cases: pa.Table, passive: Collection[str] = ()) -> "CaseMoments":
        """From wkg/cases; steps without a time do not count."""
        steps = _Steps.of(cases, passive)
        failed = pc.equal(cases["success"], False).fill_null(False).to_numpy(zero_copy_only=False)
        counted = steps.has_start & ~failed[steps.case] if len(steps.case) else steps.has_start
        ends = steps.start + steps.work
        tasks = {}
        for key, places in _groups([steps.columns["dst"]], counted):
            numbers, first = np.unique(steps.case[places], return_index=True)
            start, end = steps.start[places], ends[places]
            began, ended = (np.minimum.reduceat(moments, first) for moments in (start, end))
            tasks[str(key[0])] = Moments(numbers, began, ended, np.maximum.reduceat(end, first))
        groups = _groups([steps.columns["dst"], steps.columns["actor_kind"]], counted)
        did = {(str(task), kind): np.unique(steps.case[places]) for (task, kind), places in groups}
        sizes = np.zeros(cases.num_rows, np.int64)
        for moments in tasks.values():
            sizes[moments.cases] += 1
        return cls(did, tasks, sizes)

    def together(self, steps: Collection[Doing]) -> WholeCases | None:
        """Returns the times of the cases that did all of these steps; None where they are too few.

        Where enough of them did nothing else, these alone count.
        """
        found: np.ndarray | None = None
        for doing in sorted(set(steps), key=lambda one: len(self.did.get(one, ()))):
            own = self.did.get(doing, np.zeros(0, np.int64))
            found = own if found is None else found[np.isin(found, own, assume_unique=True)]
            if len(found) < LEAST_WHOLE:
                return None
        if found is None:
            return None
        tasks = {task: self.tasks[task] for task, _ in steps}
        alone = found[self.sizes[found] == len(tasks)]
        return WholeCases(tasks, alone if len(alone) >= LEAST_WHOLE else found)


@dataclass(frozen=True)
class StepTimes:
    """`waits`: by level and key; `work`: by task and actor, and by task alone (actor: None); `correlations`: of the
    waits of one case, by industry, negative where a long wait is followed by a short one. `moments`: when whole cases
    did each task.
    """

    waits: Mapping[tuple[str, tuple[str | None, ...]], DurationQuantiles]
    work: Mapping[tuple[str, Actor | None], DurationQuantiles]
    correlations: Mapping[str | None, float] = field(default_factory=dict)
    moments: CaseMoments = field(default_factory=CaseMoments)

    @classmethod
    def of(cls, waits: pa.Table, modes: pa.Table, cases: pa.Table) -> "StepTimes":
        """From wkg/waits, wkg/task_implementations and wkg/cases."""
        found = {
            (row["level"], tuple(row[k] for k in LEVEL_KEYS[row["level"]])): DurationQuantiles(
                tuple(row["wait_ms_quantiles"]), row["wait_n"], row["with_work_n"]
            )
            for row in waits.to_pylist()
        }
        work: dict[tuple[str, Actor | None], DurationQuantiles] = {}
        merged: dict[str, list[tuple[DurationQuantiles, int]]] = defaultdict(list)
        names = ["task_id", "actor_kind", "model", "actor_group", "duration_ms_quantiles", "duration_n"]
        for row in modes.select(names).to_pylist():
            if row["duration_ms_quantiles"]:
                times = DurationQuantiles(tuple(row["duration_ms_quantiles"]), row["duration_n"])
                work[row["task_id"], Actor(row["actor_kind"], row["model"], row["actor_group"])] = times
                merged[row["task_id"]].append((times, row["duration_n"]))
        # Any actor of a task: the one that was timed most often stands for the others.
        work |= {(task, None): max(of, key=lambda one: one[1])[0] for task, of in merged.items()}
        return cls(found, work, correlations(cases), CaseMoments.of(cases))

    @classmethod
    def of_cases(cls, cases: pa.Table, calendar: Calendar | None = None, passive: Collection[str] = ()) -> "StepTimes":
        """From wkg/cases alone; with a calendar, the times of people are in its working time. `passive`: events that
        are no work steps; the waiting of a step begins at the end of the step before it, whatever events lie
        between the two.

        Time of people between two moments counts as far as it lies in working hours. Where history's people began
        outside of them, they keep other hours than the calendar says: that time is taken as it is.
        """
        steps = _Steps.of(cases, passive)
        wait, work = _in_working_time(calendar, steps) if calendar else (steps.wait, steps.work)
        found: dict[tuple[str, tuple[str | None, ...]], DurationQuantiles] = {}
        columns = steps.columns
        for level, keys in LEVEL_KEYS.items():
            groups = _groups([columns[k] for k in keys], steps.has_wait)
            for key, places in groups:
                found[level, key] = DurationQuantiles.of(wait[places], int(np.sum(~steps.has_work[places])))
        done: dict[tuple[str, Actor | None], DurationQuantiles] = {}
        for key, places in _groups([columns[k] for k in LEVEL_KEYS["way"]], steps.has_work):
            done[str(key[0]), Actor(key[1], key[2], key[3])] = DurationQuantiles.of(work[places])
        for key, places in _groups([columns["dst"]], steps.has_work):
            done[str(key[0]), None] = DurationQuantiles.of(work[places])
        moments = CaseMoments() if calendar else CaseMoments.of(cases, passive)
        return cls(found, done, correlations(cases, passive), moments)

    def wait(self, src: str | None, dst: str, actor: Actor) -> Wait | None:
        """Waiting between two tasks, the later one done by this actor: the most specific level that was seen often
        enough, then any.

        None where no level tells. An edge that was never seen has the waiting time of its task, a new task that of
        whoever does it.
        """
        keys: list[tuple[str, tuple[str | None, ...]]] = [
            ("edge_way", (src, dst, *actor)),
            ("way", (dst, *actor)),
            ("edge", (src, dst)),
            ("task", (dst,)),
            ("resource", actor),
        ]
        found = [(level, times) for level, key in keys if (times := self.waits.get((level, key)))]
        known = next(((level, times) for level, times in found if times.n >= LEAST), found[0] if found else None)
        if known is None:
            known = self._of_kind(actor.kind)
        return Wait(known[1], known[0]) if known else None

    @cached_property
    def of_known_tasks(self) -> "StepTimes":
        """The same without the waiting of resources: for work of an industry that history does not know, whose people
        may keep nothing like the times of those of other industries.
        """
        return replace(self, waits={key: times for key, times in self.waits.items() if key[0] != "resource"})

    def took(self, task: str, actor: Actor) -> DurationQuantiles | None:
        """Working time of a task done by this actor, else of the task; None where neither is known."""
        return self.work.get((task, actor)) or self.work.get((task, None))

    def _of_kind(self, kind: str | None) -> tuple[str, DurationQuantiles] | None:
        """Of the resource of this kind that was waited for most often."""
        candidates = [
            (times.n, key, times)
            for (level, key), times in self.waits.items()
            if level == "resource" and key[0] == kind
        ]
        return ("resource", max(candidates, key=lambda one: (one[0], str(one[1])))[2]) if candidates else None


def is_person(actor_kind: str | None) -> bool:
    """Tells whether working hours apply to an actor: to all but programs and AI models."""
    return actor_kind not in MACHINES


def _ranks(values: np.ndarray) -> np.ndarray:
    """Returns the rank of each value, from 1; equal values have the mean of their ranks.

    As `scipy.stats.rankdata`, whose package takes half a second of CPU to load in every process that generates.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def correlations(cases: pa.Table, passive: Collection[str] = ()) -> dict[str | None, float]:
    """Returns by industry how similar the waits of one case are: the intraclass correlation, -0.9 to 0.9.

    It is computed over normal scores: the rank of a wait among the waits of its edge. It is 0 when no case has two
    scored waits.
    """
    if not cases.num_rows:
        return {}
    from scipy.special import ndtri  # a rebuild loads this module and has no use for it

    steps = _Steps.of(cases, passive)
    scores = np.full(len(steps.wait), np.nan)
    for _, places in _groups([steps.columns["src"], steps.columns["dst"]], steps.has_wait):
        if len(places) >= LEAST_SCORED and np.ptp(steps.wait[places]) > 0:
            scores[places] = ndtri((_ranks(steps.wait[places]) - 0.5) / len(places))
    known = ~np.isnan(scores)
    industry = cases["industry"].to_pylist()
    sums, squares, sizes = (
        np.bincount(steps.case[known], weights, minlength=len(industry))
        for weights in (scores[known], scores[known] ** 2, None)
    )
    found: dict[str | None, float] = {}
    for name in sorted(set(industry), key=str):
        mine = np.array([one == name for one in industry])
        pairs = float(np.sum((sizes * (sizes - 1))[mine]))
        variance = float(np.sum(squares[mine])) / max(1.0, float(np.sum(sizes[mine])))
        shared = float(np.sum((sums**2 - squares)[mine]))
        found[name] = (
            round(min(max(shared / pairs / variance, -MOST_CORRELATED), MOST_CORRELATED), 6)
            if pairs and variance
            else 0.0
        )
    return found


@dataclass(frozen=True)
class _Steps:
    """Every step of every case, one after the other. `wait`, `work`: milliseconds, 0 where unknown; `start`:
    milliseconds since 1970.
    """

    case: np.ndarray
    columns: Mapping[str, list[str | None]]
    start: Floats
    wait: Floats
    work: Floats
    has_start: np.ndarray
    has_wait: np.ndarray
    has_work: np.ndarray

    @classmethod
    def of(cls, cases: pa.Table, passive: Collection[str] = ()) -> "_Steps":
        """`passive`: tasks that are left out; the waiting behind them begins at the end of the last step
        that is kept.
        """
        flat = {
            name: pc.list_flatten(cases[name]).combine_chunks()
            for name in ("tasks", "actor_kinds", "models", "actor_groups")
        }
        case = pc.list_parent_indices(cases["tasks"]).to_numpy()
        task = flat["tasks"].to_pylist()
        first = np.r_[True, case[1:] != case[:-1]] if len(case) else np.zeros(0, bool)
        before: list[str | None] = [None, *task[:-1]]
        src = [None if is_first else b for is_first, b in zip(first, before, strict=True)] if task else []
        moment = pc.list_flatten(cases["task_started_at"]).combine_chunks().cast(pa.int64())
        start, has_start = _numbers(moment.cast(pa.float64(), safe=False), len(task))
        wait, has_wait = _numbers(pc.list_flatten(cases["task_wait_ms"]).combine_chunks(), len(task))
        work, has_work = _numbers(pc.list_flatten(cases["task_duration_ms"]).combine_chunks(), len(task))
        columns = {"src": src, "dst": task} | {
            name: flat[stored].to_pylist() if len(flat[stored]) == len(task) else [None] * len(task)
            for name, stored in (("actor_kind", "actor_kinds"), ("model", "models"), ("actor_group", "actor_groups"))
        }
        found = cls(case, columns, start / 1000, wait, work, has_start, has_wait & has_start & ~first, has_work)
        return found._without(passive) if passive and task else found

    def _without(self, passive: Collection[str]) -> "_Steps":
        left = frozenset(passive)
        kept = np.flatnonzero([task not in left for task in self.columns["dst"]])
        before = np.r_[-1, kept[:-1]].astype(np.int64)
        same = (before >= 0) & (self.case[before] == self.case[kept])
        over = same & (before != kept - 1)  # events lie between the two
        since = self.start[kept] - self.start[before] - self.work[before]
        wait = np.where(over, np.maximum(since, 0.0), self.wait[kept])
        has_wait = np.where(over, self.has_start[kept] & self.has_start[before], self.has_wait[kept]) & same
        columns = {name: [values[i] for i in kept.tolist()] for name, values in self.columns.items()}
        names = self.columns["dst"]
        columns["src"] = [
            names[b] if is_same else None for b, is_same in zip(before.tolist(), same.tolist(), strict=True)
        ]
        return _Steps(
            self.case[kept],
            columns,
            self.start[kept],
            wait,
            self.work[kept],
            self.has_start[kept],
            has_wait,
            self.has_work[kept],
        )


def _numbers(values: pa.Array, size: int) -> tuple[Floats, np.ndarray]:
    """(values, 0 where unknown; which are known). A snapshot of an older version has none."""
    if len(values) != size:
        return np.zeros(size), np.zeros(size, bool)
    return pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(np.float64), pc.is_valid(values).to_numpy(
        zero_copy_only=False
    )


def _in_working_time(calendar: Calendar, steps: _Steps) -> tuple[Floats, Floats]:
    """Returns waiting and working times; those of people count working hours only."""
    people = np.array([is_person(kind) for kind in steps.columns["actor_kind"]], dtype=bool)
    counts = people & steps.has_wait & calendar.is_working(steps.start)
    at = calendar.working_ms(steps.start)
    wait = np.where(counts, at - calendar.working_ms(steps.start - steps.wait), steps.wait)
    work = np.where(counts & steps.has_work, calendar.working_ms(steps.start + steps.work) - at, steps.work)
    return wait, work


def _groups(columns: Iterable[list[str | None]], chosen: np.ndarray) -> list[tuple[tuple[str | None, ...], np.ndarray]]:
    """The places that are chosen, by what the columns hold there."""
    found: Callable[[], Any] = list
    groups: dict[tuple[str | None, ...], list[int]] = defaultdict(found)
    rows = list(zip(*columns, strict=True))
    for place in np.flatnonzero(chosen).tolist():
        groups[rows[place]].append(place)
    return [(key, np.array(places)) for key, places in groups.items()]
