"""Lays out a BPMN file (BPMN DI): a pool from left to right with lanes below each other."""

from collections.abc import Sequence
from typing import Any

from lxml import etree

from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow
from opus_pipelines.workflow.formats.bpmn_fields import DC, DI, DIAGRAM, DataUse
from opus_pipelines.workflow.formats.bpmn_flow import Flow
from opus_pipelines.workflow.formats.swimlane_layout import Geometry, Size, geometry, grid

LEFT, TOP, HEAD, END = 60.0, 60.0, 30.0, 30.0
TASK, GATEWAY, EVENT = (120.0, 80.0), (50.0, 50.0), (36.0, 36.0)
DATA, DATA_STEP, DATA_GAP, LABEL = (36.0, 50.0), 88.0, 18.0, 28.0


def diagram(described: AnnotatedWorkflow, flow: Flow, uses: Sequence[DataUse], plane: str, pool: str) -> Any:
    """Returns the BPMNDiagram element."""
    drawing = _Diagram(described, flow, uses)
    root = etree.Element(_di("BPMNDiagram"), id="diagram")
    surface = etree.SubElement(root, _di("BPMNPlane"), id="plane", bpmnElement=plane)
    _shape(surface, pool, drawing.pool, isHorizontal="true")
    for i, box in enumerate(drawing.lanes, start=1):
        _shape(surface, f"lane_{i}", box, isHorizontal="true")
    for ident, box in drawing.boxes.items():
        _shape(surface, ident, box, label=drawing.labels.get(ident))
    for i, edge in enumerate(flow.edges, start=1):
        _edge(surface, f"flow_{i}", drawing.routes[edge])
    for use in uses:
        _edge(surface, use.association, drawing.line(use))
    return root


Box = tuple[float, float, float, float]
Point = tuple[float, float]


class _Diagram:
    """Every box and line in pixels."""

    def __init__(self, described: AnnotatedWorkflow, flow: Flow, uses: Sequence[DataUse]) -> None:
        names = [*sorted({n.lane for n in flow.nodes} - set(described.lanes())), *described.lanes()]
        lane = {n.id: names.index(n.lane) for n in flow.nodes}
        self._element = {n.node: n.id for n in flow.nodes if n.node}
        self._uses: dict[str, list[DataUse]] = {}
        for use in uses:
            self._uses.setdefault(self._element[use.node], []).append(use)
        self._size = {n.id: _size(n.tag, self._uses.get(n.id, [])) for n in flow.nodes}
        placed = grid(_order(flow), flow.edges, lane.__getitem__, len(names))
        self._placed = geometry(placed, flow.edges, self._size)
        self.boxes = {n.id: self._box(n.id) for n in flow.nodes}
        self.labels = {n.id: _below(self.boxes[n.id]) for n in flow.nodes if n.title and n.tag.endswith("Event")}
        for element, mine in self._uses.items():
            self._put_data(element, mine)
        self.routes = {edge: [self._point(p) for p in route] for edge, route in self._placed.routes.items()}
        self.lanes = _lanes(self._placed)
        height = self.lanes[-1][1] + self.lanes[-1][3] - TOP
        self.pool = (LEFT - HEAD, TOP, self.lanes[0][2] + HEAD, height)

    def line(self, use: DataUse) -> list[Point]:
        """Returns the straight line from the data to its node or back."""
        x, y, width, _ = self.boxes[use.reference]
        nx, ny, nwidth, nheight = self.boxes[self._element[use.node]]
        data = x + width / 2, y
        node = min(max(data[0], nx + 8), nx + nwidth - 8), ny + nheight
        return [data, node] if use.is_input else [node, data]

    def _point(self, place: tuple[float, float]) -> Point:
        return LEFT + HEAD + END + place[0], TOP + place[1]

    def _box(self, ident: str) -> Box:
        x, y = self._point(self._placed.middle[ident])
        size = self._size[ident]
        return x - size.along / 2, y - size.across / 2, size.along, size.across

    def _put_data(self, element: str, uses: Sequence[DataUse]) -> None:
        x, y, width, height = self.boxes[element]
        first = x + width / 2 - DATA_STEP * (len(uses) - 1) / 2 - DATA[0] / 2
        top = y + height + DATA_GAP
        for i, use in enumerate(uses):
            self.boxes[use.reference] = (first + DATA_STEP * i, top, *DATA)
            self.labels[use.reference] = _below(self.boxes[use.reference], DATA_STEP)


def _size(tag: str, uses: Sequence[DataUse]) -> Size:
    along, across = GATEWAY if tag.endswith("Gateway") else EVENT if tag.endswith("Event") else TASK
    if tag.endswith("Event"):
        return Size(along, across, behind=LABEL, room=90.0)
    return Size(along, across, behind=DATA_GAP + DATA[1] + LABEL if uses else 0.0, room=DATA_STEP * len(uses))


def _order(flow: Flow) -> list[str]:
    """Returns the elements, each behind those that lead to it."""
    waiting = {n.id: 0 for n in flow.nodes}
    for _, dst in flow.edges:
        waiting[dst] += 1
    order = [i for i, n in waiting.items() if not n]
    for ident in order:
        for src, dst in flow.edges:
            if src == ident:
                waiting[dst] -= 1
                if not waiting[dst]:
                    order.append(dst)
    return order


def _lanes(placed: Geometry) -> list[Box]:
    width = placed.length + 2 * END + HEAD
    return [(LEFT, TOP + begins, width, ends - begins) for begins, ends in placed.lanes]


def _below(box: Box, width: float = 90.0) -> Box:
    x, y, own, height = box
    return x + own / 2 - width / 2, y + height + 2, width, LABEL - 2


def _shape(surface: Any, ident: str, box: Box, label: Box | None = None, **attributes: str) -> None:
    shape = etree.SubElement(surface, _di("BPMNShape"), {"id": f"{ident}_shape", "bpmnElement": ident, **attributes})
    _bounds(shape, box)
    if label is not None:
        _bounds(etree.SubElement(shape, _di("BPMNLabel")), label)


def _bounds(holder: Any, box: Box) -> None:
    values = zip(("x", "y", "width", "height"), map(_number, box), strict=True)
    etree.SubElement(holder, f"{{{DC}}}Bounds", dict(values))


def _edge(surface: Any, ident: str, points: Sequence[Point]) -> None:
    line = etree.SubElement(surface, _di("BPMNEdge"), id=f"{ident}_edge", bpmnElement=ident)
    for x, y in points:
        etree.SubElement(line, f"{{{DI}}}waypoint", x=_number(x), y=_number(y))


def _di(name: str) -> str:
    return f"{{{DIAGRAM}}}{name}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
