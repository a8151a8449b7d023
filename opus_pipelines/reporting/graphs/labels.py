"""Places labels on their edges where they cover no node, label or other edge.

A label without such a place is left out.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from opus_pipelines.reporting.graphs import text
from opus_pipelines.reporting.graphs.edge_routes import arrow_length
from opus_pipelines.reporting.graphs.shapes import Box, EdgeShape, NodeShape, Point

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
    wide = text.width(shape.edge.label, LABEL_SIZE) + 4
    for i in sorted(range(len(points)), key=lambda i: (abs(i - middle), i)):
        x, y = points[i]
        yield Box(x - wide / 2, y - LABEL_HEIGHT / 2, wide, LABEL_HEIGHT)


def _loop_label(shape: EdgeShape) -> Box:
    x, y = shape.points[0]
    wide = text.width(shape.edge.label, LABEL_SIZE) + 4
    return Box(x - 7 - wide, y - 3 - LABEL_HEIGHT, wide, LABEL_HEIGHT)
