"""Makes the rows of wkg/needs: the lift of each task, and whether it is critical, per group of cases.

A *critical task* is one without which similar cases had a significantly lower success rate. Only cases whose expected
outcome was success count.

Finds the critical tasks of a group of cases by lift analysis: cases with a task are compared with cases without it. A
comparison of each task by itself would also blame every task that the failed cases happened to lack together with the
critical one. So the tasks are found one after the other: the task whose lift has the highest lower bound comes first,
and the next one is searched among the cases that did it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opus_pipelines.core.statistics import CONFIDENCE, lift, rate_of
from opus_pipelines.wkg.estimates.figures import ALWAYS_DONE, ALWAYS_DONE_AMONG_THE_REST, difference
from opus_pipelines.wkg.estimates.sequences import Sequences

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# cases of known outcome that make a group, and the successes that let an ever-present task count as needed
MIN_CASES = 5
MIN_WITHOUT = 3  # cases without a task from which its absence can be judged
WORSE_AT_MOST = 0.1  # success that an alternative may give up against the task for which it stands in
MOST_ALTERNATIVES = 4
MOST_UNITED = 300  # tasks, the most frequent ones, among which exclusive ones are looked for
_Figures = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cases:
    """The cases of a group, one row for each distinct sequence.

    `holds` (rows × tasks) tells which tasks a sequence has. `n` and `succeeded_of` count its cases and their successes.
    `stratum` is the number of the kind of case. `before` and `after` (tasks × tasks + 1) count the tasks that ever came
    directly before and after a task; their last column stands for none.
    """

    holds: "csr_array"
    n: np.ndarray
    succeeded_of: np.ndarray
    stratum: np.ndarray
    before: "csr_array"
    after: "csr_array"

    @property
    def total(self) -> int:
        """The number of cases."""
        return int(self.n.sum())

    @property
    def succeeded(self) -> int:
        """The number of cases that succeeded."""
        return int(self.succeeded_of.sum())

    def with_each(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns, for every task, the number of cases with it and the number of those that succeeded."""
        return self.holds.T @ self.n, self.holds.T @ self.succeeded_of

    def only(self, rows: np.ndarray) -> "Cases":
        """Returns the cases of the rows for which the mask `rows` is True."""
        at = np.flatnonzero(rows)
        return Cases(self.holds[at], self.n[at], self.succeeded_of[at], self.stratum[at], self.before, self.after)

    def any_of(self, tasks: Iterable[int]) -> np.ndarray:
        """Returns a mask of the rows that hold at least one of these tasks."""
        return np.asarray(self.holds[:, sorted(tasks)].sum(axis=1)).ravel() > 0

    @cached_property
    def everywhere(self) -> np.ndarray:
        """A mask of the tasks that occur in every stratum of at least MIN_CASES cases."""
        strata = [s for s in np.unique(self.stratum) if self.n[self.stratum == s].sum() >= MIN_CASES]
        held = [np.asarray(self.holds[self.stratum == s].sum(axis=0)).ravel() > 0 for s in strata]
        return np.all(held, axis=0) if held else np.ones(self.holds.shape[1], bool)


def matrices(sequences: Sequences) -> tuple["csr_array", "csr_array", "csr_array"]:
    """Returns the matrices `holds`, `before` and `after` of `Cases`, for all rows of `sequences`."""
    from scipy.sparse import csr_array

    size, (names, numbers) = len(sequences.lengths), sequences.tasks
    rows, tasks = sequences.presence
    holds = csr_array((np.ones(len(rows), np.int64), (rows, tasks)), (size, len(names)))
    ends = np.cumsum(sequences.lengths)
    first, last = (np.zeros(len(numbers), bool) for _ in range(2))
    first[(ends - sequences.lengths)[sequences.lengths > 0]] = last[ends[sequences.lengths > 0] - 1] = True
    sides = [np.where(edge, len(names), np.roll(numbers, by)) for edge, by in ((first, 1), (last, -1))]
    before, after = (
        csr_array((np.ones(len(side), np.int64), (numbers, side)), (len(names), len(names) + 1)) for side in sides
    )
    return holds, before, after


@dataclass
class LiftFinding:
    """The critical tasks of a group, and the lift of every task.

    `alternatives` maps each critical task to the tasks that can replace it, itself included. `adjusted` holds the lift
    and its 95 % interval of every task, among the cases that did the critical tasks found before it. `compared` is a
    mask of the tasks for which there are such cases with and without the task.
    """

    alternatives: dict[int, tuple[int, ...]]
    adjusted: _Figures
    compared: np.ndarray


def find_critical_tasks(cases: Cases) -> LiftFinding:
    """Returns the critical tasks of these cases.

    First come the tasks that the comparison of cases shows, one after the other. Then come the tasks that too few cases
    lacked for a comparison, if none of those cases succeeded.
    """
    left, chosen = cases, set[int]()
    groups: list[tuple[int, ...]] = []
    figures: dict[int, tuple[float, float, float]] = {}
    while found := _surest(left, chosen) or _surest_union(left, chosen):
        group = _with_alternatives(found, left)
        figures |= dict.fromkeys(group, _lift_of(left, group))
        groups.append(group)
        chosen |= set(group)
        left = left.only(left.any_of(group))
    groups += _ever_present(left, chosen)
    with_, success = left.with_each()
    adjusted = lift(success, with_, left.succeeded - success, left.total - with_)
    compared = (with_ > 0) & (with_ < left.total)
    for task, at in figures.items():
        compared[task] = True
        for values, value in zip(adjusted, at, strict=True):
            values[task] = value
    return LiftFinding({task: group for group in groups for task in group}, adjusted, compared)


def _lift_of(cases: Cases, group: Iterable[int]) -> tuple[float, float, float]:
    rows = cases.any_of(group)
    n, s = int(cases.n[rows].sum()), int(cases.succeeded_of[rows].sum())
    return lift(s, n, cases.succeeded - s, cases.total - n)


def _strict(tests: int) -> float:
    """Returns the normal quantile that bounds the error of `tests` comparisons together (Bonferroni).

    With it, a task that makes no difference is taken for critical in at most 2.5 of 100 groups.
    """
    from scipy.special import ndtri

    return float(-ndtri((1 - CONFIDENCE) / 2 / max(1, tests)))


def _surest(cases: Cases, chosen: set[int]) -> tuple[int, ...]:
    """Returns the task whose lift has the highest lower bound, if that bound is above 0, else an empty tuple.

    Ties go to the task with the lowest number.
    """
    with_, success = cases.with_each()
    may = (with_ > 0) & (cases.total - with_ >= MIN_WITHOUT) & cases.everywhere
    may[list(chosen)] = False
    at = np.flatnonzero(may)
    if not len(at):
        return ()
    n, s = with_[at], success[at]
    lower = lift(s, n, cases.succeeded - s, cases.total - n, _strict(len(at)))[1]
    best = int(np.argmax(lower))
    return (int(at[best]),) if lower[best] > 0 else ()


def _surest_union(cases: Cases, chosen: set[int]) -> tuple[int, ...]:
    """Returns the set of exclusive tasks whose common lift has the highest lower bound, if it is above 0.

    Cases that lack all tasks of the set have a lower success rate, although no single task of it makes a difference.
    """
    unions = _unions(cases, chosen)
    if not unions:
        return ()
    n, s = (
        np.array([of[list(union)].sum() for union in unions]) for of in cases.with_each()
    )  # exclusive: no case counts twice
    lower = lift(s, n, cases.succeeded - s, cases.total - n, _strict(len(unions)))[1]
    lower[cases.total - n < MIN_WITHOUT] = 0.0
    best = int(np.argmax(lower))
    return unions[best] if lower[best] > 0 else ()


def _with_alternatives(group: tuple[int, ...], cases: Cases) -> tuple[int, ...]:
    """Adds to the group the tasks that give the cases without it as high a success rate."""
    rows = cases.any_of(group)
    rate = rate_of(int(cases.succeeded_of[rows].sum()), int(cases.n[rows].sum()))
    rest = cases.only(~rows)
    while len(group) < MOST_ALTERNATIVES and (other := _surest(rest, set(group))):
        rows = rest.any_of(other)
        if rate_of(int(rest.succeeded_of[rows].sum()), int(rest.n[rows].sum())) < rate - WORSE_AT_MOST:
            break
        group, rest = tuple(sorted({*group, *other})), rest.only(~rows)
    return group


def _ever_present(cases: Cases, chosen: set[int]) -> list[tuple[int, ...]]:
    """Returns the tasks, and sets of exclusive tasks, that fewer than MIN_WITHOUT cases and no success lack."""
    with_, success = cases.with_each()
    missed = (with_ > 0) & (cases.total - with_ < MIN_WITHOUT) & (success == cases.succeeded) & cases.everywhere
    single = [(int(t),) for t in np.flatnonzero(missed) if cases.succeeded >= MIN_CASES and t not in chosen]
    taken = chosen | {t for (t,) in single}
    unions = []
    for union in _unions(cases, taken):
        n, s = with_[list(union)].sum(), success[list(union)].sum()
        full = s == cases.succeeded >= MIN_CASES and cases.total - n < MIN_WITHOUT
        if full and not taken & set(union):
            unions.append(union)
            taken |= set(union)
    return single + unions


def _unions(cases: Cases, chosen: set[int]) -> list[tuple[int, ...]]:
    """Returns sets of tasks that stand in the same position and never occur in the same case.

    The sets grow from the most frequent tasks.
    """
    with_, _ = cases.with_each()
    fit = (with_ >= MIN_WITHOUT) & (cases.total - with_ >= MIN_WITHOUT) & cases.everywhere
    fit[list(chosen)] = False
    may = np.flatnonzero(fit)
    may = np.sort(may[np.argsort(-with_[may], kind="stable")[:MOST_UNITED]])
    if len(may) < 2:
        return []
    holds = cases.holds[:, may]
    exclusive = (holds.T @ holds).toarray() == 0
    same_position = ((cases.before[may] @ cases.before[may].T).toarray() > 0) & (
        (cases.after[may] @ cases.after[may].T).toarray() > 0
    )
    can_join = exclusive & same_position
    found = []
    by_frequency = [i for i in np.lexsort((may, -with_[may])).tolist() if can_join[i].any()]
    for first in by_frequency:
        union = [first]
        for other in by_frequency:
            if len(union) < MOST_ALTERNATIVES and all(can_join[other, member] for member in union):
                union.append(other)
        if len(union) > 1:
            found.append(tuple(sorted(int(may[i]) for i in union)))
    return list(dict.fromkeys(found))


LIFT, ADJUSTED = ("lift", "lift_lower", "lift_upper"), ("adjusted_lift", "adjusted_lower", "adjusted_upper")
Group = tuple[str | None, str | None, str | None]  # industry, client, kind of case; None for client and kind = all


def critical_task_rows(sequences: Sequences) -> list[dict[str, Any]]:
    """Returns the rows of wkg/needs: one for each group and each task that occurs in it.

    A group is an industry, a client of it, or a kind of case of either. In a group with several kinds of case a task is
    `needed` only if every kind has it: the critical tasks of one kind are in the rows of that kind.
    """
    kinds = _kinds(sequences)
    groups: dict[Group, list[int]] = defaultdict(list)
    for row, kind in kinds.items():
        for group in _groups_of(sequences.industry[row], sequences.client[row], kind):
            groups[group].append(row)
    strata = _numbers([(sequences.client[row], kind) for row, kind in kinds.items()])
    stratum = dict(zip(kinds, strata, strict=True))
    table, incidence = [], matrices(sequences)
    for group, members in groups.items():
        if sequences.known[members].sum() >= MIN_CASES:
            rows = np.array(members)
            counts = sequences.known[rows], sequences.successes[rows]
            cases = Cases(incidence[0][rows], *counts, np.array([stratum[row] for row in members]), *incidence[1:])
            table += _rows(group, cases, find_critical_tasks(cases), sequences.tasks[0])
    return table


def lacking(sequences: Sequences, rows: Iterable[dict[str, Any]]) -> np.ndarray:
    """Returns a mask of the rows of `sequences` that lack a critical task of their kind of case.

    The narrowest group for which `rows` has critical tasks decides.
    """
    needed: dict[Group, set[frozenset[str]]] = defaultdict(set)
    for need in rows:
        group = need["industry"], need["client"], need["kind_of_case"]
        needed[group] |= {frozenset(need["alternatives"])} if need["needed"] else set()
    deciding: dict[Group, list[int]] = defaultdict(list)
    for row, kind in _kinds(sequences).items():
        widest_first = list(_groups_of(sequences.industry[row], sequences.client[row], kind))
        if (narrowest := next((group for group in reversed(widest_first) if group in needed), None)) is not None:
            deciding[narrowest].append(row)
    number = {name: place for place, name in enumerate(sequences.tasks[0])}
    found = np.zeros(len(sequences.lengths), bool)
    for group, members in deciding.items():
        for alternatives in needed[group]:
            holds = np.zeros(len(found), bool)
            for task in alternatives:
                if task in number:
                    holds[sequences.rows_with[number[task]]] = True
            found[members] |= ~holds[members]
    return found


def _rows(group: Group, cases: Cases, finding: LiftFinding, names: list[str]) -> list[dict[str, Any]]:
    industry, client, kind = group
    with_, success_with = cases.with_each()
    done = np.flatnonzero(with_)
    counts = with_, success_with, cases.total - with_, cases.succeeded - success_with
    marginal = lift(success_with, with_, counts[3], counts[2])
    rows = []
    for task in done.tolist():
        n, s, m, t = (int(c[task]) for c in counts)
        rows.append(
            {
                "industry": industry,
                "client": client,
                "kind_of_case": kind,
                "task_id": names[task],
                "alternatives": [names[other] for other in finding.alternatives.get(task, (task,))],
                "cases_with": n,
                "cases_without": m,
                "success_with": s,
                "success_without": t,
                **difference(LIFT, _at(marginal, task, m > 0), ALWAYS_DONE),
                "needed": task in finding.alternatives,
                **difference(
                    ADJUSTED, _at(finding.adjusted, task, bool(finding.compared[task])), ALWAYS_DONE_AMONG_THE_REST
                ),
            }
        )
    return rows


def _at(
    figures: tuple[np.ndarray, np.ndarray, np.ndarray], task: int, known: bool
) -> tuple[float, float, float] | None:
    return (float(figures[0][task]), float(figures[1][task]), float(figures[2][task])) if known else None


def _groups_of(industry: str | None, client: str | None, kind: str | None) -> Iterable[Group]:
    """Yields the groups of a case, from the widest to the narrowest."""
    yield industry, None, None
    if client is not None:
        yield industry, client, None
    if kind is not None:
        yield industry, None, kind
        if client is not None:
            yield industry, client, kind


def _kinds(sequences: Sequences) -> dict[int, str | None]:
    """Returns the kind of case of each row with a known outcome.

    The kind is None when its industry has fewer than MIN_CASES cases of it: a title that rare is the name of one case,
    and no kind.
    """
    rows = np.flatnonzero(sequences.known).tolist()
    cases: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for row in rows:
        cases[sequences.industry[row], sequences.kind[row]] += int(sequences.known[row])
    return {
        row: sequences.kind[row] if cases[sequences.industry[row], sequences.kind[row]] >= MIN_CASES else None
        for row in rows
    }


def _numbers(values: list[Any]) -> list[int]:
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]
