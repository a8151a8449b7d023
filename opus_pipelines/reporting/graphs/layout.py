"""Lays out a picture: each connected part in layers from left to right, and the parts in rows below each other.

Vertices are near the mean height of their neighbours, keep their order and never overlap. The best heights of a layer,
given its neighbours', are an isotonic regression, solved exactly by pooling adjacent violators.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from opus_pipelines.reporting.graphs import text
from opus_pipelines.reporting.graphs.edge_routes import LOOP_HEIGHT, edge_curves, loop, side_height
from opus_pipelines.reporting.graphs.labels import labelled
from opus_pipelines.reporting.graphs.layers import Layered, components, forward, layered, ranks
from opus_pipelines.reporting.graphs.model import Picture, PictureEdge, PictureNode
from opus_pipelines.reporting.graphs.shapes import Box, Layout, NodeShape

ROUNDS = 24
GAP = 16.0  # between two boxes of a layer
DUMMY_GAP = 9.0  # beside a passing edge


@dataclass(frozen=True)
class Extent:
    """How far a vertex reaches above and below its place, in pixels."""

    above: float
    below: float


def places(graph: Layered, extents: Mapping[str, Extent]) -> dict[str, float]:
    """Returns the y of every vertex in pixels; the least top edge is 0."""
    y: dict[str, float] = {}
    offsets = [_offsets(layer, extents, graph.dummies) for layer in graph.layers]
    for layer, offset in zip(graph.layers, offsets, strict=True):
        middle = offset[-1] / 2 if offset else 0.0
        y |= {vertex: o - middle for vertex, o in zip(layer, offset, strict=True)}
    for turn in range(ROUNDS):
        last = turn >= ROUNDS - 4
        order = range(len(graph.layers)) if turn % 2 == 0 else range(len(graph.layers) - 1, -1, -1)
        for i in order:
            near = {
                v: [*graph.left[v], *graph.right[v]] if last else (graph.left if turn % 2 == 0 else graph.right)[v]
                for v in graph.layers[i]
            }
            _place(graph.layers[i], offsets[i], near, graph.dummies, y)
    top = min((y[v] - extents[v].above for v in y), default=0.0)
    return {v: value - top for v, value in y.items()}


def isotonic(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Returns the non-decreasing numbers nearest to `wanted` in weighted least squares."""
    blocks: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(wanted, weights, strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value2, weight2, length2 = blocks.pop()
            value1, weight1, length1 = blocks[-1]
            total = weight1 + weight2
            blocks[-1] = [(value1 * weight1 + value2 * weight2) / total, total, length1 + length2]
    return [mean for mean, _, length in blocks for _ in range(int(length))]


def _offsets(layer: Sequence[str], extents: Mapping[str, Extent], dummies: set[str]) -> list[float]:
    """Returns the least distance of each vertex from the first one of its layer."""
    offsets = [0.0] if layer else []
    for a, b in pairwise(layer):
        gap = DUMMY_GAP if a in dummies or b in dummies else GAP
        offsets.append(offsets[-1] + extents[a].below + gap + extents[b].above)
    return offsets


def _place(
    layer: Sequence[str],
    offsets: Sequence[float],
    near: Mapping[str, Sequence[str]],
    dummies: set[str],
    y: dict[str, float],
) -> None:
    wanted, weights = [], []
    for vertex, offset in zip(layer, offsets, strict=True):
        pulls = [(_pull(vertex in dummies, n in dummies), y[n]) for n in near[vertex]]
        weight = sum(w for w, _ in pulls)
        wanted.append((sum(w * at for w, at in pulls) / weight if weight else y[vertex]) - offset)
        weights.append(weight or 0.05)
    for vertex, offset, value in zip(layer, offsets, isotonic(wanted, weights), strict=True):
        y[vertex] = value + offset


def _pull(dummy: bool, other: bool) -> float:
    """Returns the weight of a neighbour. Long edges have larger weights, so that they run straight."""
    return 8.0 if dummy and other else 2.0 if dummy or other else 1.0


NODE_WIDTH, PADDING = 148.0, 9.0
TITLE_SIZE, TITLE_LINE, TITLE_LINES = 12.0, 15.0, 3
FIGURES_SIZE, FIGURES_LINE = 10.0, 14.0
COLUMN_GAP, MOST_COLUMN_GAP, GAP_OF_AN_EDGE, GAP_OF_A_PIXEL = 78.0, 220.0, 2.5, 0.06
DUMMY = Extent(5.0, 5.0)
PART_GAP, SHELF = 36.0, 1500.0


def lay_out(picture: Picture) -> Layout:
    """Returns every node and edge with its place, without overlaps."""
    nodes = {node.key: node for node in picture.nodes}
    parts = []
    for keys in components([*nodes], [edge.pair for edge in picture.edges]):
        inside = set(keys)
        parts.append(_part([nodes[key] for key in keys], [edge for edge in picture.edges if edge.src in inside]))
    return _shelved(parts)


def _part(nodes: Sequence[PictureNode], edges: Sequence[PictureEdge]) -> Layout:
    """Lays out one connected part, its upper left corner at (0, 0)."""
    keys = [node.key for node in nodes]
    between = [edge for edge in edges if edge.src != edge.dst]
    ahead = forward([edge.pair for edge in between])
    rank = ranks(keys, ahead)
    graph = layered(keys, [edge.pair for edge in between], rank)
    loops = {edge.src for edge in edges if edge.src == edge.dst}
    lines = {node.key: text.wrap(node.title, TITLE_SIZE, NODE_WIDTH - 2 * PADDING, TITLE_LINES) for node in nodes}
    heights = {node.key: _height(node, len(lines[node.key]), graph) for node in nodes}
    extents = dict.fromkeys(graph.dummies, DUMMY)
    extents |= {key: Extent(h / 2 + (LOOP_HEIGHT if key in loops else 0), h / 2) for key, h in heights.items()}
    y = places(graph, extents)
    x = _columns(graph, y)
    boxes = {key: Box(x[rank[key]], y[key] - heights[key] / 2, NODE_WIDTH, heights[key]) for key in keys}
    lanes = {
        d: Box(x[i], y[d], NODE_WIDTH, 0.0) for i, layer in enumerate(graph.layers) for d in layer if d in graph.dummies
    }
    drawn = {shape.edge.pair: shape for shape in edge_curves(between, graph.chains, boxes, lanes)}
    shapes = [NodeShape(node, boxes[node.key], tuple(lines[node.key])) for node in nodes]
    arrows = [loop(edge, boxes[edge.src]) if edge.src == edge.dst else drawn[edge.pair] for edge in edges]
    height = max(value + extents[vertex].below for vertex, value in y.items())
    return Layout(shapes, labelled(shapes, arrows), x[-1] + NODE_WIDTH, height)


def _height(node: PictureNode, lines: int, graph: Layered) -> float:
    words = 2 * PADDING + TITLE_LINE * lines + (FIGURES_LINE if node.figures else 0.0) - 2
    return max(words, side_height(max(len(graph.left[node.key]), len(graph.right[node.key]))))


def _columns(graph: Layered, y: Mapping[str, float]) -> list[float]:
    """Returns the left edge of each layer.

    Layers with more and steeper edges between them are farther apart.
    """
    x, columns = 0.0, []
    steep: dict[int, float] = defaultdict(float)
    place = {vertex: i for i, layer in enumerate(graph.layers) for vertex in layer}
    crossing = Counter(place[vertex] for vertex, ends in graph.right.items() for _ in ends)
    for vertex, ends in graph.right.items():
        steep[place[vertex]] = max([steep[place[vertex]], *(abs(y[end] - y[vertex]) for end in ends)])
    for i in range(len(graph.layers)):
        columns.append(x)
        x += NODE_WIDTH + min(MOST_COLUMN_GAP, COLUMN_GAP + GAP_OF_AN_EDGE * crossing[i] + GAP_OF_A_PIXEL * steep[i])
    return columns


def _shelved(parts: Sequence[Layout]) -> Layout:
    """Places the parts from left to right, in a new row where one is full."""
    limit = max([SHELF, *(part.width for part in parts)])
    whole = Layout()
    x = y = height = width = 0.0
    for part in parts:
        if x and x + part.width > limit:
            x, y, height = 0.0, y + height + PART_GAP, 0.0
        placed = part.moved(x, y)
        whole.nodes.extend(placed.nodes)
        whole.edges.extend(placed.edges)
        width, height = max(width, x + part.width), max(height, part.height)
        x += part.width + PART_GAP
    return Layout(whole.nodes, whole.edges, width, y + height)
