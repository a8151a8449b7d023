"""Layers of a directed graph (Sugiyama, Tagawa, Toda 1981): which edges run forward, and how far to the right each
node stands.

The order of the nodes within their layers: few crossings, by barycentre sweeps and exchanges of neighbours.

An edge over several layers is held by a dummy in each layer between: from here on every edge is a chain of short ones.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opus_pipelines.reporting.graphs.model import Pair

Neighbours = Mapping[str, Sequence[str]]


def components(nodes: Sequence[str], edges: Iterable[Pair]) -> list[list[str]]:
    """Weakly connected components, each in the order of `nodes`, the largest first."""
    near: dict[str, list[str]] = defaultdict(list)
    for src, dst in edges:
        near[src].append(dst)
        near[dst].append(src)
    found: list[set[str]] = []
    seen: set[str] = set()
    for node in nodes:
        if node not in seen:
            found.append(reach(node, near))
            seen |= found[-1]
    rank = {node: i for i, node in enumerate(nodes)}
    return sorted((sorted(part, key=rank.__getitem__) for part in found), key=lambda part: (-len(part), rank[part[0]]))


def forward(edges: Sequence[Pair]) -> list[Pair]:
    """The edges that run forward: taken in their order, an edge that would close a cycle is left out, as is a
    self-loop.
    """
    after: dict[str, list[str]] = defaultdict(list)
    kept = []
    for src, dst in edges:
        if src not in reach(dst, after):
            after[src].append(dst)
            kept.append((src, dst))
    return kept


def ranks(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """The layer of each node of an acyclic graph, from 0: every edge runs to the right, and short where it can."""
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
    """Everything that can be reached from `start`, itself included."""
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
    """Move nodes with no fewer edges out than in next to what follows them, which never lengthens the sum of the
    edges; did one move?
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
    """Move nodes that lost nothing by moving back next to what they follow: a step stands where its work begins."""
    for node in order:
        if before.get(node) and len(before[node]) >= len(after.get(node, ())):
            rank[node] = max(rank[p] for p in before[node]) + 1


SWEEPS = 16


@dataclass
class Layered:
    """Vertices (nodes and dummies) in layers, each in its order from above; `chains` hold each edge's vertices from
    src to dst.
    """

    layers: list[list[str]]
    chains: dict[Pair, list[str]]
    left: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    right: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    dummies: set[str] = field(default_factory=set)


def layered(nodes: Sequence[str], edges: Sequence[Pair], rank: Mapping[str, int]) -> Layered:
    """Nodes and dummies in ordered layers. An edge against the ranks is held from its right end to its left one, its
    chain turned round.
    """
    made = Layered([[] for _ in range(max(rank.values(), default=-1) + 1)], {})
    for node in nodes:
        made.layers[rank[node]].append(node)
    for src, dst in edges:
        first, last = (src, dst) if rank[src] < rank[dst] else (dst, src)
        dummies = [f"{src}\x1f{dst}\x1f{layer}" for layer in range(rank[first] + 1, rank[last])]
        made.dummies |= set(dummies)
        chain = [first, *dummies, last]
        for a, b in pairwise(chain):
            made.right[a].append(b)
            made.left[b].append(a)
        for layer, dummy in enumerate(dummies, rank[first] + 1):
            made.layers[layer].append(dummy)
        made.chains[src, dst] = chain if first == src else chain[::-1]
    _depth_first(made)
    _reduce(made)
    return made


def crossings(layers: Sequence[Sequence[str]], right: Mapping[str, Sequence[str]]) -> int:
    """How many pairs of short edges cross."""
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


def _depth_first(made: Layered) -> None:
    """Start from the order in which a walk along the edges meets the vertices: chains lie side by side."""
    met: dict[str, int] = {}
    for start in (vertex for layer in made.layers for vertex in layer):
        stack = [start]
        while stack:
            vertex = stack.pop()
            if vertex not in met:
                met[vertex] = len(met)
                stack += reversed([*made.right[vertex], *made.left[vertex]])
    for layer in made.layers:
        layer.sort(key=met.__getitem__)


def _reduce(made: Layered) -> None:
    best, fewest = [list(layer) for layer in made.layers], crossings(made.layers, made.right)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        _sweep(made, rightwards=sweep % 2 == 0)
        _exchange(made)
        found = crossings(made.layers, made.right)
        if found < fewest:
            best, fewest = [list(layer) for layer in made.layers], found
    made.layers = best


def _sweep(made: Layered, rightwards: bool) -> None:
    """Order each layer by the mean place of its vertices' neighbours in the layer before; those without any keep their
    place.
    """
    near = made.left if rightwards else made.right
    order = range(1, len(made.layers)) if rightwards else range(len(made.layers) - 2, -1, -1)
    for i in order:
        place = {vertex: k for k, vertex in enumerate(made.layers[i - 1 if rightwards else i + 1])}
        scale = len(place) / max(1, len(made.layers[i]))
        own = {vertex: k * scale for k, vertex in enumerate(made.layers[i])}
        mean = {v: sum(place[n] for n in near[v]) / len(near[v]) if near[v] else own[v] for v in made.layers[i]}
        made.layers[i].sort(key=mean.__getitem__)


def _exchange(made: Layered) -> None:
    """Exchange neighbours in a layer while that takes crossings away."""
    for i, layer in enumerate(made.layers):
        sides = [
            ({v: k for k, v in enumerate(made.layers[j])}, near)
            for j, near in ((i - 1, made.left), (i + 1, made.right))
            if 0 <= j < len(made.layers)
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
    """Crossings between the edges of two vertices, `above` of the upper one."""
    return sum(place[a] > place[b] for a in above for b in below)
