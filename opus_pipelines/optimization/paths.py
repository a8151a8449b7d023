"""The k cheapest paths of a Workflow Graph, LWM (11), by node-cost Dijkstra, LWM (12), with tasks that a path needs.

Entering node v by edge u → v costs C(v) + κ·(1 - γ) dollars. Costs are held as integers of 1e-12 dollars: a sum does not depend on its
order, so that a tie is a tie. Where two sums tie, the more trodden edges win (the smaller Σ 1/(1 + transitions)), then the node ids.
How paths are enumerated stands in `search`.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from opus_pipelines.errors import WorkflowError
from opus_pipelines.optimization.large import cheapest_tasks
from opus_pipelines.optimization.search import Cost, Found, Group, Search, Steps, reverse
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG, WfgEdge

UNIT_USD = 1e-12
_TRODDEN = 10**12
MAX_EXPANSIONS = 50_000
LARGE = 20_000


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
    The search stops after `max_expansions` partial paths (`complete` False): the paths found by then are the cheapest; a second, greedy
    search as long and the sequences' own ways fill up to k with fitting paths that may not be the next cheapest.
    The one cheapest path of a graph of more than LARGE edges, nothing required, is found over flat arrays (`large`), by the same rule.
    Raises WorkflowError for a cost that is negative or not finite.
    """
    if k == 1 and not required and len(wfg.edges) > LARGE:
        found = cheapest_tasks(wfg, node_cost, kappa, forbidden)
        return PathResult([] if found is None else [Path(*found, _transitions(wfg, found[0]))], True)
    steps = _steps(wfg, node_cost, kappa, frozenset(forbidden))
    alive = _reached(steps, INPUT) & _reached(reverse(steps), OUTPUT)
    groups = [frozenset(group) & alive for group in required]
    if unmet := tuple(frozenset(raw) for raw, group in zip(required, groups, strict=True) if not group):
        return PathResult([], True, unmet)
    telling = _telling(steps, groups)
    search = Search(steps, telling)
    best, complete = search.run(k, max_expansions)
    if not complete:
        more = search.run(k, max_expansions, greedy=True)[0] | _own_ways(wfg, steps, telling)
        best |= dict(sorted(more.items(), key=lambda item: item[::-1]))
    return PathResult([_path(wfg, nodes, cost) for nodes, cost in list(best.items())[:k]], complete)


def _own_ways(wfg: WFG, steps: Steps, groups: list[Group]) -> Found:
    """For every sequence the best fitting path over its own edges, where it has one: what history did is always at hand."""
    found: Found = {}
    for sequence in wfg.nodes[INPUT].sequence_ids:
        own = {u: {v: cost for v, cost in after.items() if sequence in wfg.edges[u, v].sequence_ids} for u, after in steps.items()}
        found |= Search(own, groups).run(1, MAX_EXPANSIONS)[0]
    return found


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


def _path(wfg: WFG, nodes: tuple[str, ...], cost: Cost) -> Path:
    return Path(nodes, cost[0] * UNIT_USD, _transitions(wfg, nodes))


def _transitions(wfg: WFG, nodes: Sequence[str]) -> int:
    return sum(wfg.edges[pair].transitions for pair in itertools.pairwise(nodes))
