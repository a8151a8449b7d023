"""The order in which near history does things: which of two tasks it always does first.

A chain's Reward hardly tells orders apart (it is a product), so order is learnt: what near cases never do, no workflow does.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from opus_pipelines.lwm.history import first_occurrences
from opus_pipelines.lwm.interface import NearCase
from opus_pipelines.optimization.shape import Facts, shaped
from opus_pipelines.wfg.dependency import told
from opus_pipelines.wkg.graph import WorkGraph

Pair = tuple[str, str]
MIN_WEIGHT = 0.5  # weight of such cases below which nothing is settled


def settled_order(cases: Sequence[NearCase], share: float) -> frozenset[Pair]:
    """Pairs (a, b) of which at least `share` of the near cases that did both and did not fail do a first."""
    votes: dict[Pair, float] = defaultdict(float)
    for case in cases:
        if case.success is not False:
            for pair in combinations(first_occurrences(case.tasks), 2):
                votes[pair] += case.weight
    return frozenset((a, b) for (a, b), v in votes.items() if (whole := v + votes.get((b, a), 0.0)) >= MIN_WEIGHT and v >= share * whole)


def breaks(tasks: Sequence[str], order: frozenset[Pair]) -> bool:
    """Does the sequence do two tasks the other way round?"""
    return any((b, a) in order for a, b in combinations(tasks, 2))


def facts_of(tasks: Iterable[str], seen: Mapping[Pair, float], graph: WorkGraph, settled: frozenset[Pair]) -> Facts:
    """What decides which of these tasks waits for which. `seen`: how many near cases did the one task before the other."""
    known = [graph.tasks[t] for t in sorted(tasks)]
    return Facts(
        lambda pair: told(pair, seen, graph.transitions),
        {t.task_id: frozenset(t.inputs) for t in known}, {t.task_id: frozenset(t.outputs) for t in known}, settled,
    )


def predecessors(
    sequences: Mapping[str, Sequence[str]], seen: Mapping[Pair, float], graph: WorkGraph, settled: frozenset[Pair]
) -> dict[str, list[list[int]]]:
    """dag_s of LWM (10) of every sequence: for each of its places those that it waits for directly, by the rule of `optimization.shape`.

    `seen`: as `facts_of`. The WFG keeps the sequence as a chain of edges, so that a path through
    it meets every step; what may run beside what stands here.
    """
    facts = facts_of({t for found in sequences.values() for t in found}, seen, graph, settled)
    return {name: _waits(found, facts) for name, found in sequences.items()}


def _waits(tasks: Sequence[str], facts: Facts) -> list[list[int]]:
    place = {task: n for n, task in enumerate(tasks)}
    found: list[list[int]] = [[] for _ in tasks]
    for a, b in shaped(tasks, facts).covers():
        found[place[b]].append(place[a])
    return found
