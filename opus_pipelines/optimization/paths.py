"""The k cheapest paths of a Workflow Graph, LWM (11), by node-cost Dijkstra, LWM (12), with tasks that a path needs.

Entering node v by edge u → v costs C(v) + κ·(1 - γ) dollars. Costs are held as integers of 1e-12 dollars: a sum does not depend on its
order, so that a tie is a tie. Where two sums tie, the more trodden edges win (the smaller Σ 1/(1 + transitions)), then the node ids.

A first pass finds every state's exact cost to go, a state being a node and which required groups the path has met; paths are then
enumerated best first with it (A*), which may return only loopless ones.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from opus_pipelines.errors import WorkflowError
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG, WfgEdge

UNIT_USD = 1e-12
_TRODDEN = 10**12
# Up to 2^groups states a node: groups beyond these bounds do not guide the search, a path is only held against them.
MAX_GUIDING = 16
MAX_STATES = 50_000
MAX_EXPANSIONS = 50_000

Group = frozenset[str]
Cost = tuple[int, int]
State = tuple[str, int]


@dataclass(frozen=True)
class Path:
    """From input to output; `cost` in dollars, κ included; `transitions` of the WKG summed over its edges."""

    nodes: tuple[str, ...]
    cost: float
    transitions: int

    @property
    def tasks(self) -> tuple[str, ...]:
        """Its nodes between input and output."""
        return self.nodes[1:-1]


@dataclass(frozen=True)
class PathResult:
    """Paths, cheapest first. `complete`: none cheaper was missed. `unmet`: required groups of which no node lies on any way through."""

    paths: list[Path]
    complete: bool
    unmet: tuple[Group, ...] = ()


def k_best(
    wfg: WFG, node_cost: Callable[[str], float], kappa: float, k: int, required: Sequence[Collection[str]] = (),
    forbidden: Collection[str] = (), max_expansions: int = MAX_EXPANSIONS,
) -> PathResult:
    """The k cheapest loopless paths that hold at least one node of every required group and no forbidden node.

    Groups that every path meets, and groups that contain another one, say nothing and are dropped. Of the rest as many as keep the search's
    states within MAX_STATES guide it, the smallest first; all are kept to: more of them cost time, never correctness.
    The search stops after `max_expansions` partial paths (`complete` False): the paths found by then are the cheapest, and a second search
    as long, led by the cost to go alone, fills up to k with fitting paths that may not be the next cheapest.
    Raises WorkflowError for a cost that is negative or not finite.
    """
    steps = _steps(wfg, node_cost, kappa, frozenset(forbidden))
    alive = _reached(steps, INPUT) & _reached(_reverse(steps), OUTPUT)
    groups = [frozenset(group) & alive for group in required]
    if unmet := tuple(frozenset(raw) for raw, group in zip(required, groups, strict=True) if not group):
        return PathResult([], True, unmet)
    search = _Search(steps, _telling(steps, groups))
    best, complete = search.run(k, max_expansions)
    if not complete:
        more, _ = search.run(k, max_expansions, greedy=True)
        best |= dict(sorted(more.items(), key=lambda item: item[::-1]))
    return PathResult([_path(wfg, nodes, cost) for nodes, cost in list(best.items())[:k]], complete)


Steps = dict[str, dict[str, Cost]]


def _steps(wfg: WFG, node_cost: Callable[[str], float], kappa: float, forbidden: Group) -> Steps:
    """Cost of every step of the graph without the forbidden nodes and without loops on one node."""
    own = {n: _units(0.0 if n in (INPUT, OUTPUT) else node_cost(n), n) for n in wfg.nodes if n not in forbidden}
    steps: Steps = {n: {} for n in own}
    for (src, dst), edge in sorted(wfg.edges.items()):
        if src in own and dst in own and src != dst:
            steps[src][dst] = (own[dst] + _units(kappa * edge.one_minus_gamma, f"{src} -> {dst}"), _rarity(edge))
    return steps


def _units(usd: float, what: str) -> int:
    if not (math.isfinite(usd) and usd >= 0):
        raise WorkflowError(f"{what}: its cost is {usd} dollars; the search needs finite costs of at least 0")
    return round(usd / UNIT_USD)


def _rarity(edge: WfgEdge) -> int:
    return _TRODDEN // (1 + edge.transitions)


def _reverse(steps: Steps) -> Steps:
    back: Steps = {n: {} for n in steps}
    for src, targets in steps.items():
        for dst, cost in targets.items():
            back[dst][src] = cost
    return back


def _reached(steps: Steps, start: str, without: Group = frozenset()) -> Group:
    """Nodes that a walk from `start` gets to that enters no node of `without`."""
    found = {start} & steps.keys()
    frontier = list(found)
    while frontier:
        new = [n for n in steps[frontier.pop()] if n not in found and n not in without]
        found.update(new)
        frontier.extend(new)
    return frozenset(found)


def _telling(steps: Steps, groups: Iterable[Group]) -> list[Group]:
    """The groups that say something, smallest first: not those that every path meets, nor those that contain another."""
    told = [g for g in set(groups) if OUTPUT in _reached(steps, INPUT, without=g)]
    told = [g for g in told if not any(other < g for other in told)]
    return sorted(told, key=lambda g: (len(g), sorted(g)))


class _Search:
    """Best first over partial paths, led by the exact cost to go over (node, guiding groups met)."""

    def __init__(self, steps: Steps, groups: list[Group]) -> None:
        self.steps = steps
        self.bits: dict[str, int] = dict.fromkeys(steps, 0)
        for bit, group in enumerate(groups):
            for node in group:
                self.bits[node] |= 1 << bit
        self.full = (1 << len(groups)) - 1
        self.guide, states = self._guided(len(groups))
        self.to_go = self._costs_to_go(states)

    def _guided(self, groups: int) -> tuple[int, set[State]]:
        """As many groups, first ones first, as keep the states within MAX_STATES; and the states that the input leads to."""
        for guiding in range(min(groups, MAX_GUIDING), 0, -1):
            guide = (1 << guiding) - 1
            states = self._states(guide, MAX_STATES)
            if len(states) <= MAX_STATES:
                return guide, states
        return 0, self._states(0, len(self.steps))

    def _states(self, guide: int, limit: int) -> set[State]:
        found: set[State] = {(INPUT, 0)}
        frontier = list(found)
        while frontier and len(found) <= limit:
            node, met = frontier.pop()
            new = {(other, met | self.bits[other] & guide) for other in self.steps.get(node, ())} - found
            found |= new
            frontier.extend(new)
        return found

    def _costs_to_go(self, states: set[State]) -> dict[State, Cost]:
        """Dijkstra backwards from the output with all guiding groups met."""
        back = _reverse(self.steps)
        found: dict[State, Cost] = {}
        heap: list[tuple[Cost, State]] = [((0, 0), (OUTPUT, self.guide))]
        while heap:
            cost, state = heapq.heappop(heap)
            if state in found:
                continue
            found[state] = cost
            node, met = state
            for earlier in _subsets(self.bits[node] & self.guide, met):
                for other, more in back[node].items():
                    if (other, earlier) in states and (other, earlier) not in found:
                        heapq.heappush(heap, (_plus(cost, more), (other, earlier)))
        return found

    def run(self, k: int, max_expansions: int, greedy: bool = False) -> tuple[dict[tuple[str, ...], Cost], bool]:
        """Up to k paths with their costs, and whether the bound left it alone.

        Partial paths go by cost so far plus cost to go (greedy: by cost to go), equal ones by their nodes.
        """
        paths: dict[tuple[str, ...], Cost] = {}
        start = (INPUT, 0)
        heap: list[tuple[Cost, tuple[str, ...], Cost, int]] = []
        if start in self.to_go:
            heap.append((self.to_go[start], (INPUT,), (0, 0), 0))
        expansions = 0
        while heap and len(paths) < k:
            if expansions == max_expansions:
                return paths, False
            expansions += 1
            _, nodes, cost, met = heapq.heappop(heap)
            if nodes[-1] == OUTPUT:
                if met == self.full:
                    paths[nodes] = cost
                continue
            for other, more in self.steps[nodes[-1]].items():
                now = met | self.bits[other]
                ahead = self.to_go.get((other, now & self.guide))
                if ahead is not None and other not in nodes:
                    so_far = _plus(cost, more)
                    heapq.heappush(heap, (ahead if greedy else _plus(so_far, ahead), (*nodes, other), so_far, now))
        return paths, True


def _subsets(own: int, met: int) -> Iterator[int]:
    """What may have been met before a node that itself meets `own`: `met` less every part of `own`."""
    part = own
    while True:
        yield met & ~part
        if not part:
            return
        part = (part - 1) & own


def _plus(a: Cost, b: Cost) -> Cost:
    return a[0] + b[0], a[1] + b[1]


def _path(wfg: WFG, nodes: tuple[str, ...], cost: Cost) -> Path:
    transitions = sum(wfg.edges[pair].transitions for pair in itertools.pairwise(nodes))
    return Path(nodes, cost[0] * UNIT_USD, transitions)
