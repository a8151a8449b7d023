"""Which tasks a workflow for this Intention must contain: what the near cases failed without (DESIGN 5, needed tasks).

The nearest cases decide where enough of them succeeded; elsewhere the rows of `wkg/needs` for their kind do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Generation
from opus_pipelines.core.statistics import lift, rate_of
from opus_pipelines.lwm.interface import SimilarCase

MIN_SUCCESSES = 0.5  # weight of near successes from which the near cases decide
MIN_WITHOUT = 1.0  # weight of near cases without a task below which there is no contrast
ALTERNATIVE_MARGIN = 0.1  # success that an alternative may give up against the task it stands in for


def critical_tasks(
    cases: Sequence[SimilarCase], needs: Iterable[Mapping[str, Any]], client: str | None, settings: Generation
) -> list[frozenset[str]]:
    """Groups of tasks, any one of a group must be done; in order of their ids. `needs` are rows of wkg/needs."""
    taught = [c for c in cases if c.is_informative and c.tasks]
    if sum(c.weight for c in taught if c.success) >= MIN_SUCCESSES:
        return _needed_near(taught, settings)
    return _needed_by_kind(cases, needs, client)


def _needed_near(cases: list[SimilarCase], settings: Generation) -> list[frozenset[str]]:
    """Groups by forward selection: the task with the surest lift first, the next among the cases that did it, and so
    on.

    Looking at each task by itself would blame what a skipped check's cases happen to lack beside the check.
    """
    groups: list[frozenset[str]] = []
    left = _Counted(cases)
    while found := _surest(left, frozenset().union(*groups)):
        groups.append(_with_alternatives(found, left))
        left = left.those(lambda c, group=groups[-1]: not group.isdisjoint(c.tasks))  # type: ignore[misc]
    usual = _usual(left, frozenset().union(*groups), settings)
    return sorted([*groups, *(frozenset({t}) for t in usual)], key=sorted)


class _Counted:
    """Cases with, for each task that any of them did, the weight of those that did it (`done`), and of the right ones
    (`right`).
    """

    def __init__(self, cases: Sequence[SimilarCase]) -> None:
        self.cases = cases
        self.whole, self.whole_right = _weights(cases)
        self.tasks = sorted({task for case in cases for task in case.tasks})
        self.place = {task: n for n, task in enumerate(self.tasks)}
        places = [[self.place[task] for task in set(case.tasks)] for case in cases]
        each = np.array([n for found in places for n in found], np.int64)
        weights = np.repeat([case.weight for case in cases], [len(found) for found in places])
        is_right = np.repeat([bool(case.success) for case in cases], [len(found) for found in places]).astype(bool)
        self.done = np.bincount(each, weights, len(self.tasks))  # adds up in the order of the cases
        self.right = np.bincount(each[is_right], weights[is_right], len(self.tasks))

    def those(self, hold: Callable[[SimilarCase], bool]) -> "_Counted":
        """Some of the cases."""
        return _Counted([case for case in self.cases if hold(case)])

    def rate(self, task: str) -> float:
        """The share of the cases with the task that were right, by weight."""
        n = self.place[task]
        return float(rate_of(self.right[n], self.done[n]))


def _usual(found: _Counted, without: frozenset[str], settings: Generation) -> list[str]:
    """The tasks that most successes did, and of which history does not show that leaving them out does no harm."""
    missed_right, missed = np.maximum(0.0, found.whole_right - found.right), np.maximum(0.0, found.whole - found.done)
    harm = lift(found.right, found.done, missed_right, missed)[2]
    usual = (found.right > settings.usual_share * found.whole_right) & (harm > settings.harmless_lift)
    return [task for task, holds in zip(found.tasks, usual, strict=True) if holds and task not in without]


def _surest(found: _Counted, without: frozenset[str]) -> str | None:
    """The task whose lift's lower end is highest, if it is above 0; ties by id."""
    if not found.tasks:
        return None
    without_it = found.whole - found.done
    lower = lift(
        found.right, found.done, np.maximum(0.0, found.whole_right - found.right), np.maximum(0.0, without_it)
    )[1]
    lower[without_it < MIN_WITHOUT] = -np.inf
    lower[[found.place[task] for task in without if task in found.place]] = -np.inf
    best = int(np.argmax(lower))
    return found.tasks[best] if lower[best] > 0 else None


def _with_alternatives(task: str, found: _Counted) -> frozenset[str]:
    """The task, and those that do as well in the cases without it."""
    group = {task}
    least = found.rate(task) - ALTERNATIVE_MARGIN
    rest = found.those(lambda c: task not in c.tasks)
    while (other := _surest(rest, frozenset(group))) and rest.rate(other) >= least:
        group.add(other)
        rest = rest.those(lambda c, other=other: other not in c.tasks)  # type: ignore[misc]
    return frozenset(group)


def _needed_by_kind(
    cases: Sequence[SimilarCase], needs: Iterable[Mapping[str, Any]], client: str | None
) -> list[frozenset[str]]:
    weight: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.kind_of_case is not None:
            weight[case.kind_of_case] += case.weight
    if not weight:
        return []
    kind = max(sorted(weight), key=lambda k: weight[k])
    rows: dict[str, Mapping[str, Any]] = {}
    for row in needs:
        if (
            row["kind_of_case"] == kind
            and row["client"] in (None, client)
            and (row["client"] is not None or row["task_id"] not in rows)
        ):
            rows[row["task_id"]] = row
    return [frozenset(row["alternatives"] or [task]) for task, row in sorted(rows.items()) if row["needed"]]


def _weights(cases: Iterable[SimilarCase]) -> tuple[float, float]:
    cases = list(cases)
    return sum(c.weight for c in cases), sum(c.weight for c in cases if c.success)
