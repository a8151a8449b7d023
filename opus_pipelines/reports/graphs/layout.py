"""A picture laid out: each connected part in layers from left to right, the parts on shelves below each other."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from opus_pipelines.reports.graphs import text
from opus_pipelines.reports.graphs.labels import labelled
from opus_pipelines.reports.graphs.layers import components, forward, ranks
from opus_pipelines.reports.graphs.model import Picture, PictureEdge, PictureNode
from opus_pipelines.reports.graphs.order import Layered, layered
from opus_pipelines.reports.graphs.place import Extent, places
from opus_pipelines.reports.graphs.route import LOOP_HEIGHT, curves, loop, side_room
from opus_pipelines.reports.graphs.shapes import Box, Layout, NodeShape

NODE_WIDTH, PADDING = 148.0, 9.0
TITLE_SIZE, TITLE_LINE, TITLE_LINES = 12.0, 15.0, 3
FIGURES_SIZE, FIGURES_LINE = 10.0, 14.0
COLUMN_GAP, MOST_COLUMN_GAP, GAP_OF_AN_EDGE, GAP_OF_A_PIXEL = 78.0, 220.0, 2.5, 0.06
DUMMY = Extent(5.0, 5.0)
PART_GAP, SHELF = 36.0, 1500.0


def laid_out(picture: Picture) -> Layout:
    """Every node and edge with its place; nothing overlaps."""
    nodes = {node.key: node for node in picture.nodes}
    parts = []
    for keys in components([*nodes], [edge.pair for edge in picture.edges]):
        inside = set(keys)
        parts.append(_part([nodes[key] for key in keys], [edge for edge in picture.edges if edge.src in inside]))
    return _shelved(parts)


def _part(nodes: Sequence[PictureNode], edges: Sequence[PictureEdge]) -> Layout:
    """One connected part, its upper left corner at 0, 0."""
    keys = [node.key for node in nodes]
    between = [edge for edge in edges if edge.src != edge.dst]
    ahead = forward([edge.pair for edge in between])
    rank = ranks(keys, ahead)
    made = layered(keys, [edge.pair for edge in between], rank)
    loops = {edge.src for edge in edges if edge.src == edge.dst}
    lines = {node.key: text.wrap(node.title, TITLE_SIZE, NODE_WIDTH - 2 * PADDING, TITLE_LINES) for node in nodes}
    heights = {node.key: _height(node, len(lines[node.key]), made) for node in nodes}
    extents = dict.fromkeys(made.dummies, DUMMY)
    extents |= {key: Extent(h / 2 + (LOOP_HEIGHT if key in loops else 0), h / 2) for key, h in heights.items()}
    y = places(made, extents)
    x = _columns(made, y)
    boxes = {key: Box(x[rank[key]], y[key] - heights[key] / 2, NODE_WIDTH, heights[key]) for key in keys}
    lanes = {d: Box(x[i], y[d], NODE_WIDTH, 0.0) for i, layer in enumerate(made.layers) for d in layer if d in made.dummies}
    drawn = {shape.edge.pair: shape for shape in curves(between, made.chains, boxes, lanes)}
    shapes = [NodeShape(node, boxes[node.key], tuple(lines[node.key])) for node in nodes]
    arrows = [loop(edge, boxes[edge.src]) if edge.src == edge.dst else drawn[edge.pair] for edge in edges]
    height = max(value + extents[vertex].below for vertex, value in y.items())
    return Layout(shapes, labelled(shapes, arrows), x[-1] + NODE_WIDTH, height)


def _height(node: PictureNode, lines: int, made: Layered) -> float:
    words = 2 * PADDING + TITLE_LINE * lines + (FIGURES_LINE if node.figures else 0.0) - 2
    return max(words, side_room(max(len(made.left[node.key]), len(made.right[node.key]))))


def _columns(made: Layered, y: Mapping[str, float]) -> list[float]:
    """The left edge of each layer; the more and the steeper edges run between two layers, the farther apart they stand."""
    x, found = 0.0, []
    steep: dict[int, float] = defaultdict(float)
    place = {vertex: i for i, layer in enumerate(made.layers) for vertex in layer}
    crossing = Counter(place[vertex] for vertex, ends in made.right.items() for _ in ends)
    for vertex, ends in made.right.items():
        steep[place[vertex]] = max([steep[place[vertex]], *(abs(y[end] - y[vertex]) for end in ends)])
    for i in range(len(made.layers)):
        found.append(x)
        x += NODE_WIDTH + min(MOST_COLUMN_GAP, COLUMN_GAP + GAP_OF_AN_EDGE * crossing[i] + GAP_OF_A_PIXEL * steep[i])
    return found


def _shelved(parts: Sequence[Layout]) -> Layout:
    """The parts from left to right, a new shelf where one is full."""
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
