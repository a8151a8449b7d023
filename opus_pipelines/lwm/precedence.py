"""The order of tasks: which of two waits for the other, by the orders in which history did them.

The counts of both orders make the dependency measure of process mining. The shape of a workflow is the strict partial
order in which its tasks wait for each other. The rule is this project's own: of two tasks the later one waits for the
earlier one if one of them takes data that the other leaves, if a precedence orders them, or if history does not show
them independent. A task also waits where nothing is known.

The Reward of a sequence is a product and hardly depends on the order, so order is learnt: an order that similar cases
never have, no workflow has.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np

from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.model import TaskOrder

Pair = tuple[str, str]
_KEPT = 1_024  # sequences whose pairs are kept, some kB each
DEPENDENT = 0.8  # least value of the measure of dependent tasks; ten times forward and once backward is 0.75


def dependency(forward: float, backward: float) -> float:
    """Return the dependency measure (|a>b| - |b>a|) / (|a>b| + |b>a| + 1), which lies in ]-1, 1[.

    It is that of the heuristics miner (Weijters, van der Aalst, Alves de Medeiros, 2006). `forward` and `backward`
    are the counts |a>b| and |b>a|.
    """
    return (forward - backward) / (forward + backward + 1)


def independent(forward: float, backward: float, dependent: float = DEPENDENT) -> bool:
    """Return whether two tasks were seen in both orders, and neither order is an exception.

    This is the project's own rule: tasks that were seen in one order only, or never together, stay in the order
    that is proposed.
    """
    return forward > 0 and backward > 0 and abs(dependency(forward, backward)) < dependent


def precedence_counts(sequences: Iterable[Sequence[str]]) -> Counter[Pair]:
    """Count the sequences that did a before b, directly or not, with each task at its first occurrence."""
    counts: Counter[Pair] = Counter()
    for tasks, n in Counter(tuple(tasks) for tasks in sequences).items():
        for pair in _pairs(tasks):
            counts[pair] += n
    return counts


@lru_cache(_KEPT)
def _pairs(tasks: tuple[str, ...]) -> tuple[Pair, ...]:
    return tuple(combinations(dict.fromkeys(tasks), 2))


def order_counts(pair: Pair, seen: Mapping[Pair, float], elsewhere: Callable[[Pair], float]) -> tuple[float, float]:
    """Return how often a pair was done forward and backward.

    The counts come from `seen`; where it has neither order, they come from `elsewhere` (the transitions of the
    WKG).
    """
    reverse = pair[1], pair[0]
    counts = seen.get(pair, 0.0), seen.get(reverse, 0.0)
    return counts if any(counts) else (elsewhere(pair), elsewhere(reverse))


OrderCounts = Callable[[Pair], tuple[float, float]]


@dataclass(frozen=True)
class OrderFacts:
    """The known facts about the order of tasks.

    `counts`: how often history has a pair forward and backward. `inputs` and `outputs`: the data that each task
    takes and leaves. `precedence`: the pairs of which the first must come first.
    """

    counts: OrderCounts
    inputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    precedence: frozenset[Pair] = frozenset()

    def flows(self, src: str, dst: str) -> frozenset[str]:
        """Returns the data that the first task leaves and the second takes."""
        return self.outputs.get(src, frozenset()) & self.inputs.get(dst, frozenset())

    def waits(self, first: str, second: str) -> bool:
        """Returns whether the second task, done later, waits for the first."""
        if (first, second) in self.precedence or (second, first) in self.precedence:
            return True
        return bool(self.flows(first, second) or self.flows(second, first)) or not independent(
            *self.counts((first, second))
        )

    def required(self, tasks: Sequence[str]) -> list[Pair]:
        """Returns every pair of the sequence of which the later task waits."""
        return [(a, b) for a, b in combinations(tasks, 2) if self.waits(a, b)]


def plan_shape(tasks: Sequence[str], facts: OrderFacts) -> TaskOrder:
    """Returns the least order of the tasks: it has no unnecessary wait."""
    return TaskOrder.of(tasks, facts.required(tasks))


MIN_WEIGHT = 0.5  # total weight of such cases below which no precedence is stable


def stable_precedence(cases: Sequence[SimilarCase], share: float) -> frozenset[Pair]:
    """Return the pairs (a, b) that at least `share` of the similar cases did in this order.

    Only cases count that did both tasks and did not fail.
    """
    models = [case for case in cases if case.success is not False]
    tasks = list(dict.fromkeys(task for case in models for task in case.tasks))
    votes = _votes(models, {task: n for n, task in enumerate(tasks)})
    whole = votes + votes.T
    first, second = np.nonzero((votes > 0) & (whole >= MIN_WEIGHT) & (votes >= share * whole))
    return frozenset((tasks[a], tasks[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True))


def _votes(cases: Sequence[SimilarCase], number: Mapping[str, int]) -> np.ndarray:
    """Return, for each two tasks [tasks, tasks], the weight of the cases that did the first before the second."""
    size = len(number)
    pairs: dict[tuple[str, ...], np.ndarray] = {}
    for case in cases:
        if case.tasks not in pairs:
            both = combinations([number[task] for task in first_occurrences(case.tasks)], 2)
            pairs[case.tasks] = np.array([a * size + b for a, b in both], np.int64)
    positions = [pairs[case.tasks] for case in cases]
    weights = np.repeat([case.weight for case in cases], [len(one) for one in positions])
    return np.bincount(np.concatenate([np.zeros(0, np.int64), *positions]), weights, size * size).reshape(size, size)


def violates(tasks: Sequence[str], order: frozenset[Pair]) -> bool:
    """Return whether the sequence does a pair of the precedence the other way round."""
    return any((b, a) in order for a, b in combinations(tasks, 2))


def order_facts(
    tasks: Iterable[str], seen: Mapping[Pair, float], graph: WorkGraph, precedence: frozenset[Pair]
) -> OrderFacts:
    """Return the facts that decide which of these tasks waits for which.

    `seen`: how many similar cases did the first task of a pair before the second.
    """
    known = [graph.tasks[t] for t in sorted(tasks)]
    return OrderFacts(
        lambda pair: order_counts(pair, seen, graph.transitions),
        {t.task_id: frozenset(t.inputs) for t in known},
        {t.task_id: frozenset(t.outputs) for t in known},
        precedence,
    )


def independent_pairs(tasks: Collection[str], seen: Mapping[Pair, float], graph: WorkGraph) -> frozenset[Pair]:
    """Return the pairs of these tasks, in both directions, that history shows to be independent."""
    known = frozenset(tasks)
    seen_pairs = {pair for pair in seen if known.issuperset(pair)}
    walked = {(a, b) for a in known for b in graph.successors.get(a, ()) if b in known and (b, a) in graph.edges}
    return frozenset(pair for pair in seen_pairs | walked if independent(*order_counts(pair, seen, graph.transitions)))


def predecessors(
    sequences: Mapping[str, Sequence[str]], seen: Mapping[Pair, float], graph: WorkGraph, precedence: frozenset[Pair]
) -> dict[str, list[list[int]]]:
    """Return dag_s, LWM (10), of every sequence: for each position those that it directly waits for.

    The rule is that of `lwm.precedence`; `seen` is as in `order_facts`. The WFG keeps the sequence as a
    chain of edges, so that a path through it meets every step; the result tells which steps may run in parallel.
    """
    facts = order_facts({t for tasks in sequences.values() for t in tasks}, seen, graph, precedence)
    return {name: _waits(tasks, facts) for name, tasks in sequences.items()}


def _waits(tasks: Sequence[str], facts: OrderFacts) -> list[list[int]]:
    place = {task: n for n, task in enumerate(tasks)}
    waits: list[list[int]] = [[] for _ in tasks]
    for a, b in plan_shape(tasks, facts).covers():
        waits[place[b]].append(place[a])
    return waits
