"""Represents the graph of a problem with numbered nodes, without the parts that no feasible path can use.

Sets of nodes are bit masks. Order demands are masks too: visiting a node closes the nodes that had to come before it.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.predecessors import behind
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Limit, Problem
from opus_pipelines.workflow.evaluation.cost import consumed_usd, time_usd, weights_held
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode, bits


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
