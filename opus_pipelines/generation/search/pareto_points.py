"""Represents the figures of a partial path by choice of execution modes, and removes dominated points.

A completion turns success s into A + B·s with B = Π (p - q) over its tasks, and adds a constant cost. The difference of
two points at one node is therefore gain·B·Δs - Δweight after any completion: a straight line in B. B lies in [-1, 1],
and in [0, steep] where every execution mode has p >= q. One point *dominates* another if it is no worse at both ends of
that range, costs no more and takes no longer (where a limit on it is carried), holds no more, and its success is no
worse at both ends (where a least success is carried). Every completion that is feasible for the other is then feasible
for it and worth as much. Where nothing is limited or held and no mode has p < q, the points that are best for no B of
the range are unnecessary too: the upper envelope over B remains. Worths within 1e-9 count as equal.
"""

import math
from typing import NamedTuple

from opus_pipelines.generation.search.search_net import Limits, Option, SearchNet
from opus_pipelines.generation.search.upper_envelope import upper_envelope

EPS = 1e-9


class ParetoPoint(NamedTuple):
    """One choice of execution modes for a partial path.

    It has success, weight in units of the objective, cost in dollars, duration in ms, dollars held by resource, and the
    option number of each task.
    """

    success: float
    weight: float
    cost: float
    duration: float
    held: tuple[float, ...]
    picks: tuple[int, ...] = ()

    def after(self, option: Option, number: int, edge: float) -> "ParetoPoint":
        """Returns the point after one more task in this execution mode."""
        return ParetoPoint(
            option.q + (option.p - option.q) * self.success,
            self.weight + option.weight + edge,
            self.cost + option.cost,
            self.duration + option.duration,
            tuple(map(max, self.held, option.held)),
            (*self.picks, number),
        )

    @property
    def cost_usd(self) -> float:
        """The cost of EVAL (5), held resources included."""
        return self.cost + sum(self.held)


class Dominance:
    """Tests which points of a net are unnecessary while these limits are carried."""

    def __init__(self, net: SearchNet, limits: Limits) -> None:
        self.net, self.limits = net, limits
        self.low = -1.0 if any(o.p < o.q for after in net.steps for step in after for o in step.options) else 0.0
        self.steep = [1.0] * len(net.names) if self.low else _steepest(net)
        costs_weigh = limits.cost == math.inf or net.costs_weigh
        self._flat = costs_weigh and not self.low and limits.duration == math.inf and not net.options[net.start][0].held
        self._free = self._flat and limits.cost == math.inf and not limits.success

    def undominated(self, points: list[ParetoPoint], node: int) -> list[ParetoPoint]:
        """Returns the necessary points of one partial path; of equal points the one with the earlier options."""
        if len(points) < 2:
            return points
        if self._free:
            lines = [(self.net.gain * p.success, -p.weight, p) for p in sorted(points, key=lambda p: p.picks)]
            return [line[2] for line in upper_envelope(lines, self.steep[node])]
        kept: list[ParetoPoint] = []
        for point in sorted(points, key=lambda p: (p.weight, -p.success, p.duration, p.picks)):
            if self._flat and kept and point.success <= kept[-1].success:
                continue
            if self._flat or not any(self.dominates(other, point, node) for other in kept):
                kept.append(point)
        return kept

    def dominates(self, a: ParetoPoint, b: ParetoPoint, node: int) -> bool:
        """Returns whether every completion that is feasible for b is feasible for a and worth as much with it."""
        ds, dw = a.success - b.success, a.weight - b.weight
        gained, limits = self.net.gain * ds, self.limits
        return (
            gained * self.steep[node] - dw >= -EPS
            and gained * self.low - dw >= -EPS
            and (limits.cost == math.inf or a.cost <= b.cost + EPS)
            and (limits.duration == math.inf or a.duration <= b.duration + EPS)
            and (not limits.success or (ds * self.steep[node] >= 0 and ds * self.low >= 0))
            and all(x <= y for x, y in zip(a.held, b.held, strict=True))
        )


def _steepest(net: SearchNet) -> list[float]:
    """Returns for every node the largest Π (p - q) over the tasks of any walk from behind it to the output."""
    factors = [[(s.node, max(o.p - o.q for o in s.options)) for s in after] for after in net.steps]
    steep = [0.0] * len(net.names)
    steep[net.goal] = 1.0
    for _ in net.names:
        changed = False
        for i, after in enumerate(factors):
            new = max([steep[i], *(factor * steep[node] for node, factor in after)])
            if new > steep[i]:
                steep[i], changed = new, True
        if not changed:
            break
    return steep
