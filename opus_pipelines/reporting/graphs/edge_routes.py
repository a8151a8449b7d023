"""Draws edges as smooth curves that are straight past the nodes of a layer and bend only between layers."""

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
