"""Layers of a directed graph (Sugiyama, Tagawa, Toda 1981): which edges run forward, and how far to the right each node stands."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from opus_pipelines.reports.graphs.model import Pair

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
    """The edges that run forward: taken in their order, an edge that would close a cycle is left out, as is a self-loop."""
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
    """Move nodes with no fewer edges out than in next to what follows them, which never lengthens the sum of the edges; did one move?"""
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
