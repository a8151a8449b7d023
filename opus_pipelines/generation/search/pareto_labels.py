"""Searches the best paths through a Workflow Graph with execution modes and limits: label setting, best first.

A label is a partial path with its Pareto points (`pareto_points`). Labels are expanded in the order of their cost-to-go
bounds (`cost_to_go`), so the first ones to arrive at the output are the best. The search may discard the following
without a loss.

- A point that another point of the *same* partial path makes unnecessary (`pareto_points`): the path keeps execution
  modes that are worth as much.
- A point that points of k *other* partial paths dominate, all with the same open nodes, the same visited groups, the
  same orders with a visited first node, and equal counts of common nodes with every path to differ from. Each
  completion of the one is a completion of the others too, so k different paths are worth as much as any path that the
  point leads to.
- A label that can be worth no more than the k-th best path found.
"""

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from opus_pipelines.generation.search.cost_to_go import CostToGoBounds, LagrangeBound, SearchStates
from opus_pipelines.generation.search.diversity_constraint import Common, DiversityConstraint
from opus_pipelines.generation.search.pareto_points import EPS, Dominance, ParetoPoint
from opus_pipelines.generation.search.search_net import Limits, SearchNet, Step
from opus_pipelines.workflow.model import bits


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
