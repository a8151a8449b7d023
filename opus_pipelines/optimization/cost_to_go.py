"""What is still to come at most: for every node, and the groups met by then, the best of all walks from there to the
output.

Walks may repeat nodes, which paths may not, so what is found bounds every path from above. In a graph without cycles,
and where no order of nodes further apart bears on it, it is what the best path is worth.
"""

import math
from collections.abc import Callable
from functools import cached_property

from opus_pipelines.optimization.pareto_points import ParetoPoint
from opus_pipelines.optimization.search_net import Limits, Option, SearchNet, postorder
from opus_pipelines.optimization.upper_envelope import upper

Line = tuple[float, float]  # worth to go as a function of success: slope, height at 0
Weigh = Callable[[Option], float]
Relaxed = tuple[list[list[Line]], tuple[float, float, float]]
MAX_STEPS = 50_000  # between states, up to which groups are told apart
MAX_GUIDING = 16
_SAME = 1e-10


class States:
    """(node, which of the first groups are met), those that lie between input and output; `guide` masks the groups
    told apart.
    """

    def __init__(self, net: SearchNet) -> None:
        self.net = net
        self.meets = [0] * len(net.names)  # of each node, the groups that it meets
        for number, group in enumerate(net.groups):
            for i in range(len(net.names)):
                self.meets[i] |= (group >> i & 1) << number
        self.full = (1 << len(net.groups)) - 1
        for guiding in range(min(len(net.groups), MAX_GUIDING), -1, -1):
            self.guide = (1 << guiding) - 1
            if self._laid_out(MAX_STEPS if guiding else None):
                break

    def _laid_out(self, limit: int | None) -> bool:
        """Numbers the states from the input on; False where there are more than `limit` steps between them."""
        first = (self.net.start, 0)
        self.index = {first: 0}
        self.nodes = [self.net.start]
        self.after: list[list[tuple[int, float]]] = []
        frontier, taken = [first], 0
        for node, met in frontier:
            steps = []
            for step in self.net.steps[node]:
                state = (step.node, met | self.meets[step.node] & self.guide)
                if state not in self.index:
                    self.index[state] = len(frontier)
                    self.nodes.append(step.node)
                    frontier.append(state)
                steps.append((self.index[state], step.weight))
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

    def number(self, node: int, met: int) -> int | None:
        """The state's number; None where the input does not lead to it."""
        return self.index.get((node, met & self.guide))

    @cached_property
    def worth_to_go(self) -> list[list[Line]]:
        """In units of the objective: what every search in the net is led by."""
        return self.best_to_go(self.net.gain, lambda o: o.weight)

    def best_to_go(self, gain: float, weigh: Weigh, edges: bool = True) -> list[list[Line]]:
        """Of every state the upper envelope of gain · success - Σ weights over all walks on, of at most as many steps
        as there are nodes.

        No line: no way on. Each pass goes from the output back over what changed since; without cycles one suffices.
        """
        lines: list[list[Line]] = [[] for _ in self.nodes]
        entered: list[list[Line]] = [[] for _ in self.nodes]
        if self.end is None:
            return lines
        lines[self.end] = entered[self.end] = [(gain, 0.0)]
        ways = [[(o.p - o.q, o.q, weigh(o)) for o in options] for options in self.net.options]
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
                new = [(m, h - weight if edges else h) for j, weight in self.after[i] for m, h in entered[j]]
                if len(new) > 1:
                    new = upper(new)
                if not _alike(new, lines[i]):
                    lines[i] = new
                    entered[i] = upper(
                        [(m * slope, h + m * q - w) for slope, q, w in ways[self.nodes[i]] for m, h in new]
                    )
                    for earlier in self.before[i]:
                        stale[earlier] = 1
        return lines


class CostToGoBounds:
    """What a point at a state can still come to, while `limits` are carried.

    `relaxed`: the best walks where a dollar, a ms and a unit of success of slack count something (Lagrange); they bound
    it closer.
    """

    def __init__(self, net: SearchNet, states: States, limits: Limits, relaxed: Relaxed | None = None) -> None:
        self.limits, self._gain, self._in_dollars, self._relaxed = limits, net.gain, net.in_dollars, relaxed
        self._worth = states.worth_to_go
        has_cost, has_duration = limits.cost < math.inf, limits.duration < math.inf
        self._cost = states.best_to_go(0.0, lambda o: o.cost, edges=False) if has_cost else None
        self._duration = states.best_to_go(0.0, lambda o: o.duration, edges=False) if has_duration else None
        self._success = states.best_to_go(1.0, lambda o: 0.0, edges=False) if limits.success else None

    def fits(self, point: ParetoPoint, state: int) -> bool:
        """Whether some walk on may keep the limits."""
        cost, duration, success = self._cost, self._duration, self._success
        if cost is not None and point.cost_usd - height(cost[state], 0.0) > self.limits.cost:
            return False
        if duration is not None and point.duration - height(duration[state], 0.0) > self.limits.duration:
            return False
        return bool(self._worth[state]) and (
            success is None or height(success[state], point.success) >= self.limits.success
        )

    def worth(self, point: ParetoPoint, state: int) -> float:
        """The most that a fitting path which goes on from here may be worth."""
        paid = point.weight + self._held(point)
        best = height(self._worth[state], point.success) - paid
        if self._relaxed is None:
            return best
        lines, (dollars, ms, success) = self._relaxed
        slack = -success * self.limits.success
        if dollars:
            slack += dollars * (self.limits.cost - point.cost_usd)
        if ms:
            slack += ms * (self.limits.duration - point.duration)
        return min(best, height(lines[state], point.success) - paid + slack)

    def arrived(self, point: ParetoPoint) -> float:
        """What a whole path is worth."""
        return self._gain * point.success - point.weight - self._held(point)

    def _held(self, point: ParetoPoint) -> float:
        return sum(point.held) if self._in_dollars else 0.0


def height(lines: list[Line], success: float) -> float:
    """The highest of the lines at this success; minus infinity where there is none."""
    return max((slope * success + at_0 for slope, at_0 in lines), default=float("-inf"))


def _alike(new: list[Line], old: list[Line]) -> bool:
    return len(new) == len(old) and all(
        abs(a - c) < _SAME and abs(b - d) < _SAME for (a, b), (c, d) in zip(new, old, strict=True)
    )
