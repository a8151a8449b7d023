"""The order in which near history does things: which of two tasks it always does first.

A chain's Reward hardly tells orders apart (it is a product), so order is learnt: what near cases never do, no workflow
does.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from opus_pipelines.lwm.dependency import independent, order_counts
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.optimization.plan_shape import OrderFacts, plan_shape
from opus_pipelines.wkg.graph import WorkGraph

Pair = tuple[str, str]
MIN_WEIGHT = 0.5  # weight of such cases below which nothing is settled


def stable_precedence(cases: Sequence[SimilarCase], share: float) -> frozenset[Pair]:
    """Pairs (a, b) of which at least `share` of the near cases that did both and did not fail do a first."""
    models = [case for case in cases if case.success is not False]
    tasks = list(dict.fromkeys(task for case in models for task in case.tasks))
    votes = _votes(models, {task: n for n, task in enumerate(tasks)})
    whole = votes + votes.T
    first, second = np.nonzero((votes > 0) & (whole >= MIN_WEIGHT) & (votes >= share * whole))
    return frozenset((tasks[a], tasks[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True))


def _votes(cases: Sequence[SimilarCase], number: Mapping[str, int]) -> np.ndarray:
    """[tasks, tasks]: the weight of the cases that did the one before the other, added up in their order."""
    size = len(number)
    pairs: dict[tuple[str, ...], list[int]] = {}
    for case in cases:
        if case.tasks not in pairs:
            pairs[case.tasks] = [
                number[a] * size + number[b] for a, b in combinations(first_occurrences(case.tasks), 2)
            ]
    found = [np.array(pairs[case.tasks], np.int64) for case in cases]
    weights = np.repeat([case.weight for case in cases], [len(one) for one in found])
    return np.bincount(np.concatenate([np.zeros(0, np.int64), *found]), weights, size * size).reshape(size, size)


def violates(tasks: Sequence[str], order: frozenset[Pair]) -> bool:
    """Does the sequence do two tasks the other way round?"""
    return any((b, a) in order for a, b in combinations(tasks, 2))


def order_facts(
    tasks: Iterable[str], seen: Mapping[Pair, float], graph: WorkGraph, settled: frozenset[Pair]
) -> OrderFacts:
    """What decides which of these tasks waits for which. `seen`: how many near cases did the one task before the
    other.
    """
    known = [graph.tasks[t] for t in sorted(tasks)]
    return OrderFacts(
        lambda pair: order_counts(pair, seen, graph.transitions),
        {t.task_id: frozenset(t.inputs) for t in known},
        {t.task_id: frozenset(t.outputs) for t in known},
        settled,
    )


def independent_pairs(tasks: Collection[str], seen: Mapping[Pair, float], graph: WorkGraph) -> frozenset[Pair]:
    """The pairs of these tasks, both ways round, that history shows independent: what `facts_of` tells of them."""
    known = frozenset(tasks)
    near = {pair for pair in seen if known.issuperset(pair)}
    walked = {(a, b) for a in known for b in graph.successors.get(a, ()) if b in known and (b, a) in graph.edges}
    return frozenset(pair for pair in near | walked if independent(*order_counts(pair, seen, graph.transitions)))


def predecessors(
    sequences: Mapping[str, Sequence[str]], seen: Mapping[Pair, float], graph: WorkGraph, settled: frozenset[Pair]
) -> dict[str, list[list[int]]]:
    """dag_s of LWM (10) of every sequence: for each of its places those that it waits for directly, by the rule of
    `optimization.plan_shape`.

    `seen`: as `facts_of`. The WFG keeps the sequence as a chain of edges, so that a path through it meets every step;
    what may run beside what stands here.
    """
    facts = order_facts({t for found in sequences.values() for t in found}, seen, graph, settled)
    return {name: _waits(found, facts) for name, found in sequences.items()}


def _waits(tasks: Sequence[str], facts: OrderFacts) -> list[list[int]]:
    place = {task: n for n, task in enumerate(tasks)}
    found: list[list[int]] = [[] for _ in tasks]
    for a, b in plan_shape(tasks, facts).covers():
        found[place[b]].append(place[a])
    return found
