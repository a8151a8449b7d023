"""A problem's graph in numbers, without what no fitting path can take.

Sets of nodes are bit masks. Demands on order become masks too: entering a node closes those that had to come before it.
"""

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.evaluation.cost import consumed_usd, time_usd, weights_held
from opus_pipelines.optimization.problem import Avoids, Before, Contains, Limit, Problem
from opus_pipelines.workflow.model import TaskNode
from opus_pipelines.workflow.task_order import INPUT, OUTPUT


class Option(NamedTuple):
    """One way of a node: `weight` in units of the objective, `cost` EVAL (5) without what is held, `held` in dollars
    by resource.

    What stands for unknown costs is in the weight of a Reward, and in no cost: limits are held against what is known.
    """

    p: float
    q: float
    weight: float
    cost: float
    duration: float
    held: tuple[float, ...]


class Step(NamedTuple):
    """An edge to `node`: κ·(1 - γ), and how often history went along it."""

    node: int
    weight: float
    transitions: int


class Limits(NamedTuple):
    """In dollars, ms and probability; infinite, and 0, where there is none."""

    cost: float = math.inf
    duration: float = math.inf
    success: float = 0.0


class SearchNet:
    """The graph of a problem: nodes numbered by id, those on no fitting path without edges.

    `closes[v]`: what must not come after v, v itself among it; `pairs`: orders of which the first set has several
    nodes, (first, second);
    `groups`: of each, one node must be on the path, told only where not every path holds one; `ahead[v]`: v and what
    can come after it. Two nets with the same content are equal. Raises WorkflowError for figures that are no
    probabilities, or no finite amounts of at least 0.
    """

    def __init__(self, problem: Problem) -> None:
        self.names = sorted(problem.wfg.nodes)
        self.number = {name: i for i, name in enumerate(self.names)}
        self.start, self.goal = self.number[INPUT], self.number[OUTPUT]
        self.gain = {"reward": problem.gain_usd, "success": 1.0}.get(problem.objective, 0.0)
        self.prior = problem.prior
        self.in_dollars = problem.objective in ("reward", "cost_usd")
        self.costs_weigh = self.in_dollars and not any(
            o.imputed_usd for found in problem.options.values() for o in found
        )
        self.limits = _limits(d for d in problem.demands if isinstance(d, Limit))
        self.options = [self._options(name, problem) for name in self.names]
        self._orders([pair for d in problem.demands if isinstance(d, Before) for pair in d.pairs])
        self._steps(problem)
        self.groups = [self._mask(d.nodes) for d in problem.demands if isinstance(d, Contains)]
        self._filter()
        self.groups = self._telling()

    @cached_property
    def _content(self) -> tuple[object, ...]:
        """All that a search in it depends on."""
        orders = tuple(self.closes), tuple(self.pairs), tuple(self.groups)
        weighed = self.gain, self.prior, self.in_dollars, self.limits
        return tuple(self.names), weighed, orders, tuple(map(tuple, self.options)), tuple(map(tuple, self.steps))

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
        """Of every node the least number of steps to one of `goal`; more than there are nodes where there is no way."""
        back: list[list[int]] = [[] for _ in self.names]
        for i, after in enumerate(self.steps):
            for step in after:
                back[step.node].append(i)
        found = [len(self.names) + 1] * len(self.names)
        frontier, distance = list(bits(goal)), 0
        while frontier:
            for i in frontier:
                found[i] = distance
            distance += 1
            frontier = sorted({j for i in frontier for j in back[i] if found[j] > distance})
        return found

    def _mask(self, nodes: Iterable[str]) -> int:
        mask = 0
        for node in nodes:
            if node in self.number:
                mask |= 1 << self.number[node]
        return mask

    def _options(self, name: str, problem: Problem) -> list[Option]:
        if name in (INPUT, OUTPUT):
            return [Option(1.0, 0.0, 0.0, 0.0, 0.0, (0.0,) * sum(map(bool, weights_held(problem.cost).values())))]
        return [_option(node, problem) for node in problem.options[name]]

    def _orders(self, pairs: list[tuple[frozenset[str], frozenset[str]]]) -> None:
        self.closes = [1 << i for i in range(len(self.names))]
        self.pairs: list[tuple[int, int]] = []
        self.never = 0  # what must come before itself
        for first, second in pairs:
            a, b = self._mask(first), self._mask(second)
            if a.bit_count() > 1 and b:
                self.pairs.append((a, b))
            elif a:
                self.never |= a & b
                for i in bits(b):
                    self.closes[i] |= a

    def _steps(self, problem: Problem) -> None:
        shut = self.never | self._mask({node for d in problem.demands if isinstance(d, Avoids) for node in d.nodes})
        kappa = problem.cost.kappa_usd if problem.objective in ("reward", "cost_usd") else 0.0
        self.steps: list[list[Step]] = [[] for _ in self.names]
        for (src, dst), edge in sorted(problem.wfg.edges.items()):
            i, j = self.number[src], self.number[dst]
            if not (shut >> i | shut >> j) & 1 and not self.closes[i] >> j & 1:
                self.steps[i].append(Step(j, kappa * edge.one_minus_gamma, edge.transitions))

    def _filter(self) -> None:
        """Takes out edges along which some group cannot be met any more, neither before nor after, until none is left.

        In a graph without cycles every path then holds each group of one node: leaving it out is no longer possible.
        """
        behind_closed = [0] * len(self.names)  # what must not come before v
        for v, mask in enumerate(self.closes):
            for u in bits(mask & ~(1 << v)):
                behind_closed[u] |= 1 << v
        while True:
            self.ahead = reachable([[s.node for s in after] for after in self.steps])
            back: list[list[int]] = [[] for _ in self.names]
            for i, after in enumerate(self.steps):
                for step in after:
                    back[step.node].append(i)
            behind = reachable(back)
            alive = self.ahead[self.start] & behind[self.goal]
            removed = False
            for i, after in enumerate(self.steps):
                kept = [
                    s
                    for s in after
                    if alive >> i & 1
                    and alive >> s.node & 1
                    and self._meets_all(
                        behind[i] & ~(behind_closed[i] | behind_closed[s.node])
                        | self.ahead[s.node] & ~(self.closes[i] | self.closes[s.node] & ~(1 << s.node))
                    )
                ]
                removed |= len(kept) < len(after)
                self.steps[i] = kept
            if not removed:
                return

    def _meets_all(self, nodes: int) -> bool:
        return all(group & nodes for group in self.groups)

    def _telling(self) -> list[int]:
        """The groups that some path leaves out, smallest first, without those that contain another."""
        told = [g for g in set(self.groups) if self._passable(g)]
        told = [g for g in told if not any(other != g and other & g == other for other in told)]
        return sorted(told, key=lambda g: (g.bit_count(), g))

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


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def reachable(after: list[list[int]]) -> list[int]:
    """Of every node, itself and what a walk from it gets to."""
    found = [1 << i for i in range(len(after))]
    order = postorder(after)
    changed = True
    while changed:
        changed = False
        for i in order:
            mask = found[i]
            for j in after[i]:
                mask |= found[j]
            if mask != found[i]:
                found[i], changed = mask, True
    return found


def postorder(after: list[list[int]]) -> list[int]:
    """Every node, in a graph without cycles after all that it leads to."""
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
    """The tightest of each figure, a rounding error above: a sum's rounding breaks no limit (as
    `constraints.violations` has it).
    """
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
    """w_r times what the node holds, of every resource that has a price; a path pays the most that any of its nodes
    holds, EVAL (3).
    """
    return tuple(weight * node.held.get(name, 0.0) for name, weight in sorted(weights_held(cost).items()) if weight)
