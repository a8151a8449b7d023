"""The order in which near history does things: which of two tasks it always does first.

A chain's Reward hardly tells orders apart (it is a product), so order is learnt: what near cases never do, no workflow does.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from opus_pipelines.lwm.history import first_occurrences
from opus_pipelines.lwm.interface import NearCase
from opus_pipelines.wfg.algorithm1 import WFG

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


def forward(wfg: WFG, order: frozenset[Pair]) -> WFG:
    """The WFG without the edges that lead against the order."""
    return replace(wfg, edges={(a, b): edge for (a, b), edge in wfg.edges.items() if (b, a) not in order})
