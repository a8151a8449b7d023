"""Computes cost-to-go bounds: the best worth of all walks from each search state to the output.

A search state is a node together with the groups of required nodes that the path has visited. Walks may repeat nodes
and paths may not, so each bound is an upper bound on every path. In a graph without cycles the bound is exact, unless
an order of two nodes that are not adjacent excludes the walk.
"""

import math
from collections.abc import Callable
from functools import cached_property

from opus_pipelines.generation.search.pareto_points import ParetoPoint
from opus_pipelines.generation.search.search_net import Limits, Option, SearchNet, Step, postorder
from opus_pipelines.generation.search.upper_envelope import upper_envelope

Line = tuple[float, float]  # worth to go as a function of success: slope, height at 0
Weigh = Callable[[Option], float]
LagrangeBound = tuple[list[list[Line]], tuple[float, float, float]]
MAX_STEPS = 50_000  # most transitions between states; beyond it the states distinguish fewer groups
MAX_GUIDING = 16
_SAME = 1e-10


class SearchStates:
    """The search states (node, mask of visited groups) that lie between input and output.

    `guide` masks the groups that the states distinguish: as many of the first groups as `MAX_STEPS` permits.
    `groups_of[i]` masks the groups that contain node i.
    """

    def __init__(self, net: SearchNet) -> None:
        self.net = net
        self.groups_of = [0] * len(net.names)
        for number, group in enumerate(net.groups):
            for i in range(len(net.names)):
                self.groups_of[i] |= (group >> i & 1) << number
        self.full = (1 << len(net.groups)) - 1
        for guiding in range(min(len(net.groups), MAX_GUIDING), -1, -1):
            self.guide = (1 << guiding) - 1
            if self._laid_out(MAX_STEPS if guiding else None):
                break

    def _laid_out(self, limit: int | None) -> bool:
        """Numbers the states, beginning at the input; returns False where they have more than `limit` transitions."""
        first = (self.net.start, 0)
        self.index = {first: 0}
        self.nodes = [self.net.start]
        self.after: list[list[tuple[int, Step]]] = []
        frontier, taken = [first], 0
        for node, visited in frontier:
            steps = []
            for step in self.net.steps[node]:
                state = (step.node, visited | self.groups_of[step.node] & self.guide)
                if state not in self.index:
                    self.index[state] = len(frontier)
                    self.nodes.append(step.node)
                    frontier.append(state)
                steps.append((self.index[state], step))
            self.after.append(steps)
            taken += len(steps)
            if limit is not None and taken > limit:
                return False
        self.end = self.index.get((self.net.goal, self.guide))
        self.order = postorder([[j for j, _ in steps] for steps in self.after])
        self.before: list[list[int]] = [[] for _ in self.nodes]
        for i, steps in enumerate(self.after):
            for j, _ in steps:
                if i != self.end:
                    self.before[j].append(i)
        return True

    def number(self, node: int, visited: int) -> int | None:
        """Returns the number of the state; None where the input does not lead to it."""
        return self.index.get((node, visited & self.guide))

    @cached_property
    def worth_to_go(self) -> list[list[Line]]:
        """For every state, the upper envelope of the worth to go, in units of the objective."""
        return self.best_to_go(self.net.gain, lambda o: o.weight)

    def best_to_go(self, gain: float, weigh: Weigh, edges: bool = True) -> list[list[Line]]:
        """Returns the upper envelope of gain · success - Σ weights over all walks to the output, for every state.

        A walk has at most as many steps as there are nodes. A state without lines has no walk to the output. Each pass
        goes backward from the output and updates the states whose successors changed; in a graph without cycles one
        pass is enough. `edges`: whether the weights of edges count.
        """
        lines: list[list[Line]] = [[] for _ in self.nodes]
        entered: list[list[Line]] = [[] for _ in self.nodes]
        if self.end is None:
            return lines
        lines[self.end] = entered[self.end] = [(gain, 0.0)]
        own = [*self.net.options, *(step.options for steps in self.net.steps for step in steps)]
        ways = {id(options): [(o.p - o.q, o.q, weigh(o)) for o in options] for options in own}

        def through(j: int, options: tuple[Option, ...]) -> list[Line]:
            return upper_envelope(
                [(m * slope, h + m * q - w) for slope, q, w in ways[id(options)] for m, h in lines[j]]
            )

        stale = bytearray(len(self.nodes))
        for i in self.before[self.end]:
            stale[i] = 1
        for _ in self.net.names:
            if not any(stale):
                break
            for i in self.order:
                if not stale[i]:
                    continue
                stale[i] = 0
                new = [
                    (m, h - step.weight if edges else h)
                    for j, step in self.after[i]
                    for m, h in (
                        entered[j]
                        if step.options is self.net.options[step.node] or not lines[j]
                        else through(j, step.options)
                    )
                ]
                if len(new) > 1:
                    new = upper_envelope(new)
                if not _same_lines(new, lines[i]):
                    lines[i] = new
                    entered[i] = through(i, self.net.options[self.nodes[i]])
                    for earlier in self.before[i]:
                        stale[earlier] = 1
        return lines


class CostToGoBounds:
    """Bounds on what a Pareto point at a state can still reach while the search carries `limits`.

    `relaxed` holds the best walks where a dollar, a millisecond and a unit of success of slack have a price (Lagrangian
    relaxation); its bounds are tighter.
    """

    def __init__(
        self, net: SearchNet, states: SearchStates, limits: Limits, relaxed: LagrangeBound | None = None
    ) -> None:
        self.limits, self._gain, self._in_dollars, self._relaxed = limits, net.gain, net.in_dollars, relaxed
        self._worth = states.worth_to_go
        has_cost, has_duration = limits.cost < math.inf, limits.duration < math.inf
        self._cost = states.best_to_go(0.0, lambda o: o.cost, edges=False) if has_cost else None
        self._duration = states.best_to_go(0.0, lambda o: o.duration, edges=False) if has_duration else None
        self._success = states.best_to_go(1.0, lambda o: 0.0, edges=False) if limits.success else None

    def fits(self, point: ParetoPoint, state: int) -> bool:
        """Returns whether some walk from the state to the output may keep the limits."""
        cost, duration, success = self._cost, self._duration, self._success
        if cost is not None and point.cost_usd - envelope_height(cost[state], 0.0) > self.limits.cost:
            return False
        if duration is not None and point.duration - envelope_height(duration[state], 0.0) > self.limits.duration:
            return False
        return bool(self._worth[state]) and (
            success is None or envelope_height(success[state], point.success) >= self.limits.success
        )

    def worth(self, point: ParetoPoint, state: int) -> float:
        """Returns an upper bound on the worth of the feasible paths that continue this point."""
        paid = point.weight + self._held(point)
        best = envelope_height(self._worth[state], point.success) - paid
        if self._relaxed is None:
            return best
        lines, (dollars, ms, success) = self._relaxed
        slack = -success * self.limits.success
        if dollars:
            slack += dollars * (self.limits.cost - point.cost_usd)
        if ms:
            slack += ms * (self.limits.duration - point.duration)
        return min(best, envelope_height(lines[state], point.success) - paid + slack)

    def arrived(self, point: ParetoPoint) -> float:
        """Returns the worth of a complete path."""
        return self._gain * point.success - point.weight - self._held(point)

    def _held(self, point: ParetoPoint) -> float:
        return sum(point.held) if self._in_dollars else 0.0


def envelope_height(lines: list[Line], success: float) -> float:
    """Returns the value of the highest line at this success; minus infinity where there is no line."""
    return max((slope * success + at_0 for slope, at_0 in lines), default=float("-inf"))


def _same_lines(new: list[Line], old: list[Line]) -> bool:
    return len(new) == len(old) and all(
        abs(a - c) < _SAME and abs(b - d) < _SAME for (a, b), (c, d) in zip(new, old, strict=True)
    )
