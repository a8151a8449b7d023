"""Parts of the graph: neighbourhoods (LWM (7)), Steiner trees with all their edges (LWM (8)), and random walks.

The tree is the approximation of Kou, Markowsky and Berman (1981). A walk begins and ends as cases do.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import SameObject
from opus_pipelines.wkg.graph import Edge, WorkGraph

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


STAYS = 1 - 1e-9  # of every step: the chain ends even where no edge leads to the end


@dataclass(frozen=True)
class Walks:
    """The walks over some tasks.

    `steps` [n, n] has the probabilities from task to task, whose rows sum to at most 1 (the rest: the walk ends), and
    `starts` [n] those of the first task, which sum to 1.
    """

    tasks: tuple[str, ...]
    steps: np.ndarray
    starts: np.ndarray

    @classmethod
    def on(
        cls, graph: WorkGraph, tasks: Sequence[str], begun: Mapping[str, float], ended: Mapping[str, float]
    ) -> "Walks | None":
        """Return the walks over `tasks`; `begun` and `ended` count the cases that began and ended with a task.

        None where no case began with one of the tasks or no edge joins two of them: nothing tells what a walk does.
        """
        names = tuple(sorted(set(tasks) & graph.tasks.keys()))
        place = {task: n for n, task in enumerate(names)}
        weights = np.zeros((len(names), len(names)))
        for task in names:
            for other in graph.successors.get(task, ()):
                if other in place:
                    edge = graph.edges[task, other]
                    weights[place[task], place[other]] = edge.gamma * edge.transitions
        starts = np.array([begun.get(task, 0.0) for task in names])
        if not starts.sum() > 0 or not weights.any():
            return None
        ends = np.array([ended.get(task, 0.0) for task in names])
        whole = weights.sum(1) + ends
        steps = STAYS * weights / np.where(whole > 0, whole, 1.0)[:, None]
        return cls(names, steps, starts / starts.sum())

    @cached_property
    def reaches(self) -> np.ndarray:
        """Return the probability [n, n] that a walk from a task visits another one, now or later; 1 for itself."""
        return _visits(self.steps)

    def precedence(self) -> np.ndarray:
        """Return how much likelier a walk goes from a to b than from b to a [n, n], in [-1, 1]; it is antisymmetric."""
        return np.asarray(self.reaches - self.reaches.T)

    def visits(self, goals: Sequence[str]) -> np.ndarray | None:
        """Return the probability [n] that a walk visits a task, given that it visits all goals, in any order.

        None where no walk visits all of them, or a goal is not among the tasks.
        """
        if not set(goals) <= set(self.tasks):
            return None
        place = {task: n for n, task in enumerate(self.tasks)}
        orders = [[place[task] for task in order] for order in permutations(dict.fromkeys(goals))]
        found = [self._visits_through(order) for order in orders]
        chances = np.array([chance for chance, _ in found])
        if not chances.sum() > 0:
            return None
        visited = (chances / chances.sum()) @ np.stack([visited for _, visited in found])
        visited[orders[0]] = 1.0
        return np.asarray(np.clip(visited, 0.0, 1.0))

    def _visits_through(self, goals: Sequence[int]) -> tuple[float, np.ndarray]:
        """Return the probability that a walk visits the goals in this order, and [n] that it then visits each task."""
        chance, missed, begins = 1.0, np.ones(len(self.tasks)), self.starts
        for goal in goals:
            before = self.steps.copy()
            before[goal] = 0.0  # a walk up to the goal: it stops there
            to_goal = self.reaches[:, goal]
            reached = float(begins @ to_goal)
            if reached <= 0:
                return 0.0, missed
            visited = begins @ _visits(before)
            missed = missed * (1 - np.clip(visited * to_goal / reached, 0.0, 1.0))
            chance, begins = chance * reached, np.eye(len(self.tasks))[goal]
        return chance, 1 - missed * (1 - np.clip(begins @ self.reaches, 0.0, 1.0))


def _visits(steps: np.ndarray) -> np.ndarray:
    """Return the probability [n, n] that a walk from one task visits another one: N_uv / N_vv, N = (I - steps)^-1."""
    expected = np.linalg.inv(np.eye(len(steps)) - steps)
    return np.asarray(np.clip(expected / np.diag(expected)[None, :], 0.0, 1.0))
