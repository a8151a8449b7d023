"""Neighbourhoods N of LWM (7): groups of routed tasks that are connected in the WKG around them."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import SameObject
from opus_pipelines.wkg.graph import WorkGraph

Seed = tuple[str, float]
Reach = tuple[int, float, float]
Near = dict[str, tuple[float, float]]  # neighbours of a task, with the cost of the edge
_NEIGHBOURS_KEPT = 10_000  # tasks whose neighbours are kept: most intakes of a contract ask for the same ones


@dataclass(frozen=True)
class Neighbourhood:
    """Routed tasks with their similarity, nearest first, and the tasks of the local subgraph around them.

    The subgraph includes the routed tasks.
    """

    seeds: tuple[Seed, ...]
    tasks: frozenset[str]

    @property
    def terminals(self) -> list[str]:
        """The routed tasks, nearest first."""
        return [task for task, _ in self.seeds]


def undirected(graph: WorkGraph, task: str) -> Near:
    """The task's neighbours in either direction, each with the cheaper of the two edges.

    The cost of an edge is 1 - γ, then 1 / transitions: where 1 - γ ties (γ saturates), the larger count is nearer.
    """
    return _undirected(SameObject(graph), task)


@lru_cache(_NEIGHBOURS_KEPT)
def _undirected(whole: SameObject[WorkGraph], task: str) -> Near:
    graph, near = whole.value, Near()
    around = [(v, (task, v)) for v in graph.successors.get(task, ())] + [
        (u, (u, task)) for u in graph.predecessors.get(task, ())
    ]
    for other, ends in around:
        edge = graph.edges[ends]
        cost = (edge.one_minus_gamma, 1 / max(edge.transitions, 1))
        if other != task and cost < near.get(other, (float("inf"), 0.0)):
            near[other] = cost
    return near


def neighbourhoods(
    graph: WorkGraph, seeds: Sequence[Seed], hops: int = 1, max_tasks: int = 200, limit: int = 8
) -> list[Neighbourhood]:
    """Groups the routed tasks by the connected components of the local graph.

    The local graph has the tasks within `hops` edges (of either direction) of a seed, nearest tasks first, at most
    `max_tasks` besides the seeds. At most `limit` neighbourhoods are returned, that of the most similar seed first.
    Raises LakeError for a seed that the graph lacks.
    """
    similarity: dict[str, float] = {}
    for task, value in seeds:
        if task not in graph.tasks:
            raise LakeError(
                f"routing found task {task}, which the graph lacks: index and graph are of different snapshots; rebuild"
            )
        similarity[task] = max(value, similarity.get(task, value))
    groups = _components(graph, _local(graph, similarity, hops, max_tasks))
    found = [
        Neighbourhood(
            tuple(sorted(((t, similarity[t]) for t in group if t in similarity), key=_nearest)), frozenset(group)
        )
        for group in groups
    ]
    return sorted(found, key=lambda n: _nearest(n.seeds[0]))[:limit]


def _nearest(seed: Seed) -> tuple[float, str]:
    return -seed[1], seed[0]


def _local(graph: WorkGraph, seeds: dict[str, float], hops: int, max_tasks: int) -> set[str]:
    """Returns the tasks in reach of a seed, by number of edges, then by cost, then by id.

    A task is reached only from a task that was reached before.
    """
    heap: list[tuple[Reach, str]] = [((0, 0.0, 0.0), task) for task in sorted(seeds)]
    reached: set[str] = set()
    while heap and len(reached) < len(seeds) + max_tasks:
        (steps, cost, rarity), task = heapq.heappop(heap)
        if task in reached:
            continue
        reached.add(task)
        if steps < hops:
            for other, (more, rarer) in undirected(graph, task).items():
                if other not in reached:
                    heapq.heappush(heap, ((steps + 1, cost + more, rarity + rarer), other))
    return reached


def _components(graph: WorkGraph, tasks: set[str]) -> list[set[str]]:
    """Returns the connected components of the graph on `tasks`."""
    left, parts = set(tasks), []
    while left:
        part, frontier = set[str](), [min(left)]
        while frontier:
            task = frontier.pop()
            if task in left:
                left.discard(task)
                part.add(task)
                frontier.extend(undirected(graph, task).keys() & left)
        parts.append(part)
    return parts
