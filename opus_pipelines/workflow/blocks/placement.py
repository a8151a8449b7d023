"""Places for new elements of a drawing of which a part is placed already: what has a place keeps it."""

from collections.abc import Mapping

from opus_pipelines.workflow.blocks.drawing import EVENT, GAP, PAD, Drawing, Node

Box = tuple[float, float, float, float]
_APART = 20.0
_TRIES = 12


def place(drawing: Drawing, known: Mapping[str, Box]) -> set[str]:
    """Gives every node of the drawing a place: the known one, or a free one near its neighbours.

    Returns the ids of those containers with a known place that had to grow.
    """
    grown: set[str] = set()
    _Placer(dict(known), grown).container(drawing, None)
    return grown


class _Placer:
    def __init__(self, known: dict[str, Box], grown: set[str]) -> None:
        self._known, self._grown = known, grown

    def container(self, drawing: Drawing, frame: Node | None) -> None:
        """Places the nodes of a container, those with known places first, and what is in its loops."""
        for node in drawing.nodes:
            if node.id in self._known:
                node.x, node.y, node.width, node.height = self._known[node.id]
        placed = [node for node in drawing.nodes if node.id in self._known]
        for node in drawing.nodes:
            if node.id not in self._known and node.inner is not None and self._around(node):
                placed.append(node)
        for node in drawing.nodes:
            if not any(node is other for other in placed):
                self._near(node, drawing, placed, frame)
                placed.append(node)
        for edge in drawing.edges:
            edge.lane = self._lane(drawing, edge.source, edge.target) if edge.lane is not None else None
        for node in drawing.nodes:
            if node.inner is not None:
                self.container(node.inner, node)
        if frame is not None:
            self._grow(frame, drawing)

    def _around(self, node: Node) -> bool:
        """Draws a new loop around those of its nodes that have a place; False where none has."""
        boxes = [self._known[n.id] for n in _inside(node) if n.id in self._known]
        if not boxes:
            return False
        left, top = min(b[0] for b in boxes), min(b[1] for b in boxes)
        right, bottom = max(b[0] + b[2] for b in boxes), max(b[1] + b[3] for b in boxes)
        side = EVENT[0] + GAP / 2 + _APART
        node.x, node.y = left - side, top - PAD
        node.width, node.height = right - left + 2 * side, bottom - top + 2 * PAD
        return True

    def _near(self, node: Node, drawing: Drawing, placed: list[Node], frame: Node | None) -> None:
        before = [n for e in drawing.edges for n in placed if e.target == node.id and n.id == e.source]
        after = [n for e in drawing.edges for n in placed if e.source == node.id and n.id == e.target]
        x, middle = node.x, node.middle
        if before and after and after[0].x - before[0].x - before[0].width >= node.width + _APART:
            x = (before[0].x + before[0].width + after[0].x - node.width) / 2
            middle = before[0].middle
        elif before:
            x, middle = before[0].x + before[0].width + GAP / 2, before[0].middle
        elif after:
            x, middle = after[0].x - node.width - GAP / 2, after[0].middle
        x, y = self._free(node, (x, middle - node.height / 2), placed, frame)
        _shift(node, x - node.x, y - node.y)

    def _free(
        self, node: Node, wish: tuple[float, float], placed: list[Node], frame: Node | None
    ) -> tuple[float, float]:
        """Returns the place nearest to the wish that overlaps nothing, inside the frame where there is room."""
        x, y = wish
        step = node.height + _APART
        places = [(x, y + sign * i * step) for i in range(_TRIES) for sign in ((1, -1) if i else (1,))]
        free = [place for place in places if not any(_overlap(node, place, other) for other in placed)]
        inside = [place for place in free if frame is None or _holds(frame, node, place)]
        lowest = max((n.y + n.height for n in placed), default=y) + _APART
        return (inside or free or [(x, lowest)])[0]

    def _lane(self, drawing: Drawing, source: str, target: str) -> float | None:
        ends = [node for node in drawing.nodes if node.id in (source, target)]
        left, right = min(n.x for n in ends), max(n.x + n.width for n in ends)
        between = [n.y + n.height for n in drawing.nodes if n.x < right and n.x + n.width > left]
        return max(between) + _APART if len(ends) == 2 and abs(ends[0].middle - ends[1].middle) < 1 else None

    def _grow(self, frame: Node, drawing: Drawing) -> None:
        left, top = min(n.x for n in drawing.nodes) - _APART, min(n.y for n in drawing.nodes) - _APART
        right = max(n.x + n.width for n in drawing.nodes) + _APART
        bottom = max(n.y + n.height for n in drawing.nodes) + _APART
        if frame.id in self._known and not any(n.id not in self._known for n in drawing.nodes):
            return
        box = (
            min(frame.x, left),
            min(frame.y, top),
            max(frame.x + frame.width, right),
            max(frame.y + frame.height, bottom),
        )
        new = (box[0], box[1], box[2] - box[0], box[3] - box[1])
        if new != (frame.x, frame.y, frame.width, frame.height):
            if frame.id in self._known:
                self._grown.add(frame.id)
            frame.x, frame.y, frame.width, frame.height = new


def _inside(node: Node) -> list[Node]:
    if node.inner is None:
        return []
    return [found for inner in node.inner.nodes for found in (inner, *_inside(inner))]


def _shift(node: Node, dx: float, dy: float) -> None:
    for each in (node, *_inside(node)):
        each.x, each.y = each.x + dx, each.y + dy


def _overlap(node: Node, place: tuple[float, float], other: Node) -> bool:
    across = place[0] < other.x + other.width + _APART / 2 and other.x < place[0] + node.width + _APART / 2
    return across and place[1] < other.y + other.height and other.y < place[1] + node.height


def _holds(frame: Node, node: Node, place: tuple[float, float]) -> bool:
    across = frame.x <= place[0] and place[0] + node.width <= frame.x + frame.width
    return across and frame.y <= place[1] and place[1] + node.height <= frame.y + frame.height
