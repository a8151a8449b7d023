"""Assigns the nodes of a directed graph to layers, and orders them there (Sugiyama, Tagawa, Toda 1981).

First it chooses which edges run forward, and the layer of each node. An edge over several layers gets a dummy vertex in
each layer between, so that every edge is a chain of short ones. Barycentre sweeps and exchanges of neighbours then
reduce crossings.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opus_pipelines.reporting.graphs.model import Pair

Neighbours = Mapping[str, Sequence[str]]


def components(nodes: Sequence[str], edges: Iterable[Pair]) -> list[list[str]]:
    """Returns the weakly connected components, each in the order of `nodes`, the largest first."""
    near: dict[str, list[str]] = defaultdict(list)
    for src, dst in edges:
        near[src].append(dst)
        near[dst].append(src)
    parts: list[set[str]] = []
    seen: set[str] = set()
    for node in nodes:
        if node not in seen:
            parts.append(reach(node, near))
            seen |= parts[-1]
    rank = {node: i for i, node in enumerate(nodes)}
    return sorted((sorted(part, key=rank.__getitem__) for part in parts), key=lambda part: (-len(part), rank[part[0]]))


def forward(edges: Sequence[Pair]) -> list[Pair]:
    """Returns the edges that run forward.

    Edges are taken in their order; a self-loop, and an edge that would close a cycle, is left out.
    """
    after: dict[str, list[str]] = defaultdict(list)
    kept = []
    for src, dst in edges:
        if src not in reach(dst, after):
            after[src].append(dst)
            kept.append((src, dst))
    return kept


def ranks(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """Returns the layer of each node of an acyclic graph, from 0.

    Every edge runs to the right, and is short where possible.
    """
    before, after = _neighbours(edges)
    order = _topological(nodes, before, after)
    rank: dict[str, int] = {}
    for node in order:
        rank[node] = max((rank[p] + 1 for p in before[node]), default=0)
    while _rightwards(order, rank, before, after):
        pass
    _leftwards(order, rank, before, after)
    least = min(rank.values(), default=0)
    return {node: r - least for node, r in rank.items()}


def reach(start: str, near: Neighbours) -> set[str]:
    """Returns everything that can be reached from `start`, itself included."""
    seen, stack = {start}, [start]
    while stack:
        for node in near.get(stack.pop(), ()):
            if node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


def _neighbours(edges: Sequence[Pair]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for src, dst in edges:
        after[src].append(dst)
        before[dst].append(src)
    return before, after


def _topological(nodes: Sequence[str], before: Neighbours, after: Neighbours) -> list[str]:
    waiting = {node: len(before.get(node, ())) for node in nodes}
    ready = [node for node in nodes if not waiting[node]]
    for node in ready:
        for follower in after.get(node, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return ready


def _rightwards(order: Sequence[str], rank: dict[str, int], before: Neighbours, after: Neighbours) -> bool:
    """Moves nodes with at least as many edges out as in next to their successors. Returns whether one moved.

    This never increases the total length of the edges.
    """
    moved = False
    for node in reversed(order):
        followers = after.get(node, ())
        if followers and len(followers) >= len(before.get(node, ())):
            nearest = min(rank[f] for f in followers) - 1
            moved |= nearest > rank[node]
            rank[node] = max(rank[node], nearest)
    return moved


def _leftwards(order: Sequence[str], rank: dict[str, int], before: Neighbours, after: Neighbours) -> None:
    """Moves a node back next to its predecessors where that does not increase the total length."""
    for node in order:
        if before.get(node) and len(before[node]) >= len(after.get(node, ())):
            rank[node] = max(rank[p] for p in before[node]) + 1


SWEEPS = 16


@dataclass
class Layered:
    """Vertices (nodes and dummies) in layers, each layer ordered from above.

    `chains` holds the vertices of each edge from src to dst.
    """

    layers: list[list[str]]
    chains: dict[Pair, list[str]]
    left: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    right: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    dummies: set[str] = field(default_factory=set)


def layered(nodes: Sequence[str], edges: Sequence[Pair], rank: Mapping[str, int]) -> Layered:
    """Returns nodes and dummies in ordered layers.

    An edge against the ranks is stored from its right end to its left end, and its chain is reversed.
    """
    graph = Layered([[] for _ in range(max(rank.values(), default=-1) + 1)], {})
    for node in nodes:
        graph.layers[rank[node]].append(node)
    for src, dst in edges:
        first, last = (src, dst) if rank[src] < rank[dst] else (dst, src)
        dummies = [f"{src}\x1f{dst}\x1f{layer}" for layer in range(rank[first] + 1, rank[last])]
        graph.dummies |= set(dummies)
        chain = [first, *dummies, last]
        for a, b in pairwise(chain):
            graph.right[a].append(b)
            graph.left[b].append(a)
        for layer, dummy in enumerate(dummies, rank[first] + 1):
            graph.layers[layer].append(dummy)
        graph.chains[src, dst] = chain if first == src else chain[::-1]
    _depth_first(graph)
    _reduce(graph)
    return graph


def crossings(layers: Sequence[Sequence[str]], right: Mapping[str, Sequence[str]]) -> int:
    """Returns how many pairs of short edges cross."""
    total = 0
    for layer, following in pairwise(layers):
        place = {vertex: i for i, vertex in enumerate(following)}
        seen: list[int] = []
        for vertex in layer:
            ends = sorted(place[end] for end in right.get(vertex, ()))
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _depth_first(graph: Layered) -> None:
    """Orders each layer by a depth-first walk along the edges, so that chains lie next to each other."""
    met: dict[str, int] = {}
    for start in (vertex for layer in graph.layers for vertex in layer):
        stack = [start]
        while stack:
            vertex = stack.pop()
            if vertex not in met:
                met[vertex] = len(met)
                stack += reversed([*graph.right[vertex], *graph.left[vertex]])
    for layer in graph.layers:
        layer.sort(key=met.__getitem__)


def _reduce(graph: Layered) -> None:
    best, fewest = [list(layer) for layer in graph.layers], crossings(graph.layers, graph.right)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        _sweep(graph, rightwards=sweep % 2 == 0)
        _exchange(graph)
        count = crossings(graph.layers, graph.right)
        if count < fewest:
            best, fewest = [list(layer) for layer in graph.layers], count
    graph.layers = best


def _sweep(graph: Layered, rightwards: bool) -> None:
    """Orders each layer by the mean place of its vertices' neighbours in the layer before.

    Vertices without neighbours keep their place.
    """
    near = graph.left if rightwards else graph.right
    order = range(1, len(graph.layers)) if rightwards else range(len(graph.layers) - 2, -1, -1)
    for i in order:
        place = {vertex: k for k, vertex in enumerate(graph.layers[i - 1 if rightwards else i + 1])}
        scale = len(place) / max(1, len(graph.layers[i]))
        own = {vertex: k * scale for k, vertex in enumerate(graph.layers[i])}
        mean = {v: sum(place[n] for n in near[v]) / len(near[v]) if near[v] else own[v] for v in graph.layers[i]}
        graph.layers[i].sort(key=mean.__getitem__)


def _exchange(graph: Layered) -> None:
    """Exchanges adjacent vertices of a layer while that removes crossings."""
    for i, layer in enumerate(graph.layers):
        sides = [
            ({v: k for k, v in enumerate(graph.layers[j])}, near)
            for j, near in ((i - 1, graph.left), (i + 1, graph.right))
            if 0 <= j < len(graph.layers)
        ]
        improved = True
        while improved:
            improved = False
            for k in range(len(layer) - 1):
                a, b = layer[k], layer[k + 1]
                if sum(_pairs(p, near[b], near[a]) - _pairs(p, near[a], near[b]) for p, near in sides) < 0:
                    layer[k], layer[k + 1] = b, a
                    improved = True


def _pairs(place: Mapping[str, int], above: Sequence[str], below: Sequence[str]) -> int:
    """Returns the crossings between the edges of two vertices, `above` of the upper one."""
    return sum(place[a] > place[b] for a in above for b in below)
