"""Lays out a picture: each connected part in layers from left to right, and the parts in rows below each other.

Layers follow Sugiyama, Tagawa, Toda 1981. First it is chosen which edges run forward, and the layer of each node. An
edge over several layers gets a dummy vertex in each layer between, so that every edge is a chain of short ones.
Barycentre sweeps and exchanges of neighbours then reduce crossings. Vertices are near the mean height of their
neighbours, keep their order and never overlap. The best heights of a layer, given its neighbours', are an isotonic
regression. Edges are smooth curves that are straight past the nodes of a
layer and bend only between layers. A label that would cover a node, another label or an edge is left out.
"""

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import networkx as nx

from opus_pipelines.reporting.graphs import model
from opus_pipelines.reporting.graphs.model import (
    Box,
    EdgeShape,
    Layout,
    NodeShape,
    Pair,
    Picture,
    PictureEdge,
    PictureNode,
    Point,
)


def components(nodes: Sequence[str], edges: Iterable[Pair]) -> list[list[str]]:
    """Returns the weakly connected components, each in the order of `nodes`, the largest first."""
    place = {node: i for i, node in enumerate(nodes)}
    parts = (sorted(part, key=place.__getitem__) for part in nx.weakly_connected_components(_graph(nodes, edges)))
    return sorted(parts, key=lambda part: (-len(part), place[part[0]]))


def _graph(nodes: Iterable[str], edges: Iterable[Pair]) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def forward(edges: Sequence[Pair]) -> list[Pair]:
    """Returns the edges that run forward.

    Edges are taken in their order; a self-loop, and an edge that would close a cycle, is left out.
    """
    kept = _graph([end for edge in edges for end in edge], ())
    for src, dst in edges:
        if not nx.has_path(kept, dst, src):
            kept.add_edge(src, dst)
    return [edge for edge in edges if kept.has_edge(*edge)]


def ranks(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """Returns the layer of each node of an acyclic graph, from 0.

    Every edge runs to the right, and is short where possible: nodes with more edges out than in stand next to their
    successors, the others next to their predecessors.
    """
    graph = _graph(nodes, edges)
    generations = list(nx.topological_generations(graph))
    rank = {node: n for n, generation in enumerate(generations) for node in generation}
    order, before = list(rank), dict[str, int]()
    while rank != before:
        before = dict(rank)
        for node in reversed(order):
            if graph.out_degree(node) >= max(1, graph.in_degree(node)):
                rank[node] = max(rank[node], min(rank[after] for after in graph.successors(node)) - 1)
    for node in order:
        if graph.in_degree(node) >= max(1, graph.out_degree(node)):
            rank[node] = max(rank[earlier] for earlier in graph.predecessors(node)) + 1
    least = min(rank.values(), default=0)
    return {node: r - least for node, r in rank.items()}


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


PORT_GAP = 9.0  # between two edges at a node's side
LOOP_HEIGHT = 24.0  # above a node that follows itself
LEAST_WIDTH, WIDTH_OF_A_DOUBLING, MOST_WIDTH = 1.0, 0.75, 6.5


def line_width(one_minus_gamma: float) -> float:
    """Returns the width of an edge in pixels, which grows with the logarithm of λ·|ξ| = −ln(1 − γ).

    γ itself is nearly 1 for every strong edge, so a width by γ would not distinguish them.
    """
    if one_minus_gamma <= 0:
        return MOST_WIDTH
    return round(
        min(MOST_WIDTH, LEAST_WIDTH + WIDTH_OF_A_DOUBLING * math.log2(1 - math.log(min(1.0, one_minus_gamma)))), 2
    )


def arrow_length(width: float) -> float:
    """Returns the length of an arrow's head in pixels."""
    return 5.0 + 1.5 * width


def side_height(ends: int) -> float:
    """Returns the least height in pixels of a node with so many edges at one side."""
    return PORT_GAP * ends + 8.0


def edge_curves(
    edges: Sequence[PictureEdge],
    chains: Mapping[Pair, Sequence[str]],
    boxes: Mapping[str, Box],
    lanes: Mapping[str, Box],
) -> list[EdgeShape]:
    """Returns the curve of every edge that is no loop.

    `lanes` are the columns that an edge passes straight, by dummy vertex.
    """
    ports = _ports(edges, chains, boxes, lanes)
    shapes = []
    for edge in edges:
        chain = chains[edge.pair]
        is_back = boxes[edge.src].x > boxes[edge.dst].x
        width = line_width(edge.one_minus_gamma)
        sign = -1.0 if is_back else 1.0
        stops = [(_side(boxes[edge.src], sign), ports[edge.pair, edge.src])]
        for dummy in chain[1:-1]:
            lane = lanes[dummy]
            stops += [
                (lane.x if sign > 0 else lane.x + lane.width, lane.y),
                (lane.x + lane.width if sign > 0 else lane.x, lane.y),
            ]
        end = (_side(boxes[edge.dst], -sign) - sign * arrow_length(width), ports[edge.pair, edge.dst])
        shapes.append(EdgeShape(edge, _smooth([*stops, end]), (sign, 0.0), width, is_back))
    return shapes


def loop(edge: PictureEdge, box: Box) -> EdgeShape:
    """Returns a loop above the node, to the right of its middle; its label is at its left."""
    width = line_width(edge.one_minus_gamma)
    x1, x2 = box.x + 0.64 * box.width, box.x + 0.86 * box.width
    top = box.y - LOOP_HEIGHT * 1.15
    points = ((x1, box.y), (x1 - 4, top), (x2, top), (x2, box.y - arrow_length(width)))
    return EdgeShape(edge, points, (0.0, 1.0), width)


def _side(box: Box, sign: float) -> float:
    return box.x + box.width if sign > 0 else box.x


def _ports(
    edges: Sequence[PictureEdge],
    chains: Mapping[Pair, Sequence[str]],
    boxes: Mapping[str, Box],
    lanes: Mapping[str, Box],
) -> dict[tuple[Pair, str], float]:
    """Returns the y at which each edge meets each of its nodes.

    The ends at one side are spread evenly, in the order of their other ends.
    """
    height = {key: box.y + box.height / 2 for key, box in boxes.items()} | {key: lane.y for key, lane in lanes.items()}
    sides: dict[tuple[str, bool], list[tuple[float, Pair]]] = defaultdict(list)
    for edge in edges:
        chain, is_forward = chains[edge.pair], boxes[edge.src].x < boxes[edge.dst].x
        sides[edge.src, is_forward].append((height[chain[1]], edge.pair))
        sides[edge.dst, not is_forward].append((height[chain[-2]], edge.pair))
    ports = {}
    for (node, _), ends in sides.items():
        ends.sort()
        gap = min(20.0, (boxes[node].height - 8.0) / len(ends))
        for i, (_, pair) in enumerate(ends):
            ports[pair, node] = height[node] + gap * (i - (len(ends) - 1) / 2)
    return ports


def _smooth(stops: Sequence[Point]) -> tuple[Point, ...]:
    """Returns cubic curves through the stops, horizontal at each."""
    points = [stops[0]]
    for (x1, y1), (x2, y2) in pairwise(stops):
        middle = (x1 + x2) / 2
        points += [(middle, y1), (middle, y2), (x2, y2)]
    return tuple(points)


LABEL_SIZE, LABEL_HEIGHT = 10.0, 12.0
CELL, ARROW = 24.0, -1  # no label stands on an arrow, be it its own


def labelled(nodes: Sequence[NodeShape], edges: Sequence[EdgeShape]) -> list[EdgeShape]:
    """Returns the edges with the boxes of their labels; the first edges choose first."""
    taken = [node.box for node in nodes]
    passing = _Passing(edges)
    shapes = []
    for i, shape in enumerate(edges):
        box = _free(shape, i, taken, passing) if shape.edge.label else None
        if box is not None:
            taken.append(box)
        shapes.append(replace(shape, label=box))
    return shapes


class _Passing:
    """Records which edges pass where, in a grid of cells."""

    def __init__(self, edges: Sequence[EdgeShape]) -> None:
        self._cells: dict[tuple[int, int], list[tuple[int, Point, float]]] = defaultdict(list)
        for i, shape in enumerate(edges):
            for point in shape.samples():
                self._put(i, point, shape.width / 2)
            self._put(ARROW, shape.tip, arrow_length(shape.width))

    def _put(self, i: int, point: Point, margin: float) -> None:
        self._cells[int(point[0] // CELL), int(point[1] // CELL)].append((i, point, margin))

    def others(self, box: Box, own: int) -> bool:
        """Returns whether an edge other than `own` passes through the box."""
        columns = range(int(box.x // CELL) - 1, int((box.x + box.width) // CELL) + 2)
        rows = range(int(box.y // CELL) - 1, int((box.y + box.height) // CELL) + 2)
        return any(
            i != own and box.holds(point, margin)
            for x in columns
            for y in rows
            for i, point, margin in self._cells.get((x, y), ())
        )


def _free(shape: EdgeShape, own: int, taken: Iterable[Box], passing: _Passing) -> Box | None:
    for box in [_loop_label(shape)] if shape.edge.src == shape.edge.dst else _candidates(shape):
        if not any(box.touches(other, 2.0) for other in taken) and not passing.others(box, own):
            return box
    return None


def _candidates(shape: EdgeShape) -> Iterable[Box]:
    """Yields boxes centred on the edge, from its middle outwards."""
    points = list(shape.samples(6.0))
    middle = (len(points) - 1) / 2
    wide = model.width(shape.edge.label, LABEL_SIZE) + 4
    for i in sorted(range(len(points)), key=lambda i: (abs(i - middle), i)):
        x, y = points[i]
        yield Box(x - wide / 2, y - LABEL_HEIGHT / 2, wide, LABEL_HEIGHT)


def _loop_label(shape: EdgeShape) -> Box:
    x, y = shape.points[0]
    wide = model.width(shape.edge.label, LABEL_SIZE) + 4
    return Box(x - 7 - wide, y - 3 - LABEL_HEIGHT, wide, LABEL_HEIGHT)


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
    from scipy.optimize import isotonic_regression  # here, since `opus graph` of an empty lake draws nothing

    wanted, weights = [], []
    for vertex, offset in zip(layer, offsets, strict=True):
        pulls = [(_pull(vertex in dummies, n in dummies), y[n]) for n in near[vertex]]
        weight = sum(w for w, _ in pulls)
        wanted.append((sum(w * at for w, at in pulls) / weight if weight else y[vertex]) - offset)
        weights.append(weight or 0.05)
    for vertex, offset, value in zip(
        layer, offsets, isotonic_regression(wanted, weights=weights).x.tolist(), strict=True
    ):
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
    lines = {node.key: model.wrap(node.title, TITLE_SIZE, NODE_WIDTH - 2 * PADDING, TITLE_LINES) for node in nodes}
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
