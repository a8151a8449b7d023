"""The work that similar cases agree on: the tasks, and the consecutive pairs, with the highest expected F1 against
these cases.

Where history tells no outcomes, nothing says which work may be left out. The workflow that is expected to share most
with the case that the intake will become is then the best statement of what has to be done: minimum Bayes risk with F1
as the gain (Kumar and Byrne 2004), the similar cases, by their weights, as the posterior. A task that most of them did
is in it, one that few did is not, and how many tasks are in it follows from the cases themselves. Where tasks are few,
every set of them is compared; else every prefix of the tasks by support and the most frequent cases as they stand, and
then one task at a time is changed as long as the expected F1 grows.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TypeVar

import numpy as np

Pair = tuple[str, str]
Item = TypeVar("Item", bound=Hashable)
VARIANTS = 400  # distinct courses that are weighed, the heaviest first
PREFIXES = 60  # tasks by support whose prefixes are tried
EXACT = 10  # tasks or pairs up to which every set is looked at
MODELS = 40  # heaviest courses that are tried as they stand


@dataclass(frozen=True)
class Course:
    """What one case did, or is expected to have done when it has ended: its tasks in order, repetitions included, its
    consecutive pairs.
    """

    tasks: tuple[str, ...]
    pairs: frozenset[Pair]

    @classmethod
    def of(cls, tasks: Sequence[str], predecessors: Sequence[Sequence[int] | None] | None = None) -> "Course":
        """`predecessors`: of each task the positions it directly follows; None: the one before. A task does not follow
        itself.
        """
        if predecessors is None or all(places is None for places in predecessors):
            return cls(tuple(tasks), frozenset((a, b) for a, b in pairwise(tasks) if a != b))
        found = {
            (tasks[p], task)
            for n, (task, places) in enumerate(zip(tasks, predecessors, strict=True))
            for p in ([n - 1] if places is None and n else places or ())
            if 0 <= p < len(tasks) and tasks[p] != task
        }
        return cls(tuple(tasks), frozenset(found))

    def among(self, tasks: Collection[str]) -> "Course":
        """The course as if only these tasks were in it; what they follow over the others, they follow."""
        if frozenset(tasks).issuperset(self.tasks):
            return self
        return Course.of([t for t in self.tasks if t in tasks])

    def agreement(self, other: "Course") -> tuple[float, float]:
        """F1 of the tasks and F1 of the consecutive pairs. Two orders of the same tasks differ in their pairs alone."""
        return _f1(frozenset(self.tasks), frozenset(other.tasks)), _f1(self.pairs, other.pairs)


@dataclass(frozen=True)
class Consensus:
    """`tasks` in order, the support of every task and consecutive pair of the similar cases, the expected F1 of the
    tasks.

    Support is the share of the similar cases, by weight, that hold it. `cases` is their effective number (Kish 1965):
    (Σw)² / Σw².
    """

    tasks: tuple[str, ...]
    support: Mapping[str, float]
    pair_support: Mapping[Pair, float]
    agreement: float
    cases: float
    courses: tuple[tuple[Course, float], ...]
    _counted: dict[frozenset[str], Mapping[Course, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def expected_f1(self, tasks: Sequence[str], among: Collection[str]) -> tuple[float, float]:
        """Expected F1 of a sequence's tasks, and of its consecutive pairs, against the similar cases, of which only
        these tasks count.
        """
        own, counted = Course.of(tasks), self.weights_among(among)
        whole, told = sum(counted.values()), [(course.agreement(own), weight) for course, weight in counted.items()]
        return sum(w * of_tasks for (of_tasks, _), w in told) / whole, sum(
            w * of_pairs for (_, of_pairs), w in told
        ) / whole

    def pairs_among(self, tasks: Collection[str]) -> dict[Pair, float]:
        """The pairs of these tasks with the highest expected F1 against all pairs of the similar cases, with their
        support; none where no similar case did one of them directly after another.
        """
        inside = frozenset(tasks)
        linked = [(course.pairs, weight) for course, weight in self.courses if course.pairs]
        if not any(inside.issuperset(pair) for pairs, _ in linked for pair in pairs):
            return {}
        return {pair: self.pair_support[pair] for pair in sorted(_best(linked, inside.issuperset)[0])}

    def weights_among(self, among: Collection[str]) -> Mapping[Course, float]:
        """The similar cases' courses with their weights, as if only these tasks were in them."""
        key = frozenset(among)
        if key not in self._counted:
            found: dict[Course, float] = {}
            for course, weight in self.courses:
                part = course.among(key)
                found[part] = found.get(part, 0.0) + weight
            self._counted[key] = found
        return self._counted[key]


def consensus(courses: Sequence[Course], weights: np.ndarray) -> Consensus:
    """The consensus of courses with weights [n]. Raises ValueError where no course with a task has any weight."""
    heavy: dict[Course, float] = {}
    for course, weight in zip(courses, weights.tolist(), strict=True):
        if weight > 0 and course.tasks:
            heavy[course] = heavy.get(course, 0.0) + weight
    if not heavy:
        raise ValueError("no similar case has a task")
    kept = tuple(sorted(heavy.items(), key=lambda c: (-c[1], c[0].tasks))[:VARIANTS])
    own = weights[weights > 0]
    whole = sum(w for _, w in kept)
    support = _support([(frozenset(c.tasks), w) for c, w in kept])
    tasks, agreement = _best([(frozenset(c.tasks), w) for c, w in kept])
    of_pair = _support([(c.pairs, w) for c, w in kept])
    return Consensus(
        _ordered(tasks, kept, of_pair),
        support,
        of_pair,
        agreement / whole,
        float(own.sum() ** 2 / (own**2).sum()),
        kept,
    )


def _f1(one: Collection[Item], other: Collection[Item]) -> float:
    both = len(frozenset(one) & frozenset(other))
    return 2 * both / (len(one) + len(other)) if one or other else 1.0


def _support(held: Sequence[tuple[frozenset[Item], float]]) -> dict[Item, float]:
    whole, found = sum(w for _, w in held), dict[Item, float]()
    for items, weight in held:
        for item in items:
            found[item] = found.get(item, 0.0) + weight
    return {item: weight / whole for item, weight in found.items()}


def _best(
    held: Sequence[tuple[frozenset[Item], float]], among: Callable[[Item], bool] = lambda item: True
) -> tuple[list[Item], float]:
    """The set of items that are `among` with the highest sum of weight · F1, in order of its names, and that sum."""
    joined: dict[frozenset[Item], float] = {}
    for items, weight in held:
        joined[items] = joined.get(items, 0.0) + weight
    names = sorted({item for items in joined for item in items if among(item)})  # type: ignore[type-var]
    place = {item: n for n, item in enumerate(names)}
    holds = np.zeros((len(joined), len(names)))
    for row, items in enumerate(joined):
        holds[row, [place[item] for item in items if item in place]] = 1.0
    weights, sizes = np.array(list(joined.values())), np.array([len(items) for items in joined])

    def worth(chosen: np.ndarray) -> np.ndarray:
        """[k] of k sets [k, names]."""
        return np.asarray((2 * (chosen @ holds.T) / (chosen.sum(1)[:, None] + sizes)) @ weights)

    if len(names) <= EXACT:
        every = ((np.arange(1, 1 << len(names))[:, None] >> np.arange(len(names))) & 1).astype(float)
        worths = worth(every).round(9)
        best = every[int(worths.argmax())]
        return [name for name, taken in zip(names, best, strict=True) if taken], float(worths.max())
    by_support = np.argsort(-(weights @ holds), kind="stable")[:PREFIXES]
    prefixes = np.zeros((len(by_support), len(names)))
    for n, item in enumerate(by_support):
        prefixes[n:, item] = 1.0
    models = holds[np.argsort(-weights, kind="stable")[:MODELS]]
    tried = np.concatenate([prefixes, models[models.any(1)]])
    best = tried[int(worth(tried).round(9).argmax())]
    top = float(worth(best[None])[0])
    while True:
        changed = np.abs(best - np.eye(len(names)))
        worths = np.where(changed.any(1), worth(changed), -1.0)
        one = int(worths.round(9).argmax())
        if worths[one] <= top + 1e-9:
            return [name for name, taken in zip(names, best, strict=True) if taken], top
        best, top = changed[one], float(worths[one])


def _ordered(
    tasks: Sequence[str], courses: Sequence[tuple[Course, float]], support: Mapping[Pair, float]
) -> tuple[str, ...]:
    """The tasks in an order that agrees with the courses: the expected number of consecutive pairs that a course has
    too, its begin and its end among them, less, for every two tasks that most courses do the other way round, the
    share by which these are more. `support`: of every pair.

    It begins with the task next that fewest others come before, by weight, and moves one task at a time as long as that
    gains.
    """
    lead = np.zeros((len(tasks), len(tasks)))
    place = {task: n for n, task in enumerate(tasks)}
    for course, weight in courses:
        first = [place[t] for t in dict.fromkeys(course.tasks) if t in place]
        for a, b in combinations(first, 2):
            lead[a, b] += weight
    left, found = list(range(len(tasks))), list[int]()
    while left:
        late = [(lead[left, n] > lead[n, left]).sum() for n in left]
        ties = [n for n, count in zip(left, late, strict=True) if count == min(late)]
        best = min(ties, key=lambda n: (float((lead[left, n] - lead[n, left]).sum().round(9)), tasks[n]))
        found.append(best)
        left.remove(best)
    whole = sum(weight for _, weight in courses)
    follows = np.array([[support.get((a, b), 0.0) for b in tasks] for a in tasks])
    begins, ends = (
        np.array([sum(w for course, w in courses if course.tasks[end] == task) for task in tasks]) / whole
        for end in (0, -1)
    )
    return tuple(tasks[n] for n in _moved(found, follows, begins, ends, np.maximum(0.0, lead.T - lead) / whole))


def _moved(
    order: list[int], follows: np.ndarray, begins: np.ndarray, ends: np.ndarray, against: np.ndarray
) -> list[int]:
    """The order after the single moves that gain most, until none gains. `follows` [n, n]: what a directly before b
    earns; `begins`, `ends` [n]: what a task at the begin and the end earns; `against` [n, n]: what a anywhere
    before b costs.
    """
    while len(order) > 1:
        gain, moved = 1e-9, order
        for now, task in enumerate(order):
            rest = order[:now] + order[now + 1 :]
            worth = np.append(begins[task], follows[rest, task]) + np.append(follows[task, rest], ends[task])
            worth -= np.concatenate([begins[rest[:1]], follows[rest[:-1], rest[1:]], ends[rest[-1:]]])
            worth -= np.append(0.0, against[rest, task].cumsum()) + np.append(
                against[task, rest][::-1].cumsum()[::-1], 0.0
            )
            best = int(worth.round(9).argmax())
            if worth[best] - worth[now] > gain:
                gain, moved = float(worth[best] - worth[now]), [*rest[:best], task, *rest[best:]]
        if moved is order:
            break
        order = moved
    return order
