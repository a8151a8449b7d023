"""The consensus of similar cases: the tasks, and the consecutive pairs, with the highest expected F1 against them.

Where history has no outcomes, nothing tells which work may be left out. The best statement of the work to be done is
then the workflow that is expected to share most with the case that the intake will become: minimum Bayes risk with F1
as the gain (Kumar and Byrne 2004), with the weighted similar cases as the posterior. The consensus holds a task that
most of them did, and not one that few did; the number of tasks follows from the cases. Where there are few tasks, every
set of them is compared. Otherwise every prefix of the tasks by support, and the most frequent cases, are compared, and
then one task at a time is changed as long as the expected F1 grows.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import TypeVar

import numpy as np

from opus_pipelines.lwm.precedence import Pair

Item = TypeVar("Item", bound=Hashable)
VARIANTS = 400  # most distinct traces that are compared, those with the largest weight
PREFIXES = 60  # most tasks, in order of support, whose prefixes are tried
EXACT = 10  # up to so many tasks or pairs, every set of them is compared
_MODELS = 40  # traces with the largest weight that are tried unchanged


@dataclass(frozen=True)
class Trace:
    """The trace of one case, or its expected trace when it has ended: tasks in order, and consecutive pairs.

    Repetitions are included.
    """

    tasks: tuple[str, ...]
    pairs: frozenset[Pair]

    @classmethod
    def of(cls, tasks: Sequence[str], predecessors: Sequence[Sequence[int] | None] | None = None) -> "Trace":
        """Return the trace of these tasks.

        `predecessors` has, for each task, the positions that it directly follows; None: the position before. A
        task does not follow itself.
        """
        if predecessors is None or all(places is None for places in predecessors):
            return cls(tuple(tasks), frozenset((a, b) for a, b in pairwise(tasks) if a != b))
        pairs = {
            (tasks[p], task)
            for n, (task, places) in enumerate(zip(tasks, predecessors, strict=True))
            for p in ([n - 1] if places is None and n else places or ())
            if 0 <= p < len(tasks) and tasks[p] != task
        }
        return cls(tuple(tasks), frozenset(pairs))

    def among(self, tasks: Collection[str]) -> "Trace":
        """Return the trace restricted to these tasks; a task follows the last of them before it."""
        if frozenset(tasks).issuperset(self.tasks):
            return self
        return Trace.of([t for t in self.tasks if t in tasks])

    def agreement(self, other: "Trace") -> tuple[float, float]:
        """Return the F1 of the tasks and the F1 of the consecutive pairs with another trace."""
        return f1(frozenset(self.tasks), frozenset(other.tasks)), f1(self.pairs, other.pairs)


@dataclass(frozen=True)
class Consensus:
    """The consensus of weighted cases.

    `tasks` are in order; `support` and `pair_support` are the shares of the similar cases, by weight, that hold a
    task or a consecutive pair; `agreement` is the expected F1 of the tasks; `cases` is the effective number of
    cases (Kish 1965), (Σw)² / Σw².
    """

    tasks: tuple[str, ...]
    support: Mapping[str, float]
    pair_support: Mapping[Pair, float]
    agreement: float
    cases: float
    traces: tuple[tuple[Trace, float], ...]
    _counted: dict[frozenset[str], Mapping[Trace, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def expected_f1(self, tasks: Sequence[str], among: Collection[str]) -> tuple[float, float]:
        """Return the expected F1 of the tasks of a sequence, and of its pairs, against the similar cases.

        Only the tasks in `among` count.
        """
        own, counted = Trace.of(tasks), self.weights_among(among)
        total, agreements = (
            sum(counted.values()),
            [(trace.agreement(own), weight) for trace, weight in counted.items()],
        )
        return sum(w * of_tasks for (of_tasks, _), w in agreements) / total, sum(
            w * of_pairs for (_, of_pairs), w in agreements
        ) / total

    def with_likeliest_first(self) -> "Consensus":
        """Return the consensus that begins with the one of its tasks that most traces begin with, by weight.

        The other tasks keep their order. This is the first step that is most often right; the order of the
        consensus weighs the first step against all pairs, of which there are many where work is long.
        """
        begun = dict.fromkeys(self.tasks, 0.0)
        for trace, weight in self.traces:
            if trace.tasks[0] in begun:
                begun[trace.tasks[0]] += weight
        first = max(self.tasks, key=lambda task: round(begun[task], 9))
        return replace(self, tasks=(first, *(task for task in self.tasks if task != first)))

    def pairs_among(self, tasks: Collection[str]) -> dict[Pair, float]:
        """Return the pairs of these tasks with the highest expected F1, with their support.

        They are compared with all pairs of the similar cases. The result is empty where no similar case did one
        of these tasks directly after another.
        """
        inside = frozenset(tasks)
        linked = [(trace.pairs, weight) for trace, weight in self.traces if trace.pairs]
        if not any(inside.issuperset(pair) for pairs, _ in linked for pair in pairs):
            return {}
        return {pair: self.pair_support[pair] for pair in sorted(_best(linked, inside.issuperset)[0])}

    def weights_among(self, among: Collection[str]) -> Mapping[Trace, float]:
        """Return the traces of the similar cases, restricted to these tasks, with their weights."""
        key = frozenset(among)
        if key not in self._counted:
            weights: dict[Trace, float] = {}
            for trace, weight in self.traces:
                part = trace.among(key)
                weights[part] = weights.get(part, 0.0) + weight
            self._counted[key] = weights
        return self._counted[key]


def consensus(traces: Sequence[Trace], weights: np.ndarray) -> Consensus:
    """Return the consensus of traces with weights [n].

    Raises ValueError where no trace with a task has a positive weight.
    """
    weight_of: dict[Trace, float] = {}
    for trace, weight in zip(traces, weights.tolist(), strict=True):
        if weight > 0 and trace.tasks:
            weight_of[trace] = weight_of.get(trace, 0.0) + weight
    if not weight_of:
        raise ValueError("no similar case has a task")
    kept = tuple(sorted(weight_of.items(), key=lambda c: (-c[1], c[0].tasks))[:VARIANTS])
    own = weights[weights > 0]
    total = sum(w for _, w in kept)
    support = _support([(frozenset(c.tasks), w) for c, w in kept])
    tasks, agreement = _best([(frozenset(c.tasks), w) for c, w in kept])
    of_pair = _support([(c.pairs, w) for c, w in kept])
    return Consensus(
        _ordered(tasks, kept, of_pair),
        support,
        of_pair,
        agreement / total,
        float(own.sum() ** 2 / (own**2).sum()),
        kept,
    )


def f1(one: Collection[Item], other: Collection[Item]) -> float:
    """Return the F1 of two sets; 1 where both are empty."""
    both = len(frozenset(one) & frozenset(other))
    return 2 * both / (len(one) + len(other)) if one or other else 1.0


def _support(weighted_sets: Sequence[tuple[frozenset[Item], float]]) -> dict[Item, float]:
    total, support = sum(w for _, w in weighted_sets), dict[Item, float]()
    for items, weight in weighted_sets:
        for item in items:
            support[item] = support.get(item, 0.0) + weight
    return {item: weight / total for item, weight in support.items()}


def _best(
    weighted_sets: Sequence[tuple[frozenset[Item], float]], among: Callable[[Item], bool] = lambda item: True
) -> tuple[list[Item], float]:
    """Return the set of items in `among` with the highest sum of weight · F1, sorted, and that sum."""
    joined: dict[frozenset[Item], float] = {}
    for items, weight in weighted_sets:
        joined[items] = joined.get(items, 0.0) + weight
    names = sorted({item for items in joined for item in items if among(item)})  # type: ignore[type-var]
    place = {item: n for n, item in enumerate(names)}
    holds = np.zeros((len(joined), len(names)))
    for row, items in enumerate(joined):
        holds[row, [place[item] for item in items if item in place]] = 1.0
    weights, sizes = np.array(list(joined.values())), np.array([len(items) for items in joined])

    def gain(chosen: np.ndarray) -> np.ndarray:
        """Return the gains [k] of k sets [k, names]."""
        return np.asarray((2 * (chosen @ holds.T) / (chosen.sum(1)[:, None] + sizes)) @ weights)

    if len(names) <= EXACT:
        every = ((np.arange(1, 1 << len(names))[:, None] >> np.arange(len(names))) & 1).astype(float)
        worths = gain(every).round(9)
        best = every[int(worths.argmax())]
        return [name for name, taken in zip(names, best, strict=True) if taken], float(worths.max())
    by_support = np.argsort(-(weights @ holds), kind="stable")[:PREFIXES]
    prefixes = np.zeros((len(by_support), len(names)))
    for n, item in enumerate(by_support):
        prefixes[n:, item] = 1.0
    models = holds[np.argsort(-weights, kind="stable")[:_MODELS]]
    tried = np.concatenate([prefixes, models[models.any(1)]])
    best = tried[int(gain(tried).round(9).argmax())]
    top = float(gain(best[None])[0])
    while True:
        changed = np.abs(best - np.eye(len(names)))
        worths = np.where(changed.any(1), gain(changed), -1.0)
        one = int(worths.round(9).argmax())
        if worths[one] <= top + 1e-9:
            return [name for name, taken in zip(names, best, strict=True) if taken], top
        best, top = changed[one], float(worths[one])


def _ordered(
    tasks: Sequence[str], traces: Sequence[tuple[Trace, float]], support: Mapping[Pair, float]
) -> tuple[str, ...]:
    """Return the tasks in the order that agrees best with the traces.

    The gain of an order is the expected number of consecutive pairs, first and last task included, that a trace
    has too. Its loss is, for every two tasks that most traces do the other way round, the share by which these are
    more. The search begins with the task that the fewest others precede, by weight, and moves one task at a time as
    long as that gains. `support` is that of every pair.
    """
    lead = np.zeros((len(tasks), len(tasks)))
    place = {task: n for n, task in enumerate(tasks)}
    for trace, weight in traces:
        first = [place[t] for t in dict.fromkeys(trace.tasks) if t in place]
        for a, b in combinations(first, 2):
            lead[a, b] += weight
    remaining, order = list(range(len(tasks))), list[int]()
    while remaining:
        late = [(lead[remaining, n] > lead[n, remaining]).sum() for n in remaining]
        ties = [n for n, count in zip(remaining, late, strict=True) if count == min(late)]
        best = min(ties, key=lambda n: (float((lead[remaining, n] - lead[n, remaining]).sum().round(9)), tasks[n]))
        order.append(best)
        remaining.remove(best)
    total = sum(weight for _, weight in traces)
    follows = np.array([[support.get((a, b), 0.0) for b in tasks] for a in tasks])
    begins, ends = (
        np.array([sum(w for trace, w in traces if trace.tasks[end] == task) for task in tasks]) / total
        for end in (0, -1)
    )
    return tuple(tasks[n] for n in _moved(order, follows, begins, ends, np.maximum(0.0, lead.T - lead) / total))


def _moved(
    order: list[int], follows: np.ndarray, begins: np.ndarray, ends: np.ndarray, against: np.ndarray
) -> list[int]:
    """Return the order after the best single moves, until no move gains.

    `follows` [n, n]: the gain of a directly before b. `begins`, `ends` [n]: the gain of a task as the first or the
    last. `against` [n, n]: the loss of a anywhere before b.
    """
    while len(order) > 1:
        gain, moved = 1e-9, order
        for now, task in enumerate(order):
            rest = order[:now] + order[now + 1 :]
            gains = np.append(begins[task], follows[rest, task]) + np.append(follows[task, rest], ends[task])
            gains -= np.concatenate([begins[rest[:1]], follows[rest[:-1], rest[1:]], ends[rest[-1:]]])
            gains -= np.append(0.0, against[rest, task].cumsum()) + np.append(
                against[task, rest][::-1].cumsum()[::-1], 0.0
            )
            best = int(gains.round(9).argmax())
            if gains[best] - gains[now] > gain:
                gain, moved = float(gains[best] - gains[now]), [*rest[:best], task, *rest[best:]]
        if moved is order:
            break
        order = moved
    return order
