"""Edges as smooth curves: straight past the nodes of a layer, bent only between layers, so that no edge runs through a
node.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from opus_pipelines.reporting.graphs.model import Pair, PictureEdge
from opus_pipelines.reporting.graphs.shapes import Box, EdgeShape, Point

PORT_GAP = 9.0  # between two edges at a node's side
LOOP_HEIGHT = 24.0  # above a node that follows itself
LEAST_WIDTH, WIDTH_OF_A_DOUBLING, MOST_WIDTH = 1.0, 0.75, 6.5


def line_width(one_minus_gamma: float) -> float:
    """Pixels, growing with the logarithm of λ·|ξ| = -ln(1 - γ): γ itself is nearly 1 for every strong edge and would
    tell none apart.
    """
    if one_minus_gamma <= 0:
        return MOST_WIDTH
    return round(
        min(MOST_WIDTH, LEAST_WIDTH + WIDTH_OF_A_DOUBLING * math.log2(1 - math.log(min(1.0, one_minus_gamma)))), 2
    )


def arrow_length(width: float) -> float:
    """Pixels of an arrow's head."""
    return 5.0 + 1.5 * width


def side_room(ends: int) -> float:
    """Least height of a node with so many edges at one side."""
    return PORT_GAP * ends + 8.0


def edge_curves(
    edges: Sequence[PictureEdge],
    chains: Mapping[Pair, Sequence[str]],
    boxes: Mapping[str, Box],
    lanes: Mapping[str, Box],
) -> list[EdgeShape]:
    """The curve of every edge that is no loop. `lanes` are the columns that an edge passes straight, by dummy."""
    ports = _ports(edges, chains, boxes, lanes)
    made = []
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
        made.append(EdgeShape(edge, _smooth([*stops, end]), (sign, 0.0), width, is_back))
    return made


def loop(edge: PictureEdge, box: Box) -> EdgeShape:
    """A loop above the node, to the right of its middle; its label stands to its left."""
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
    """The y at which each edge meets each of its nodes: the ends of one side spread evenly, in the order of where they
    go.
    """
    height = {key: box.y + box.height / 2 for key, box in boxes.items()} | {key: lane.y for key, lane in lanes.items()}
    sides: dict[tuple[str, bool], list[tuple[float, Pair]]] = defaultdict(list)
    for edge in edges:
        chain, is_forward = chains[edge.pair], boxes[edge.src].x < boxes[edge.dst].x
        sides[edge.src, is_forward].append((height[chain[1]], edge.pair))
        sides[edge.dst, not is_forward].append((height[chain[-2]], edge.pair))
    made = {}
    for (node, _), ends in sides.items():
        ends.sort()
        gap = min(20.0, (boxes[node].height - 8.0) / len(ends))
        for i, (_, pair) in enumerate(ends):
            made[pair, node] = height[node] + gap * (i - (len(ends) - 1) / 2)
    return made


def _smooth(stops: Sequence[Point]) -> tuple[Point, ...]:
    """Cubic curves through the stops, level at each."""
    points = [stops[0]]
    for (x1, y1), (x2, y2) in pairwise(stops):
        middle = (x1 + x2) / 2
        points += [(middle, y1), (middle, y2), (x2, y2)]
    return tuple(points)
