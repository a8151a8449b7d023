"""The SWKG of LWM (8): a Steiner tree on the routed tasks of a neighbourhood, with all WKG edges between its tasks.

The tree is the approximation of Kou, Markowsky and Berman (1981): the metric closure of the terminals, its minimum
spanning tree, the paths behind it, their spanning tree, and the leaves pruned. Its weight is at most twice the optimum.
The WKG counts as undirected with weight 1 - γ (this project's choice, spec B); where sums are equal, larger counts win.
Sequences cannot be walked in the tree alone, so a SWKG holds every directed edge of the WKG between the chosen tasks.
"""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import SameObject
from opus_pipelines.wkg.graph import Edge, WorkGraph
from opus_pipelines.wkg.subgraphs.neighbourhoods import undirected

Cost = tuple[float, float]
Link = tuple[str, str]
_Adjacency = dict[str, dict[str, Cost]]
_TREES_KEPT = 256  # trees: most intakes of a contract ask for the same ones


@dataclass(frozen=True)
class SubWKG:
    """A subgraph of the WKG.

    `tasks` maps each id to its role, terminal or connector, sorted. `edges` are those of the WKG between them. `tree`
    has the links (u < v) of the Steiner tree.
    """

    tasks: dict[str, str]
    edges: tuple[Edge, ...]
    tree: tuple[Link, ...] = ()

    def graph(self, whole: WorkGraph) -> WorkGraph:
        """The SWKG as a graph of its own, with the tasks' records of the whole one."""
        return WorkGraph.of([whole.tasks[t] for t in self.tasks], list(self.edges))


def steiner(graph: WorkGraph, terminals: Collection[str], within: Collection[str]) -> SubWKG:
    """Returns the SWKG on `terminals`, with connectors from `within`.

    Terminals that are not connected there give a forest. Raises LakeError for a terminal that the graph lacks.
    """
    ends = sorted(set(terminals))
    if strangers := [t for t in ends if t not in graph.tasks]:
        raise LakeError(
            f"tasks {', '.join(strangers)} are not in the graph: index and graph are of different snapshots; rebuild"
        )
    return _steiner(SameObject(graph), tuple(ends), frozenset(within))


@lru_cache(_TREES_KEPT)
def _steiner(whole: SameObject[WorkGraph], ends: tuple[str, ...], within: frozenset[str]) -> SubWKG:
    graph = whole.value
    near = _adjacency(graph, within.union(ends))
    tree = _pruned(_tree_of(near, _paths(near, ends)), ends)
    chosen = sorted(set(ends).union(*tree))
    roles = {t: "terminal" if t in set(ends) else "connector" for t in chosen}
    edges = [graph.edges[t, v] for t in chosen for v in graph.successors.get(t, ()) if v in roles]
    return SubWKG(roles, tuple(sorted(edges, key=lambda e: (e.src, e.dst))), tuple(sorted(tree)))


def _adjacency(graph: WorkGraph, tasks: frozenset[str]) -> _Adjacency:
    """The undirected graph among `tasks`."""
    return {t: {other: cost for other, cost in undirected(graph, t).items() if other in tasks} for t in tasks}


def _paths(near: _Adjacency, terminals: Sequence[str]) -> set[Link]:
    """Links of the shortest paths behind the spanning tree of the metric closure."""
    back = {t: _shortest(near, t, terminals) for t in terminals}
    closure = [(back[a][b][0], a, b) for i, a in enumerate(terminals) for b in terminals[i + 1 :] if b in back[a]]
    links: set[Link] = set()
    for a, b in _kruskal(closure):
        task = b
        while task != a:
            parent = back[a][task][1]
            links.add((min(task, parent), max(task, parent)))
            task = parent
    return links


def _shortest(near: _Adjacency, source: str, targets: Collection[str]) -> dict[str, tuple[Cost, str]]:
    """Cost from `source` and the task before, for every task that is no farther than the farthest target it reaches."""
    heap: list[tuple[Cost, str, str]] = [((0.0, 0.0), source, source)]
    found: dict[str, tuple[Cost, str]] = {}
    missing = set(targets)
    while heap and missing:
        cost, task, parent = heapq.heappop(heap)
        if task in found:
            continue
        found[task] = (cost, parent)
        missing.discard(task)
        for other, more in near[task].items():
            if other not in found:
                heapq.heappush(heap, ((cost[0] + more[0], cost[1] + more[1]), other, task))
    return found


def _tree_of(near: _Adjacency, links: set[Link]) -> set[Link]:
    """The minimum spanning tree of all links among the tasks that `links` touch."""
    tasks = set[str]().union(*links)
    return _kruskal((cost, a, b) for a in tasks for b, cost in near[a].items() if a < b and b in tasks)


def _kruskal(links: Iterable[tuple[Cost, str, str]]) -> set[Link]:
    """The minimum spanning forest; ties by ids."""
    root: dict[str, str] = {}

    def find(task: str) -> str:
        while root.setdefault(task, task) != task:
            root[task] = root[root[task]]
            task = root[task]
        return task

    forest: set[Link] = set()
    for _, a, b in sorted(links):
        if find(a) != find(b):
            root[find(a)] = find(b)
            forest.add((a, b))
    return forest


def _pruned(tree: set[Link], terminals: Collection[str]) -> set[Link]:
    """Without the branches that end in no terminal."""
    around: dict[str, set[str]] = {}
    for a, b in tree:
        around.setdefault(a, set()).add(b)
        around.setdefault(b, set()).add(a)
    bare = [t for t, near in around.items() if len(near) == 1 and t not in terminals]
    while bare:
        leaf = bare.pop()
        (other,) = around.pop(leaf)
        around[other].discard(leaf)
        if len(around[other]) == 1 and other not in terminals:
            bare.append(other)
    return {(a, b) for a, near in around.items() for b in near if a < b}
