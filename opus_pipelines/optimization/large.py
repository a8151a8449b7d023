"""The cheapest path of a large Workflow Graph over flat arrays: node-cost Dijkstra, LWM (11)-(12), run by SciPy.

Entering node v by edge u -> v costs C(v) + κ·(1 - γ) dollars. Four arrays (CSR) hold the graph: 20 bytes an edge and 4 a node, and the
search takes a few more such arrays; nothing is kept per path.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from opus_pipelines.errors import WorkflowError
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Counts = NDArray[np.int64]
_FREE = 1e-300  # a step that costs nothing: SciPy takes a weight of 0 for no edge; it vanishes in every sum that is not 0 itself
_TIE = 1e-12    # of the path's cost: sums that lie closer are one sum, rounded in another order
_NOTHING = 1e-200  # dollars: less is what free steps add up to
_TRODDEN = 10**12


@dataclass(frozen=True)
class Arrays:
    """A graph as CSR arrays: `targets[starts[u]:starts[u + 1]]` are what u leads to, ascending; by step its dollars and transitions."""

    starts: Ints
    targets: Ints
    usd: Floats
    transitions: Counts

    @classmethod
    def of(cls, src: Ints, dst: Ints, node_usd: Floats, edge_usd: Floats, transitions: Counts) -> "Arrays":
        """From edges in any order: `src`, `dst`, `edge_usd` (κ·(1 - γ)), `transitions` by edge, `node_usd` (C) by node.

        Of parallel edges the cheapest counts. Raises WorkflowError for a cost that is negative or not finite, and where an end is no node.
        """
        nodes = len(node_usd)
        _check(nodes, src, dst, node_usd, edge_usd)
        usd = node_usd[dst] + edge_usd
        key = src.astype(np.int64) * nodes + dst
        order = np.lexsort((-transitions, usd, key)) if np.any(np.diff(key) <= 0) else np.arange(len(key))
        order = order[np.diff(key[order], prepend=-1) > 0]
        starts = np.zeros(nodes + 1, np.int32)
        np.cumsum(np.bincount(src[order], minlength=nodes), out=starts[1:])
        return cls(starts, dst[order].astype(np.int32), np.maximum(usd[order], _FREE), transitions[order])


def _check(nodes: int, src: Ints, dst: Ints, node_usd: Floats, edge_usd: Floats) -> None:
    for ends in (src, dst):
        if (wrong := ends[(ends < 0) | (ends >= nodes)]).size:
            raise WorkflowError(f"an edge ends at node {wrong[0]}; the nodes are 0 to {nodes - 1}")
    for what, costs in (("node", node_usd), ("edge", edge_usd)):
        if (bad := np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))).size:
            raise WorkflowError(f"{what} {bad[0]}: its cost is {costs[bad[0]]} dollars; the search needs finite costs of at least 0")


def cheapest_path(arrays: Arrays, start: int, goal: int) -> tuple[list[int], float] | None:
    """Nodes and cost in dollars of the cheapest path from `start` to `goal`; None where there is none.

    Ties go as in `paths`: to the more trodden path (the smaller Σ 1/(1 + transitions)), then to the lower numbers, from the start on.
    They are settled over the steps that lie on cheapest paths, so that nothing hangs on the order in which SciPy meets the nodes.
    """
    nodes = len(arrays.starts) - 1
    away = dijkstra(csr_array((arrays.usd, arrays.targets, arrays.starts), shape=(nodes, nodes)), indices=start)
    if not np.isfinite(away[goal]):
        return None
    src = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(arrays.starts))
    tight = np.flatnonzero(away[src] + arrays.usd <= np.minimum(away[arrays.targets], away[goal]) + _TIE * away[goal] + _NOTHING)
    src, dst, rarity = src[tight], arrays.targets[tight], (_TRODDEN // (1 + arrays.transitions[tight])).astype(np.float64)
    to_go = dijkstra(csr_array((rarity, (dst, src)), shape=(nodes, nodes)), indices=goal)
    on = np.isfinite(to_go[dst])
    on &= rarity + np.where(on, to_go[dst], 0.0) == to_go[src]
    following = np.full(nodes, nodes, np.int32)
    np.minimum.at(following, src[on], dst[on])
    path, usd = [start], 0.0
    while path[-1] != goal:
        here, after = path[-1], int(following[path[-1]])
        part = slice(arrays.starts[here], arrays.starts[here + 1])
        usd += float(arrays.usd[part][np.searchsorted(arrays.targets[part], after)])
        path.append(after)
    return path, usd if usd > _NOTHING else 0.0


def cheapest_tasks(
    wfg: WFG, node_cost: Callable[[str], float], kappa: float, forbidden: Collection[str] = ()
) -> tuple[tuple[str, ...], float] | None:
    """The cheapest path of a WFG from input to output without forbidden nodes, ids and cost in dollars; nodes are numbered by id."""
    names = sorted(wfg.nodes.keys() - set(forbidden))
    number = {name: i for i, name in enumerate(names)}
    if INPUT not in number or OUTPUT not in number:
        return None
    edges = [e for (a, b), e in wfg.edges.items() if a in number and b in number and a != b] if forbidden else list(wfg.edges.values())
    src = np.fromiter((number[e.src] for e in edges), np.int32, len(edges))
    dst = np.fromiter((number[e.dst] for e in edges), np.int32, len(edges))
    rest = np.fromiter((e.one_minus_gamma for e in edges), np.float64, len(edges))
    counts = np.fromiter((e.transitions for e in edges), np.int64, len(edges))
    costs = np.array([0.0 if name in (INPUT, OUTPUT) else node_cost(name) for name in names])
    found = cheapest_path(Arrays.of(src, dst, costs, kappa * rest, counts), number[INPUT], number[OUTPUT])
    return None if found is None else (tuple(names[i] for i in found[0]), found[1])
