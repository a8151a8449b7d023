"""Which tasks a workflow for this Intention must contain: what the near cases failed without (DESIGN 5, needed tasks).

The nearest cases decide where enough of them succeeded; elsewhere the rows of `wkg/needs` for their kind do.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opus_pipelines.lwm.interface import NearCase
from opus_pipelines.settings import Generation
from opus_pipelines.wkg.estimates.statistics import lift, rate_of

MIN_SUCCESSES = 0.5   # weight of near successes from which the near cases decide
MIN_WITHOUT = 1.0     # weight of near cases without a task below which there is no contrast
ALTERNATIVE_MARGIN = 0.1  # success that an alternative may give up against the task it stands in for


def needed_tasks(
    cases: Sequence[NearCase], needs: Iterable[Mapping[str, Any]], client: str | None, settings: Generation
) -> list[frozenset[str]]:
    """Groups of tasks, any one of a group must be done; in order of their ids. `needs` are rows of wkg/needs."""
    taught = [c for c in cases if c.counts and c.tasks]
    if sum(c.weight for c in taught if c.success) >= MIN_SUCCESSES:
        return _needed_near(taught, settings)
    return _needed_by_kind(cases, needs, client)


def _needed_near(cases: list[NearCase], settings: Generation) -> list[frozenset[str]]:
    """Groups by forward selection: the task with the surest lift first, the next among the cases that did it, and so on.

    Looking at each task by itself would blame what a skipped check's cases happen to lack beside the check.
    """
    groups: list[frozenset[str]] = []
    left = cases
    while found := _surest(left, frozenset().union(*groups)):
        groups.append(_with_alternatives(found, left))
        left = [c for c in left if groups[-1] & set(c.tasks)]
    chosen = frozenset[str]().union(*groups)
    usual = [t for t, those in _having(left).items() if t not in chosen and _usual(those, left, settings)]
    return sorted([*groups, *(frozenset({t}) for t in usual)], key=sorted)


def _usual(those: list[NearCase], cases: list[NearCase], settings: Generation) -> bool:
    """Most successes did the task (`those` are the cases that did), and history does not show that leaving it out does no harm."""
    n, right = _weights(cases)
    done, succeeded = _weights(those)
    harm = lift(succeeded, done, max(0.0, right - succeeded), max(0.0, n - done))[2]
    return bool(succeeded > settings.usual_share * right and harm > settings.harmless_lift)


def _surest(cases: list[NearCase], without: frozenset[str]) -> str | None:
    """The task whose lift's lower end is highest, if it is above 0; ties by id."""
    total, right = _weights(cases)
    best, found = 0.0, None
    for task, those in sorted(_having(cases).items()):
        n, s = _weights(those)
        if task not in without and total - n >= MIN_WITHOUT:
            lower = float(lift(s, n, max(0.0, right - s), total - n)[1])
            if lower > best:
                best, found = lower, task
    return found


def _with_alternatives(task: str, cases: list[NearCase]) -> frozenset[str]:
    """The task, and those that do as well in the cases without it."""
    group = {task}
    rate = _rate(_having(cases)[task])
    rest = [c for c in cases if task not in c.tasks]
    while (other := _surest(rest, frozenset(group))) and _rate(_having(rest)[other]) >= rate - ALTERNATIVE_MARGIN:
        group.add(other)
        rest = [c for c in rest if other not in c.tasks]
    return frozenset(group)


def _having(cases: Iterable[NearCase]) -> dict[str, list[NearCase]]:
    found: dict[str, list[NearCase]] = defaultdict(list)
    for case in cases:
        for task in set(case.tasks):
            found[task].append(case)
    return found


def _needed_by_kind(cases: Sequence[NearCase], needs: Iterable[Mapping[str, Any]], client: str | None) -> list[frozenset[str]]:
    weight: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.kind_of_case is not None:
            weight[case.kind_of_case] += case.weight
    if not weight:
        return []
    kind = max(sorted(weight), key=lambda k: weight[k])
    rows: dict[str, Mapping[str, Any]] = {}
    for row in needs:
        if row["kind_of_case"] == kind and row["client"] in (None, client) and (row["client"] is not None or row["task_id"] not in rows):
            rows[row["task_id"]] = row
    return [frozenset(row["alternatives"] or [task]) for task, row in sorted(rows.items()) if row["needed"]]


def _weights(cases: Iterable[NearCase]) -> tuple[float, float]:
    cases = list(cases)
    return sum(c.weight for c in cases), sum(c.weight for c in cases if c.success)


def _rate(cases: Iterable[NearCase]) -> float:
    n, succeeded = _weights(cases)
    return float(rate_of(succeeded, n))
