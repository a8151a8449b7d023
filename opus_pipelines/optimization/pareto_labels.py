"""The best paths through a Workflow Graph with the way of every task, within limits: label setting, best first.

A label is the beginning of a path with its points (`points`). Labels are taken by the most that they can still be worth
(`togo`), so the first ones to arrive at the output are the best. What may be dropped, and why nothing is lost by it:
- a point that another point of the *same* beginning makes needless (`points`): the path keeps ways that are worth as
  much.
- a point that points of k *other* beginnings dominate, all of which have the same nodes still open, the same groups
  met, the same firsts
  of orders seen and as many nodes in common with every path to differ from: each completion of the one, loopless and in
  order, is one of
  theirs too, so k different paths are worth as much as any path that it leads to, which is among the k best of none.
- a label that can be worth no more than the k-th best path found.
"""

import heapq
import math
from collections import defaultdict
from typing import NamedTuple

from opus_pipelines.optimization.cost_to_go import CostToGoBounds, Relaxed, States
from opus_pipelines.optimization.diversity_constraint import Common, DiversityConstraint
from opus_pipelines.optimization.pareto_points import EPS, Dominance, ParetoPoint
from opus_pipelines.optimization.search_net import Limits, SearchNet, bits

_ANY = DiversityConstraint()


class ParetoLabel(NamedTuple):
    """A beginning of a path: its nodes, what it closed, the groups it met, the orders whose first it saw, how trodden
    it is, its points.
    """

    nodes: tuple[int, ...]
    closed: int
    met: int
    seen: int
    transitions: int
    points: list[ParetoPoint]


# Most worth first, then the longest, then the most trodden, then by nodes; the bound itself; the label.
Entry = tuple[int, int, int, tuple[int, ...], float, ParetoLabel]


class Arrived(NamedTuple):
    """A whole path with its best ways."""

    worth: float
    transitions: int
    nodes: tuple[int, ...]
    point: ParetoPoint


class ParetoLabels:
    """One search over a net that carries `limits`; `run` goes on where it stopped. `relaxed`: a further bound, of
    limits at a price.

    `unlike`: paths that each found one differs from.
    """

    def __init__(
        self,
        net: SearchNet,
        states: States,
        limits: Limits,
        k: int,
        max_front: int,
        relaxed: Relaxed | None = None,
        unlike: DiversityConstraint = _ANY,
    ) -> None:
        self.net, self.states, self.k, self.max_front, self.unlike = net, states, k, max_front, unlike
        self.bounds = CostToGoBounds(net, states, limits, relaxed)
        self.dominance = Dominance(net, limits)
        self.found: list[Arrived] = []
        self.lost = -math.inf  # the most that a point which was left out for lack of room might have been worth
        self.heap: list[Entry] = []
        self.known: dict[tuple[int, int, int, int, Common], list[tuple[tuple[int, ...], ParetoPoint]]] = defaultdict(
            list
        )
        start = ParetoPoint(net.prior, 0.0, 0.0, 0.0, net.options[net.start][0].held)
        self._push(ParetoLabel((net.start,), net.closes[net.start], states.meets[net.start], 0, 0, [start]))

    @property
    def ahead(self) -> float:
        """The most that a path not yet found may be worth; minus infinity where there is none."""
        return max([self.lost, *(entry[4] for entry in self.heap[:1])])

    @property
    def cutoff(self) -> float:
        """The worth of the k-th best path found so far; what is below it need not be looked at."""
        return self.found[self.k - 1].worth if len(self.found) >= self.k else -math.inf

    def run(self, effort: int) -> bool:
        """Looks at up to `effort` labels more; whether the k best paths are found, or all there are."""
        for _ in range(effort):
            if self._is_done():
                return True
            self._expand(heapq.heappop(self.heap)[-1])
        return self._is_done()

    def dive(self, effort: int) -> None:
        """Goes on with what is nearest to a whole path: least groups to meet, then fewest steps to the next of them,
        then worth.

        So something arrives soon; what is left stays ahead.
        """
        hops = [self.net.hops(group) for group in (*self.net.groups, 1 << self.net.goal)]

        def keyed(entry: Entry) -> tuple[int, int, Entry]:
            label = entry[-1]
            missing = list(bits(self.states.full & ~label.met))
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
                longer = self._longer(label, step.node, step.weight, step.transitions)
                if longer is not None:
                    self._push(longer)

    def _longer(self, label: ParetoLabel, node: int, weight: float, transitions: int) -> ParetoLabel | None:
        """The label one step on; None where it cannot become a fitting path."""
        order = self._ordered(label, node)
        if order is None:
            return None
        closed, seen = order
        met = label.met | self.states.meets[node]
        left = self.net.ahead[node] & ~closed
        state = self.states.number(node, met)
        if state is None or any(not self.net.groups[i] & left for i in bits(self.states.full & ~met)):
            return None
        if not self.unlike.is_open((*label.nodes, node), left):
            return None
        made = [
            point.after(option, number, weight)
            for point in label.points
            for number, option in enumerate(self.net.options[node])
        ]
        points = [point for point in made if self.bounds.fits(point, state)]
        return (
            ParetoLabel((*label.nodes, node), closed, met, seen, label.transitions + transitions, points)
            if points
            else None
        )

    def _ordered(self, label: ParetoLabel, node: int) -> tuple[int, int] | None:
        """What is closed, and which firsts of orders were seen, with this node; None where it comes too late."""
        closed, seen = label.closed | self.net.closes[node], label.seen
        for number, (first, second) in enumerate(self.net.pairs):
            was_seen, is_second = seen >> number & 1, second >> node & 1
            if first >> node & 1:
                if is_second and not was_seen:
                    return None
                seen |= 1 << number
            elif is_second and not was_seen:
                closed |= first
        return closed, seen

    def _push(self, label: ParetoLabel) -> None:
        node = label.nodes[-1]
        state = self.states.number(node, label.met)
        if node == self.net.goal:
            self._arrive(label)
        elif state is not None:
            points = self._undominated(label, self.dominance.needed(label.points, node))
            bounds = [self.bounds.worth(point, state) for point in points]
            if len(points) > self.max_front:
                order = sorted(range(len(points)), key=lambda i: (-bounds[i], i))
                self.lost = max(self.lost, bounds[order[self.max_front]])
                points = [points[i] for i in order[: self.max_front]]
            best = max(bounds, default=-math.inf)
            if best > self.cutoff + EPS:
                label = label._replace(points=points)
                heapq.heappush(
                    self.heap, (-round(best / EPS), -len(label.nodes), -label.transitions, label.nodes, best, label)
                )

    def _arrive(self, label: ParetoLabel) -> None:
        if label.met == self.states.full and self.unlike.is_reached(label.nodes):
            best = max(label.points, key=lambda p: (self.bounds.arrived(p), tuple(-pick for pick in p.picks)))
            self.found.append(Arrived(self.bounds.arrived(best), label.transitions, label.nodes, best))
            self.found.sort(key=lambda a: (-round(a.worth / EPS), -a.transitions, a.nodes))

    def _undominated(self, label: ParetoLabel, points: list[ParetoPoint]) -> list[ParetoPoint]:
        """The points that fewer than k other beginnings dominate; they are remembered."""
        node = label.nodes[-1]
        left = self.net.ahead[node] & ~label.closed
        seen = 0
        for i, (first, second) in enumerate(self.net.pairs):
            if label.seen >> i & 1 or not (
                first & left and second & left
            ):  # what can no longer be broken counts as seen
                seen |= 1 << i
        known = self.known[node, left, label.met, seen, self.unlike.so_far(label.nodes)]
        kept = []
        for point in points:
            better = {
                nodes for nodes, other in known if nodes != label.nodes and self.dominance.dominates(other, point, node)
            }
            if len(better) < self.k:
                kept.append(point)
        known += [(label.nodes, point) for point in kept]
        return kept
