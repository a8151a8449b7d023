"""Which tasks a group of cases needed: cases with and without a task compared, one need after the other.

Looking at each task by itself would blame whatever the cases that skipped a check happen to lack beside the check. So
the task whose lift is surest comes first, and the next is looked for among the cases that did it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.statistics import CONFIDENCE, lift, rate_of
from opus_pipelines.estimates.case_sequences import Sequences

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# cases of known outcome that make a group, and the successes that let an ever-present task count as needed
MIN_CASES = 5
MIN_WITHOUT = 3  # cases without a task from which its absence can be judged
WORSE_AT_MOST = 0.1  # success that an alternative may give up against the task for which it stands in
MOST_ALTERNATIVES = 4
MOST_UNITED = 300  # tasks, the most frequent ones, among which exclusive ones are looked for
Figures = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cases:
    """A group's cases, a row each distinct sequence: which tasks it holds, how many cases, how many succeeded; whose
    kind it is (stratum).

    `before` and `after`: a row each task, the tasks (and one more column: none) that ever stood directly before, after
    it.
    """

    holds: "csr_array"
    n: np.ndarray
    succeeded_of: np.ndarray
    stratum: np.ndarray
    before: "csr_array"
    after: "csr_array"

    @property
    def total(self) -> int:
        """Cases."""
        return int(self.n.sum())

    @property
    def succeeded(self) -> int:
        """Of all, those that succeeded."""
        return int(self.succeeded_of.sum())

    def with_each(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every task, the cases with it, and those of them that succeeded."""
        return self.holds.T @ self.n, self.holds.T @ self.succeeded_of

    def only(self, rows: np.ndarray) -> "Cases":
        """Those of some rows (a truth value each)."""
        at = np.flatnonzero(rows)
        return Cases(self.holds[at], self.n[at], self.succeeded_of[at], self.stratum[at], self.before, self.after)

    def any_of(self, tasks: Iterable[int]) -> np.ndarray:
        """Which rows hold one of these tasks."""
        return np.asarray(self.holds[:, sorted(tasks)].sum(axis=1)).ravel() > 0

    @cached_property
    def everywhere(self) -> np.ndarray:
        """Which tasks every stratum of at least MIN_CASES cases holds."""
        strata = [s for s in np.unique(self.stratum) if self.n[self.stratum == s].sum() >= MIN_CASES]
        held = [np.asarray(self.holds[self.stratum == s].sum(axis=0)).ravel() > 0 for s in strata]
        return np.all(held, axis=0) if held else np.ones(self.holds.shape[1], bool)


def matrices(sequences: Sequences) -> tuple["csr_array", "csr_array", "csr_array"]:
    """Which tasks each row of `sequences` holds; and of each task those that stood directly before and after it
    anywhere.
    """
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
    """The needed tasks, each with all that do in its place (itself too); lift and 95 % interval of every task among
    the cases that did what was found needed before it (`compared`: where there are such cases with and without it).
    """

    alternatives: dict[int, tuple[int, ...]]
    adjusted: Figures
    compared: np.ndarray


def find_critical_tasks(cases: Cases) -> LiftFinding:
    """What these cases needed: by contrast, one after the other; then what too few lacked to tell, while none of those
    succeeded.
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
    """The normal quantile at which one of so many tasks that make no difference is taken for needed in 2.5 of 100
    groups.
    """
    from scipy.special import ndtri

    return float(-ndtri((1 - CONFIDENCE) / 2 / max(1, tests)))


def _surest(cases: Cases, chosen: set[int]) -> tuple[int, ...]:
    """The task whose lift's lower end is highest, if it is above 0 for sure; ties by number. Empty where there is
    none.
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
    """Tasks in the same place of which no case does two, and without any of which cases surely fail, though no one of
    them is missed.
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
    """The group, and tasks that do as well in the cases without it."""
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
    """Tasks, and unions of exclusive ones, that hardly any case lacks and no success does."""
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
    """Sets of tasks that stand in the same place and never in the same case, grown from the most frequent of them."""
    with_, _ = cases.with_each()
    fit = (with_ >= MIN_WITHOUT) & (cases.total - with_ >= MIN_WITHOUT) & cases.everywhere
    fit[list(chosen)] = False
    may = np.flatnonzero(fit)
    may = np.sort(may[np.argsort(-with_[may], kind="stable")[:MOST_UNITED]])
    if len(may) < 2:
        return []
    holds = cases.holds[:, may]
    apart = (holds.T @ holds).toarray() == 0
    same = ((cases.before[may] @ cases.before[may].T).toarray() > 0) & (
        (cases.after[may] @ cases.after[may].T).toarray() > 0
    )
    fits = apart & same
    found = []
    in_turn = [i for i in np.lexsort((may, -with_[may])).tolist() if fits[i].any()]
    for first in in_turn:
        union = [first]
        for other in in_turn:
            if len(union) < MOST_ALTERNATIVES and all(fits[other, member] for member in union):
                union.append(other)
        if len(union) > 1:
            found.append(tuple(sorted(int(may[i]) for i in union)))
    return list(dict.fromkeys(found))
