"""The numbered graph of a problem, the points of partial paths, and the bounds on what is still to come.

Finds the best options along a chain exactly, backward over upper envelopes of straight lines.

Success s before a step becomes q + (p - q)·s behind it, and the step costs c. For fixed options the worth of the rest
of a chain is therefore a straight line in s. For the best options it is the maximum of such lines: a convex function
with few relevant pieces.

Sets of nodes are bit masks. Order demands are masks too: visiting a node closes the nodes that had to come before it.

Represents the figures of a partial path by choice of execution modes, and removes dominated points.

A completion turns success s into A + B·s with B = Π (p - q) over its tasks, and adds a constant cost. The difference of
two points at one node is therefore gain·B·Δs - Δweight after any completion: a straight line in B. B lies in [-1, 1],
and in [0, steep] where every execution mode has p >= q. One point *dominates* another if it is no worse at both ends of
that range, costs no more and takes no longer (where a limit on it is carried), holds no more, and its success is no
worse at both ends (where a least success is carried). Every completion that is feasible for the other is then feasible
for it and worth as much. Where nothing is limited or held and no mode has p < q, the points that are best for no B of
the range are unnecessary too: the upper envelope over B remains. Worths within 1e-9 count as equal.

Computes cost-to-go bounds: the best worth of all walks from each search state to the output.

A search state is a node together with the groups of required nodes that the path has visited. Walks may repeat nodes
and paths may not, so each bound is an upper bound on every path. In a graph without cycles the bound is exact, unless
an order of two nodes that are not adjacent excludes the walk.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.costs import behind
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Limit, Problem
from opus_pipelines.workflow.evaluation.cost import consumed_usd, time_usd, weights_held
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode, bits

ChainOption = tuple[float, float, float]  # p, q, cost in dollars
L = TypeVar("L", bound="tuple[Any, ...]")  # slope, height at 0, and what the line represents


class _Line(NamedTuple):
    slope: float
    height: float  # at s = 0
    option: int
    rest: "_Line | None"


def best_on_chain(steps: Sequence[Sequence[ChainOption]], prior: float, gain_usd: float) -> list[int]:
    """Returns the option number at each step that maximises gain · (success at the end) - costs.

    Ties go to earlier options.
    """
    lines = [_Line(gain_usd, 0.0, 0, None)]
    for options in reversed(steps):
        lines = upper_envelope(
            [
                _Line(line.slope * (p - q), line.height + line.slope * q - cost, number, line)
                for number, (p, q, cost) in enumerate(options)
                for line in lines
            ]
        )
    best = max(lines, key=lambda line: line.height + line.slope * prior)
    taken: list[int] = []
    for _ in steps:
        taken.append(best.option)
        assert best.rest is not None
        best = best.rest
    return taken


def upper_envelope(lines: Sequence[L], end: float = 1.0) -> list[L]:
    """Returns the lines that are highest somewhere in [0, end], from left to right; of equal lines the first."""
    if len(lines) == 1:
        return list(lines)
    kept: list[L] = []
    start: list[float] = []
    for line in sorted(lines, key=_steepness):
        slope, height = line[0], line[1]
        while kept:
            top = kept[-1]
            higher = height > top[1]
            cross = (
                (top[1] - height) / (slope - top[0]) if slope != top[0] else float("-inf") if higher else float("inf")
            )
            if cross > start[-1]:
                break
            kept.pop()
            start.pop()
        else:
            cross = 0.0
        if cross < end or not kept:
            kept.append(line)
            start.append(max(0.0, cross))
    return kept


def _steepness(line: "tuple[Any, ...]") -> tuple[float, float]:
    return line[0], line[1]


class Option(NamedTuple):
    """One execution mode of a node.

    `weight` is in units of the objective, `cost` is EVAL (5) without held resources, and `held` is in dollars by
    resource. Imputed costs are part of the weight of a Reward and of no cost, because limits are compared with known
    figures.
    """

    p: float
    q: float
    weight: float
    cost: float
    duration: float
    held: tuple[float, ...]


class Step(NamedTuple):
    """An edge to `node`: its weight κ·(1 - γ), how often history followed it, and the options of `node` behind it."""

    node: int
    weight: float
    transitions: int
    options: tuple[Option, ...]


class Limits(NamedTuple):
    """Limits in dollars, ms and probability; infinite, and 0 for success, where there is none."""

    cost: float = math.inf
    duration: float = math.inf
    success: float = 0.0


class SearchNet:
    """The graph of a problem: nodes are numbered by id, and nodes on no feasible path have no edges.

    `excluded_after[v]`: the nodes that must not come after v, v included. `pairs`: the orders (first, second) whose
    first set has several nodes. `groups`: the path must have one node of each; groups that every path visits are left
    out. `descendants[v]`: v and the nodes that can come after it. Two nets with the same content are equal. Raises
    WorkflowError for figures that are not valid probabilities, or not finite amounts of at least 0.
    """

    def __init__(self, problem: Problem) -> None:
        self.names = sorted(problem.wfg.nodes)
        self.number = {name: i for i, name in enumerate(self.names)}
        self.start, self.goal = self.number[INPUT], self.number[OUTPUT]
        self.gain = {"reward": problem.gain_usd, "success": 1.0}.get(problem.objective, 0.0)
        self.prior = problem.prior
        self.in_dollars = problem.objective in ("reward", "cost_usd")
        self.costs_weigh = self.in_dollars and not any(
            o.imputed_usd for modes in problem.options.values() for o in modes
        )
        self.limits = _limits(d for d in problem.demands if isinstance(d, Limit))
        self.options = [self._options(name, problem) for name in self.names]
        self._orders([pair for d in problem.demands if isinstance(d, Before) for pair in d.pairs])
        self._steps(problem)
        self.groups = [self._mask(d.nodes) for d in problem.demands if isinstance(d, Contains)]
        self._filter()
        self.groups = self._informative_groups()

    @cached_property
    def _content(self) -> tuple[object, ...]:
        """All that a search in the net depends on."""
        orders = tuple(self.excluded_after), tuple(self.pairs), tuple(self.groups)
        weighed = self.gain, self.prior, self.in_dollars, self.limits
        return tuple(self.names), weighed, orders, tuple(self.options), tuple(map(tuple, self.steps))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchNet) and self._content == other._content

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    @property
    def open(self) -> bool:
        """Whether any path is left."""
        return bool(self.steps[self.start])

    def hops(self, goal: int) -> list[int]:
        """Returns for every node the least number of steps to a node of `goal`.

        The number is larger than the number of nodes where no walk leads there.
        """
        back: list[list[int]] = [[] for _ in self.names]
        for i, after in enumerate(self.steps):
            for step in after:
                back[step.node].append(i)
        distances = [len(self.names) + 1] * len(self.names)
        frontier, distance = list(bits(goal)), 0
        while frontier:
            for i in frontier:
                distances[i] = distance
            distance += 1
            frontier = sorted({j for i in frontier for j in back[i] if distances[j] > distance})
        return distances

    def _mask(self, nodes: Iterable[str]) -> int:
        mask = 0
        for node in nodes:
            if node in self.number:
                mask |= 1 << self.number[node]
        return mask

    def _options(self, name: str, problem: Problem) -> tuple[Option, ...]:
        if name in (INPUT, OUTPUT):
            return (Option(1.0, 0.0, 0.0, 0.0, 0.0, (0.0,) * sum(map(bool, weights_held(problem.cost).values()))),)
        return tuple(_option(node, problem) for node in problem.options[name])

    def _options_behind(self, src: str, dst: str, problem: Problem) -> tuple[Option, ...]:
        """Returns the options of the second task directly behind the first; those of the node where nothing shifts."""
        if (src, dst) not in problem.shifts:
            return self.options[self.number[dst]]
        return tuple(_option(behind(node, [src], problem.shifts), problem) for node in problem.options[dst])

    def _orders(self, pairs: list[tuple[frozenset[str], frozenset[str]]]) -> None:
        self.excluded_after = [1 << i for i in range(len(self.names))]
        self.pairs: list[tuple[int, int]] = []
        self.impossible = 0  # nodes that would have to come before themselves
        for first, second in pairs:
            a, b = self._mask(first), self._mask(second)
            if a.bit_count() > 1 and b:
                self.pairs.append((a, b))
            elif a:
                self.impossible |= a & b
                for i in bits(b):
                    self.excluded_after[i] |= a

    def _steps(self, problem: Problem) -> None:
        excluded = self.impossible | self._mask(
            {node for d in problem.demands if isinstance(d, Avoids) for node in d.nodes}
        )
        kappa = problem.cost.kappa_usd if problem.objective in ("reward", "cost_usd") else 0.0
        self.steps: list[list[Step]] = [[] for _ in self.names]
        for (src, dst), edge in sorted(problem.wfg.edges.items()):
            i, j = self.number[src], self.number[dst]
            if not (excluded >> i | excluded >> j) & 1 and not self.excluded_after[i] >> j & 1:
                options = self._options_behind(src, dst, problem)
                self.steps[i].append(Step(j, kappa * edge.one_minus_gamma, edge.transitions, options))

    def _filter(self) -> None:
        """Removes edges along which some group cannot be visited any more, until no such edge is left.

        In a graph without cycles every path then visits each group of one node, because no edge goes round it.
        """
        behind_closed = [0] * len(self.names)  # nodes that must not come before v
        for v, mask in enumerate(self.excluded_after):
            for u in bits(mask & ~(1 << v)):
                behind_closed[u] |= 1 << v
        while True:
            self.descendants = reachable([[s.node for s in after] for after in self.steps])
            back: list[list[int]] = [[] for _ in self.names]
            for i, after in enumerate(self.steps):
                for step in after:
                    back[step.node].append(i)
            behind = reachable(back)
            alive = self.descendants[self.start] & behind[self.goal]
            removed = False
            for i, after in enumerate(self.steps):
                kept = [
                    s
                    for s in after
                    if alive >> i & 1
                    and alive >> s.node & 1
                    and self._meets_all(
                        behind[i] & ~(behind_closed[i] | behind_closed[s.node])
                        | self.descendants[s.node]
                        & ~(self.excluded_after[i] | self.excluded_after[s.node] & ~(1 << s.node))
                    )
                ]
                removed |= len(kept) < len(after)
                self.steps[i] = kept
            if not removed:
                return

    def _meets_all(self, nodes: int) -> bool:
        return all(group & nodes for group in self.groups)

    def _informative_groups(self) -> list[int]:
        """Returns the groups that some path leaves out, smallest first, without those that contain another."""
        informative = [g for g in set(self.groups) if self._passable(g)]
        informative = [g for g in informative if not any(other != g and other & g == other for other in informative)]
        return sorted(informative, key=lambda g: (g.bit_count(), g))

    def _passable(self, without: int) -> bool:
        seen, frontier = without | 1 << self.start, [self.start]
        while frontier:
            for step in self.steps[frontier.pop()]:
                if not seen >> step.node & 1:
                    if step.node == self.goal:
                        return True
                    seen |= 1 << step.node
                    frontier.append(step.node)
        return False


def reachable(after: list[list[int]]) -> list[int]:
    """Returns for every node the mask of itself and the nodes that a walk from it reaches."""
    reached = [1 << i for i in range(len(after))]
    order = postorder(after)
    changed = True
    while changed:
        changed = False
        for i in order:
            mask = reached[i]
            for j in after[i]:
                mask |= reached[j]
            if mask != reached[i]:
                reached[i], changed = mask, True
    return reached


def postorder(after: list[list[int]]) -> list[int]:
    """Returns every node; in a graph without cycles each one comes after all nodes that it leads to."""
    order: list[int] = []
    seen = [False] * len(after)
    for root in range(len(after)):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(after[root]))]
        while stack:
            node, children = stack[-1]
            child = next((c for c in children if not seen[c]), None)
            if child is None:
                order.append(node)
                stack.pop()
            else:
                seen[child] = True
                stack.append((child, iter(after[child])))
    return order


def _limits(limits: Iterable[Limit]) -> Limits:
    """Returns the tightest limit of each figure, widened by a rounding error as in `constraints.violations`."""
    cost, duration, success = Limits()
    for limit in limits:
        if limit.figure == "cost_usd":
            cost = min(cost, limit.value * (1 + 1e-9))
        elif limit.figure == "duration_ms":
            duration = min(duration, limit.value * (1 + 1e-9))
        else:
            success = max(success, limit.value * (1 - 1e-9))
    return Limits(cost, duration, success)


def _option(node: TaskNode, problem: Problem) -> Option:
    cost = node.cost_usd + consumed_usd(node, problem.cost) + time_usd(node.duration_ms, problem.cost)
    if not (0 <= node.p <= 1 and 0 <= node.q <= 1 and 0 <= cost < math.inf and 0 <= node.duration_ms < math.inf):
        raise WorkflowError(
            f"{node.title}: p {node.p}, q {node.q}, cost {cost} dollars, duration {node.duration_ms} ms; "
            "the search needs probabilities, and finite amounts of at least 0"
        )
    weight = {"duration_ms": node.duration_ms, "success": 0.0, "cost_usd": cost}.get(
        problem.objective, cost + node.imputed_usd
    )
    return Option(node.p, node.q, weight, cost, node.duration_ms, _held(node, problem.cost))


def _held(node: TaskNode, cost: Cost) -> tuple[float, ...]:
    """Returns w_r times what the node holds, for every resource that has a price.

    A path pays for the largest amount that any of its nodes holds, EVAL (3).
    """
    return tuple(weight * node.held.get(name, 0.0) for name, weight in sorted(weights_held(cost).items()) if weight)


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
