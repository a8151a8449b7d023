"""The least weight of a Steiner tree, exactly: the dynamic programme of Dreyfus and Wagner (1971), to hold the
approximation against.

Time 3^terminals * tasks + 2^terminals * tasks^2: for small graphs and at most about ten terminals.
"""

import heapq
from collections.abc import Collection

from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs import undirected

_FAR = float("inf")


def least_weight(graph: WorkGraph, terminals: Collection[str], within: Collection[str]) -> float | None:
    """Weight, 1 - gamma an edge, of the lightest tree that joins `terminals` through tasks of `within`; None where
    there is none.
    """
    ends = sorted(set(terminals))
    inside = set(within).union(ends)
    near = {t: {other: cost[0] for other, cost in undirected(graph, t).items() if other in inside} for t in inside}
    if len(ends) < 2:
        return 0.0
    rest = ends[:-1]
    best = [
        dict.fromkeys(inside, _FAR) for _ in range(1 << len(rest))
    ]  # by set of terminals and the task where their tree ends
    for number, end in enumerate(rest):
        best[1 << number][end] = 0.0
    for joined in range(1, len(best)):
        row, part = best[joined], (joined - 1) & joined
        while part:
            for task in inside:
                row[task] = min(row[task], best[part][task] + best[joined ^ part][task])
            part = (part - 1) & joined
        _grow(row, near)
    weight = best[-1][ends[-1]]
    return None if weight == _FAR else weight


def steiner_weight(graph: WorkGraph, tree: Collection[tuple[str, str]]) -> float:
    """Weight of an approximation's tree, counted alike."""
    return sum(undirected(graph, a)[b][0] for a, b in tree)


def _grow(row: dict[str, float], near: dict[str, dict[str, float]]) -> None:
    """The weights with the shortest paths to where a tree may end instead (Dijkstra from all of them at once)."""
    heap = [(weight, task) for task, weight in row.items() if weight < _FAR]
    heapq.heapify(heap)
    while heap:
        weight, task = heapq.heappop(heap)
        if weight > row[task]:
            continue
        for other, cost in near[task].items():
            if weight + cost < row[other]:
                row[other] = weight + cost
                heapq.heappush(heap, (row[other], other))
