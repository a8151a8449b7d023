"""Precedence: the order in which similar cases do two tasks.

The Reward of a sequence is a product and hardly depends on the order, so order is learnt: an order that similar cases
never have, no workflow has.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from opus_pipelines.lwm.dependency import Pair, independent, order_counts
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.plan_shape import OrderFacts, plan_shape
from opus_pipelines.wkg.graph import WorkGraph

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

    The rule is that of `lwm.plan_shape`; `seen` is as in `order_facts`. The WFG keeps the sequence as a
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
