"""Finds the k best paths and the execution mode of every task jointly, within limits: label setting, best first.

A label is a partial path with its Pareto points (`ParetoPoint`). Labels are expanded in the order of their bounds
(`net.CostToGoBounds`), so the first ones to arrive at the output are the best. The search may discard the following
without a loss.

- A point that another point of the *same* partial path makes unnecessary (`ParetoPoint`): the path keeps execution
  modes that are worth as much.
- A point that points of k *other* partial paths dominate, all with the same open nodes, the same visited groups, the
  same orders with a visited first node, and equal counts of common nodes with every path to differ from. Each
  completion of the one is a completion of the others too, so k different paths are worth as much as any path that the
  point leads to.
- A label that can be worth no more than the k-th best path found.

The result is exact where the search completes; otherwise it states the optimality gap.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from opus_pipelines.generation.search.net import (
    EPS,
    CostToGoBounds,
    Dominance,
    LagrangeBound,
    Limits,
    Line,
    ParetoPoint,
    SearchNet,
    SearchStates,
    Step,
    envelope_height,
)
from opus_pipelines.generation.search.problem import Differs, Problem, ProblemKey
from opus_pipelines.workflow.model import TaskNode, bits

Common = tuple[
    tuple[int, int] | None, ...
]  # with each path to differ from: nodes that it lacks, nodes that it has; None: differs enough


class DiversityConstraint(NamedTuple):
    """The paths that every found path must differ from.

    `others` has one entry for each such path: the mask of its nodes in the graph, its number of nodes, and the least
    number of swaps. `ends` masks the input and the output, which are no tasks.
    """

    others: tuple[tuple[int, int, int], ...] = ()
    ends: int = 0
    goal: int = 0

    @classmethod
    def of(cls, problem: Problem, net: SearchNet) -> "DiversityConstraint":
        """Returns the diversity constraint of a problem for paths through its net."""
        constraints = [d for d in problem.demands if isinstance(d, Differs)]
        others = (
            (sum(1 << net.number[n] for n in d.nodes if n in net.number), len(d.nodes), d.least) for d in constraints
        )
        return cls(tuple(others), 1 << net.start | 1 << net.goal, net.goal)

    def so_far(self, nodes: tuple[int, ...]) -> Common:
        """Returns how far a partial path differs from each other path, None where it differs enough.

        Added nodes count at once. Omitted nodes count only at the output, because a partial path may still visit them.
        """
        mask, is_whole = self._tasks(nodes), nodes[-1] == self.goal
        counts: list[tuple[int, int] | None] = []
        for own, size, least in self.others:
            extra, common = (mask & ~own).bit_count(), (mask & own).bit_count()
            counts.append(None if extra >= least or (is_whole and size - common >= least) else (extra, common))
        return tuple(counts)

    def is_reached(self, nodes: tuple[int, ...]) -> bool:
        """Returns whether a complete path differs enough from all others."""
        return all(known is None for known in self.so_far(nodes))

    def is_open(self, nodes: tuple[int, ...], left: int) -> bool:
        """Returns whether a partial path can still differ enough, if it may add the nodes of the mask `left`."""
        if not self.others:
            return True
        mask, ahead = self._tasks(nodes), self._tasks(bits(left))
        return all(
            ((mask | ahead) & ~own).bit_count() >= least or size - (mask & own).bit_count() >= least
            for own, size, least in self.others
        )

    def _tasks(self, nodes: Iterable[int]) -> int:
        return sum(1 << n for n in nodes) & ~self.ends if self.others else 0


class ParetoLabel(NamedTuple):
    """A partial path: its nodes, the nodes it closed, the groups it visited, and its Pareto points.

    `firsts` masks the orders whose first node it has. `transitions` counts how often history followed its edges.
    """

    nodes: tuple[int, ...]
    closed: int
    visited: int
    firsts: int
    transitions: int
    points: list[ParetoPoint]


# The sort key (bound, length, transitions, all highest first, then nodes), the bound itself, and the label.
Entry = tuple[int, int, int, tuple[int, ...], float, ParetoLabel]


class CompletePath(NamedTuple):
    """A complete path with its best execution modes."""

    worth: float
    transitions: int
    nodes: tuple[int, ...]
    point: ParetoPoint


@dataclass(frozen=True)
class SearchSpace:
    """The paths that a search looks at: those of the net that keep the limits and differ enough from earlier paths.

    `limits`: those that the search carries; the net may have more.
    """

    states: SearchStates
    limits: Limits
    diversity: DiversityConstraint

    @property
    def net(self) -> SearchNet:
        """The net whose states these are."""
        return self.states.net


class ParetoLabels:
    """One search for the k best paths of a space; `run` continues where it stopped.

    `max_front`: the points that a label keeps. `relaxed`: a further bound, with a price on the limits.
    """

    def __init__(self, space: SearchSpace, k: int, max_front: int, relaxed: LagrangeBound | None = None) -> None:
        net, states = space.net, space.states
        self.net, self.states, self.k, self.max_front, self.diversity = net, states, k, max_front, space.diversity
        self.bounds = CostToGoBounds(net, states, space.limits, relaxed)
        self.dominance = Dominance(net, space.limits)
        self.paths: list[CompletePath] = []
        self.dropped_bound = -math.inf  # the highest bound of a point that was dropped because its label had too many
        self.heap: list[Entry] = []
        self.known: dict[tuple[int, int, int, int, Common], list[tuple[tuple[int, ...], ParetoPoint]]] = defaultdict(
            list
        )
        start = ParetoPoint(net.prior, 0.0, 0.0, 0.0, net.options[net.start][0].held)
        self._push(ParetoLabel((net.start,), net.excluded_after[net.start], states.groups_of[net.start], 0, 0, [start]))

    @property
    def upper_bound(self) -> float:
        """The most that a path not yet found may be worth; minus infinity where there is none."""
        return max([self.dropped_bound, *(entry[4] for entry in self.heap[:1])])

    @property
    def cutoff(self) -> float:
        """The worth of the k-th best path found so far; labels with a lower bound can be discarded."""
        return self.paths[self.k - 1].worth if len(self.paths) >= self.k else -math.inf

    def run(self, effort: int) -> bool:
        """Expands up to `effort` labels more; returns whether the k best paths, or all paths, are found."""
        for _ in range(effort):
            if self._is_done():
                return True
            self._expand(heapq.heappop(self.heap)[-1])
        return self._is_done()

    def dive(self, effort: int) -> None:
        """Expands first the labels nearest to a complete path, so that some path is found soon.

        The order is: fewest groups to visit, then fewest steps to the next of them, then worth. Unexpanded labels stay
        in the heap.
        """
        hops = [self.net.hops(group) for group in (*self.net.groups, 1 << self.net.goal)]

        def keyed(entry: Entry) -> tuple[int, int, Entry]:
            label = entry[-1]
            missing = list(bits(self.states.full & ~label.visited))
            return len(missing), min(hops[i][label.nodes[-1]] for i in missing or [-1]), entry

        queue = [keyed(entry) for entry in self.heap]
        heapq.heapify(queue)
        self.heap = []
        while queue and effort:
            entry = heapq.heappop(queue)[-1]
            if entry[4] > self.cutoff + EPS:
                effort -= 1
                self._expand(entry[-1])
                for longer in self.heap:
                    heapq.heappush(queue, keyed(longer))
                self.heap = []
        self.heap = [entry for *_, entry in queue]
        heapq.heapify(self.heap)

    def _is_done(self) -> bool:
        return not self.heap or self.heap[0][4] <= self.cutoff + EPS

    def _expand(self, label: ParetoLabel) -> None:
        for step in self.net.steps[label.nodes[-1]]:
            if not label.closed >> step.node & 1:
                longer = self._longer(label, step)
                if longer is not None:
                    self._push(longer)

    def _longer(self, label: ParetoLabel, step: Step) -> ParetoLabel | None:
        """Returns the label extended by one step; None where it cannot become a feasible path."""
        node = step.node
        order = self._ordered(label, node)
        if order is None:
            return None
        closed, firsts = order
        visited = label.visited | self.states.groups_of[node]
        left = self.net.descendants[node] & ~closed
        state = self.states.number(node, visited)
        if state is None or any(not self.net.groups[i] & left for i in bits(self.states.full & ~visited)):
            return None
        if not self.diversity.is_open((*label.nodes, node), left):
            return None
        extended = [
            point.after(option, number, step.weight)
            for point in label.points
            for number, option in enumerate(step.options)
        ]
        points = [point for point in extended if self.bounds.fits(point, state)]
        return (
            ParetoLabel((*label.nodes, node), closed, visited, firsts, label.transitions + step.transitions, points)
            if points
            else None
        )

    def _ordered(self, label: ParetoLabel, node: int) -> tuple[int, int] | None:
        """Returns the closed nodes and the seen firsts of orders with this node; None where it comes too late."""
        closed, firsts = label.closed | self.net.excluded_after[node], label.firsts
        for number, (first, second) in enumerate(self.net.pairs):
            was_seen, is_second = firsts >> number & 1, second >> node & 1
            if first >> node & 1:
                if is_second and not was_seen:
                    return None
                firsts |= 1 << number
            elif is_second and not was_seen:
                closed |= first
        return closed, firsts

    def _push(self, label: ParetoLabel) -> None:
        node = label.nodes[-1]
        state = self.states.number(node, label.visited)
        if node == self.net.goal:
            self._arrive(label)
        elif state is not None:
            points = self._undominated(label, self.dominance.undominated(label.points, node))
            bounds = [self.bounds.worth(point, state) for point in points]
            if len(points) > self.max_front:
                order = sorted(range(len(points)), key=lambda i: (-bounds[i], i))
                self.dropped_bound = max(self.dropped_bound, bounds[order[self.max_front]])
                points = [points[i] for i in order[: self.max_front]]
            best = max(bounds, default=-math.inf)
            if best > self.cutoff + EPS:
                label = label._replace(points=points)
                heapq.heappush(
                    self.heap, (-round(best / EPS), -len(label.nodes), -label.transitions, label.nodes, best, label)
                )

    def _arrive(self, label: ParetoLabel) -> None:
        if label.visited == self.states.full and self.diversity.is_reached(label.nodes):
            best = max(label.points, key=lambda p: (self.bounds.arrived(p), tuple(-pick for pick in p.picks)))
            self.paths.append(CompletePath(self.bounds.arrived(best), label.transitions, label.nodes, best))
            self.paths.sort(key=lambda a: (-round(a.worth / EPS), -a.transitions, a.nodes))

    def _undominated(self, label: ParetoLabel, points: list[ParetoPoint]) -> list[ParetoPoint]:
        """Returns the points that fewer than k other partial paths dominate, and remembers them."""
        node = label.nodes[-1]
        left = self.net.descendants[node] & ~label.closed
        firsts = 0
        for i, (first, second) in enumerate(self.net.pairs):
            # An order that can no longer be broken counts like one whose first node was visited.
            if label.firsts >> i & 1 or not (first & left and second & left):
                firsts |= 1 << i
        known = self.known[node, left, label.visited, firsts, self.diversity.so_far(label.nodes)]
        kept = []
        for point in points:
            better = {
                nodes for nodes, other in known if nodes != label.nodes and self.dominance.dominates(other, point, node)
            }
            if len(better) < self.k:
                kept.append(point)
        known += [(label.nodes, point) for point in kept]
        return kept


EFFORT = 20_000  # most labels that a search expands; a search that needs fewer is exact
FRONT = 1_000  # most Pareto points of a label
# labels after which limits get a price (Lagrangian relaxation), which takes about ten passes over the graph
PATIENCE = 200
_NETS_KEPT = 256  # solved nets in the cache, about 100 kB each
STATES = 4  # nets whose search states are cached, some megabytes each
_EXPONENTS = range(-4, 4)


@dataclass(frozen=True)
class SearchBounds:
    """How far a search goes: the labels that it expands, the Pareto points of a label, and after how many labels limits
    get a price.
    """

    effort: int = EFFORT
    front: int = FRONT
    patience: int = PATIENCE


@dataclass(frozen=True)
class ChosenPath:
    """A path of tasks, each in its chosen execution mode.

    `worth` is in units of the objective. Cost, duration and success are EVAL (5), (2) and (4) of the chain.
    """

    tasks: tuple[str, ...]
    nodes: tuple[TaskNode, ...]
    worth: float
    cost_usd: float
    duration_ms: float
    success: float
    transitions: int


@dataclass(frozen=True)
class BestPaths:
    """The best paths, best first, and how certain the search is of them.

    `exact`: no better path was missed among the first k; where there is no path, none is feasible. `gap`: an upper
    bound on how much more another feasible path is worth than the first, in units of the objective (dollars of Reward
    or cost). It is 0 where the first path is optimal, and None where nothing was found though a feasible path may
    exist.
    """

    paths: list[ChosenPath]
    exact: bool
    gap: float | None


def best_paths(
    problem: Problem, k: int = 1, effort: int = EFFORT, front: int = FRONT, patience: int = PATIENCE
) -> BestPaths:
    """Returns the k best loopless paths from input to output that keep every demand, each with its best modes.

    Ties within 1e-9 of the objective go to the path with more transitions in history, then to the smaller ids.
    Which of several paths tied at place k are returned is the same in every run. The search carries a limit only
    where a path found without it breaks it; while no path breaks a limit, the best path is also the best under the
    limit. After `patience` labels, and where `effort` or `front` is reached, the limits get a price (Lagrangian
    relaxation), and a bound on the unexplored labels gives the gap. Raises WorkflowError for figures that are not
    valid probabilities or amounts.
    """
    net = _net_of(ProblemKey.of(problem))
    paths, exact, gap = solve(net, DiversityConstraint.of(problem, net), k, SearchBounds(effort, front, patience))
    return BestPaths([_chosen(problem, net, a) for a in paths], exact, gap)


@lru_cache(_NETS_KEPT)
def _net_of(key: ProblemKey) -> SearchNet:
    return SearchNet(key.problem)


@lru_cache(_NETS_KEPT)
def solve(
    net: SearchNet, diversity: DiversityConstraint, k: int, bounds: SearchBounds
) -> tuple[tuple[CompletePath, ...], bool, float | None]:
    """Returns the paths, whether they are exact, and the gap. Many intakes of a contract share one net."""
    if not net.open or k < 1:
        return (), True, 0.0
    states = _states(net)
    carried = Limits()
    while True:
        labels = _search(SearchSpace(states, carried, diversity), k, bounds)
        broken = _broken_limits(labels.paths[:k], net.limits, carried)
        if broken == carried:
            return _result(labels, k)
        carried = broken


@lru_cache(STATES)
def _states(net: SearchNet) -> SearchStates:
    return SearchStates(net)


def _search(space: SearchSpace, k: int, bounds: SearchBounds) -> ParetoLabels:
    labels = ParetoLabels(space, k, bounds.front)
    if labels.run(min(bounds.patience, bounds.effort)):
        return labels
    if space.limits != Limits():
        labels = ParetoLabels(space, k, bounds.front, _lagrange_bound(space))
    if not labels.run(bounds.effort):
        labels.dive(bounds.effort)
    return labels


def _broken_limits(paths: list[CompletePath], limits: Limits, carried: Limits) -> Limits:
    """Returns the carried limits together with the limits that a found path breaks."""
    points = [a.point for a in paths]
    return Limits(
        limits.cost if any(p.cost_usd > limits.cost for p in points) else carried.cost,
        limits.duration if any(p.duration > limits.duration for p in points) else carried.duration,
        limits.success if any(p.success < limits.success for p in points) else carried.success,
    )


def _lagrange_bound(space: SearchSpace) -> LagrangeBound:
    """Returns the Lagrange multipliers of the tightest upper bound, searched one after the other, and their lines."""
    net, limits = space.net, space.limits
    best: list[float] = [0.0, 0.0, 0.0]
    scale = [1.0, max(net.gain, 1.0) / limits.duration, max(net.gain, 1.0)]
    active = [limits.cost < math.inf, limits.duration < math.inf, limits.success > 0]

    def lines(m: list[float]) -> list[list[Line]]:
        return space.states.best_to_go(net.gain + m[2], lambda o: o.weight + m[0] * o.cost + m[1] * o.duration)

    def root(m: list[float]) -> float:
        slack = (
            sum(x * limit for x, limit, on in zip(m[:2], limits[:2], active, strict=False) if on)
            - m[2] * limits.success
        )
        return envelope_height(lines(m)[0], net.prior) + slack

    for which in [i for i in range(3) if active[i]]:
        candidates = [
            [*best[:which], x, *best[which + 1 :]] for x in (0.0, *(scale[which] * 10.0**e for e in _EXPONENTS))
        ]
        best = candidates[_lowest(lambda i, candidates=candidates: root(candidates[i]), len(candidates))]  # type: ignore[misc]
    return lines(best), (best[0], best[1], best[2])


def _lowest(value: Callable[[int], float], n: int) -> int:
    """Returns the first index of the minimum of n values of a convex function."""
    known: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in known:
            known[i] = value(i)
        return known[i]

    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if at(middle) <= at(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _result(labels: ParetoLabels, k: int) -> tuple[tuple[CompletePath, ...], bool, float | None]:
    paths = tuple(labels.paths[:k])
    missed = labels.upper_bound
    exact = missed <= labels.cutoff + EPS
    gap = (
        (max(0.0, missed - paths[0].worth) if missed > paths[0].worth + EPS else 0.0)
        if paths
        else 0.0
        if exact
        else None
    )
    return paths, exact, gap


def _chosen(problem: Problem, net: SearchNet, arrived: CompletePath) -> ChosenPath:
    tasks = tuple(net.names[i] for i in arrived.nodes[1:-1])
    nodes = tuple(problem.options[t][pick] for t, pick in zip(tasks, arrived.point.picks, strict=False))
    point = arrived.point
    return ChosenPath(tasks, nodes, arrived.worth, point.cost_usd, point.duration, point.success, arrived.transitions)
