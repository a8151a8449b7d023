"""Writes flows as BPMN 2.0 with a layout, and puts an edited flow into the file that it was read from: Diff2BPMN.

Diff2BPMN is that of Flow-Bench (arXiv 2505.11646). Elements that no edit touches keep their ids, their attributes and
their places. Touched are the elements that come, go or change, the flows at their ends, and loops that have to grow.
A new file is an empty one into which a flow is put.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from opus_pipelines.core.formatting import xml_text
from opus_pipelines.workflow.blocks.drawing import (
    GAP,
    NOTE,
    Box,
    Drawing,
    DrawnEdge,
    DrawnNode,
    draw,
    drawings,
    place,
    step_name,
    waypoints,
)
from opus_pipelines.workflow.blocks.expressions import FEEL, Expression, write_dialect
from opus_pipelines.workflow.blocks.formats.bpmn_reader import (
    CALLS,
    OPUS,
    PEOPLE,
    ZEEBE,
    BpmnFlow,
    flow_of_bpmn,
    root_of,
)
from opus_pipelines.workflow.blocks.formats.python_ir import write_condition
from opus_pipelines.workflow.blocks.model import Call, Flow, For, If, Statement, UserTask, While, identified, walk
from opus_pipelines.workflow.bpmn_xml import DC, DI, DIAGRAM, MODEL, bounds, child, children, line, local, model, shape

XSI = "http://www.w3.org/2001/XMLSchema-instance"
MODELER = "http://camunda.org/schema/modeler/1.0"
_PREFIXES = {"bpmn": MODEL, "bpmndi": DIAGRAM, "dc": DC, "di": DI, "xsi": XSI}
_TAGS = {
    "start": "startEvent",
    "end": "endEvent",
    "call": "task",
    "user_task": "userTask",
    "decision": "exclusiveGateway",
    "merge": "exclusiveGateway",
    "fork": "parallelGateway",
    "join": "parallelGateway",
    "loop": "subProcess",
}
_EVENTS = {"start": "Start", "end": "End"}
_REFS = {"incoming": "target", "outgoing": "source"}
_MARKED = ("decision", "merge")
_ARTIFACTS = frozenset(("textAnnotation", "association", "group"))
_BEFORE_REFS = frozenset(("documentation", "extensionElements"))


def write_bpmn(flow: Flow, names: Mapping[str, str] | None = None, camunda: bool = False) -> bytes:
    """Returns the flow as a BPMN 2.0 file with a layout; equal flows with equal ids give equal bytes.

    Every statement needs an id (`traversal.identified`). `names` as `bpmn_reader` returns them keeps the ids of a file.
    `camunda`: for Camunda 8, with its attributes (zeebe), FEEL conditions, and gateways in place of standard loops.
    """
    spaces = _PREFIXES | ({"zeebe": ZEEBE, "modeler": MODELER} if camunda else {})
    root: Any = etree.Element(model("definitions"), nsmap=spaces, id="Definitions_1", targetNamespace=OPUS)
    root.set("exporter", "opus")
    if camunda:
        root.set(f"{{{MODELER}}}executionPlatform", "Camunda Cloud")
        root.set(f"{{{MODELER}}}executionPlatformVersion", "8.5.0")
    process = child(root, "process", id="Process_1")
    if flow.name:
        process.set("name", xml_text(flow.name))
    process.set("isExecutable", "true" if camunda else "false")
    drawing = draw(flow, names, loops_as_gateways=camunda)
    _Writer(root, Style(camunda=camunda)).put(drawing, process)
    etree.indent(root)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8") + b"\n"


def patched_bpmn(content: bytes, flow: Flow, duplicate: bool = False) -> bytes:
    """Returns the BPMN file with the flow in place of its own, which must have been read from it and edited.

    Statements are recognised by id. Raises FlowError where the file cannot be read.
    """
    root = root_of(content)
    prior = flow_of_bpmn(root, duplicate=duplicate)
    if flow == prior.flow:
        return content
    is_indented = "\n" in (root.text or "")
    style = Style(
        refs=any(True for _ in root.iter(model("incoming"), model("outgoing"))), camunda=ZEEBE.encode() in content
    )
    writer = _Writer(root, style, prior)
    writer.put(writer.drawn(identified(flow)), writer.process())
    if is_indented:
        etree.indent(root)
    return etree.tostring(root.getroottree(), xml_declaration=content.startswith(b"<?xml"), encoding="UTF-8") + b"\n"


@dataclass(frozen=True)
class Style:
    """Whether the nodes of a file list their flows, and whether Camunda's attributes are written."""

    refs: bool = True
    camunda: bool = False


class _Writer:
    """Writes a drawing into the XML of a BPMN file. `prior` is the flow that was read from it, None in a new file."""

    def __init__(self, root: Any, style: Style, prior: BpmnFlow | None = None) -> None:
        self._root, self._style, self._names = root, style, prior.names if prior else {}
        self._old = {s.id: s for s in walk(prior.flow.body)} if prior else {}
        self._conditions = _conditions(prior.flow) if prior else {}
        self._model = {e.get("id"): e for e in root.iter(f"{{{MODEL}}}*") if e.get("id")}
        shown = root.iter(f"{{{DIAGRAM}}}BPMNShape", f"{{{DIAGRAM}}}BPMNEdge")
        self._shown: dict[str, Any] = {e.get("bpmnElement"): e for e in shown}
        self._prefix = next((f"{p}:" if p else "" for p, uri in root.nsmap.items() if uri == MODEL), "")

    def process(self) -> Any:
        """Returns the process that the flow was read from."""
        return self._model[self._names["start"]].getparent()

    def drawn(self, flow: Flow) -> Drawing:
        """Returns the flow as a drawing with the ids of the file."""
        others = {e.get("id") for e in self._root.iter("*") if e.get("id")} - set(self._names.values())
        names = self._names | {f"#{i}": ident for i, ident in enumerate(sorted(others))}
        loops = [s.id for s in walk(flow.body) if isinstance(s, While) and s.id in self._model]
        gateways = frozenset(ident for ident in loops if local(self._model[ident]) == "exclusiveGateway")
        drawing = draw(flow, names, loops_as_gateways=self._style.camunda or gateways)
        flows = self._root.iter(model("sequenceFlow"))
        by_ends = {(e.get("sourceRef", ""), e.get("targetRef", "")): e.get("id", "") for e in flows}
        for edge in (edge for each in drawings(drawing) for edge in each.edges):
            edge.id = by_ends.get((edge.source, edge.target), edge.id)
        return drawing

    def put(self, drawing: Drawing, process: Any) -> None:
        """Makes the process say what the drawing says, and draws what has no place yet."""
        grown = place(drawing, self._boxes()) if self._names else set()
        self._container(drawing, process)
        self._remove_old(drawing)
        self._draw_new(drawing, process)
        for node in (node for each in drawings(drawing) for node in each.nodes if node.id in grown):
            self._shown[node.id].find(f"{{{DC}}}Bounds").attrib.update(bounds(_box(node)))

    def _boxes(self) -> dict[str, Box]:
        """Returns the box of every element that has a shape: left, top, width, height."""
        found = {}
        for ident, drawn in self._shown.items():
            if (held := drawn.find(f"{{{DC}}}Bounds")) is not None:
                x, y, width, height = (float(held.get(key, 0)) for key in ("x", "y", "width", "height"))
                found[ident] = x, y, width, height
        return found

    def _remove_old(self, drawing: Drawing) -> None:
        """Removes the nodes, flows and annotations that the new flow does not have, with their shapes."""
        nodes = {n.id for d in drawings(drawing) for n in d.nodes}
        edges = {e.id for d in drawings(drawing) for e in d.edges}
        gone = {ident for key, ident in self._names.items() if key == ident and ident not in nodes}
        gone |= {i for k, i in self._names.items() if k.endswith((".text", ".link")) and k.rpartition(".")[0] in gone}
        gone |= {i for i, e in self._model.items() if local(e) == "sequenceFlow" and i not in edges}
        links = {i: e for i, e in self._model.items() if local(e) == "association"}
        gone |= {i for i, e in links.items() if {e.get("sourceRef"), e.get("targetRef")} & gone}
        for element in (known[ident] for ident in gone for known in (self._model, self._shown) if ident in known):
            if element.getparent() is not None:
                element.getparent().remove(element)

    def _container(self, drawing: Drawing, owner: Any) -> None:
        """Makes a process or a sub-process say what the drawing says: nodes, flows, then annotations."""
        for node in drawing.nodes:
            element = self._model.get(node.id)
            if element is None:
                element = self._new_node(node)
            elif node.id in self._names.values():
                element = self._changed(element, node, drawing.edges)
            self._refer(element, node, drawing.edges)
            self._move(element, owner)
            if node.inner is not None:
                self._container(node.inner, element)
        for edge in drawing.edges:
            element = self._model.get(edge.id)
            new = self._new_flow(edge) if element is None or self._says_other(element, edge) else element
            if element is not None and new is not element:
                element.getparent().replace(element, new)
            self._move(new, owner)
        self._order_branches(drawing, owner)
        for node in (node for node in drawing.nodes if node.kind == "loop"):
            text, link = (self._model.get(ident) for ident in node.note)
            if text is None:
                text = child(owner, "textAnnotation", id=node.note[0])
                child(text, "text").text = xml_text(node.step)
                link = child(owner, "association", id=node.note[1], sourceRef=node.id, targetRef=node.note[0])
            for element in (text, link):
                if element is not None and element.getparent() is not owner:
                    owner.append(element)

    def _move(self, element: Any, owner: Any, anew: bool = False) -> None:
        """Puts an element before the annotations of its owner, where it is not in it yet."""
        if element.getparent() is not owner or anew:
            first = next((part for part in owner if local(part) in _ARTIFACTS), None)
            owner.append(element) if first is None else first.addprevious(element)
        self._model[element.get("id")] = element

    def _order_branches(self, drawing: Drawing, owner: Any) -> None:
        """Puts the flows of parallel branches in the order of the branches, which a reader takes from the file."""
        for fork in (node.id for node in drawing.nodes if node.kind == "fork"):
            flows = [self._model[edge.id] for edge in drawing.edges if edge.source == fork]
            places = [owner.index(flow) for flow in flows]
            if places != sorted(places):
                for flow in flows:
                    self._move(flow, owner, anew=True)

    # --- nodes

    def _new_node(self, node: DrawnNode) -> Any:
        """Returns the element of a node, for a loop without what is inside."""
        tag = "serviceTask" if self._style.camunda and node.kind == "call" else _TAGS[node.kind]
        element = etree.SubElement(self._root, model(tag), id=node.id)
        if name := node.name or _EVENTS.get(node.kind, ""):
            element.set("name", xml_text(name))
        if node.kind in ("call", "user_task"):
            extension = child(element, "extensionElements")
            if self._style.camunda:
                _zeebe(extension, node.statement)
            _state_step(extension, node)
        if node.kind == "loop":
            self._characteristics(element, node)
        return element

    def _changed(self, element: Any, node: DrawnNode, edges: list[DrawnEdge]) -> Any:
        """Changes the element of a node that stays; returns another one where it is of another kind now."""
        kind = "user_task" if local(element) in PEOPLE else "call" if local(element) in CALLS else node.kind
        if kind != node.kind:
            new = self._new_node(node)
            element.getparent().replace(element, new)
            return new
        old, statement = self._old.get(node.id), node.statement
        if isinstance(statement, Call | UserTask) and statement != old:
            if not isinstance(old, Call | UserTask) or step_name(old) != node.name:
                _set(element, "name", node.name)
            extension = next(children(element, "extensionElements"), None)
            if extension is None:
                extension = etree.Element(model("extensionElements"))
                element.insert(sum(1 for _ in children(element, "documentation")), extension)
            _state_step(extension, node)
        elif node.kind == "decision" and self._conditions.get(node.id) != node.condition:
            _set(element, "name", node.name)
        elif isinstance(statement, For | While) and _header(statement) != _header(old):
            self._characteristics(element, node)
            for text in children(self._model[node.note[0]], "text") if node.note[0] in self._model else ():
                text.text = xml_text(node.step)
        return element

    def _refer(self, element: Any, node: DrawnNode, edges: list[DrawnEdge]) -> None:
        """States the flows of a node: the one that is taken where no condition holds, and those in and out."""
        flows = {name: [e.id for e in edges if getattr(e, end) == node.id] for name, end in _REFS.items()}
        default = next((e.id for e in edges if e.source == node.id and e.label == "no"), "")
        if node.id not in self._names.values() or element.get("default") in self._model:
            _set(element, "default", default)
        stated = list(children(element, *_REFS))
        said = {name: [(e.text or "").strip() for e in stated if local(e) == name] for name in _REFS}
        if self._style.refs and any(sorted(said[name]) != sorted(flows[name]) for name in _REFS):
            for old in stated:
                element.remove(old)
            at = sum(1 for _ in children(element, *_BEFORE_REFS))
            for name, ident in reversed([(name, ident) for name, idents in flows.items() for ident in idents]):
                new = etree.Element(model(name))
                new.text = ident
                element.insert(at, new)

    def _characteristics(self, element: Any, node: DrawnNode) -> None:
        """Makes a sub-process the loop of the node's statement: a for or a while."""
        header = node.statement
        for old in list(children(element, "multiInstanceLoopCharacteristics", "standardLoopCharacteristics")):
            element.remove(old)
        new: Any = None
        if isinstance(header, For):
            new = etree.Element(model("multiInstanceLoopCharacteristics"), isSequential="true")
            if self._style.camunda:
                items = {"inputCollection": _feel(header.iterable), "inputElement": header.variable}
                etree.SubElement(child(new, "extensionElements"), f"{{{ZEEBE}}}loopCharacteristics", items)
        elif isinstance(header, While):
            new = etree.Element(model("standardLoopCharacteristics"), testBefore="true")
            self._formal(new, "loopCondition", write_condition(header.condition))
        if new is not None:
            element.insert(sum(1 for _ in children(element, *_BEFORE_REFS, *_REFS)), new)

    # --- flows

    def _new_flow(self, edge: DrawnEdge) -> Any:
        element = etree.SubElement(self._root, model("sequenceFlow"), id=edge.id)
        if edge.label:
            element.set("name", edge.label)
        element.set("sourceRef", edge.source)
        element.set("targetRef", edge.target)
        if edge.condition is not None:
            self._formal(element, "conditionExpression", self._condition(edge))
        return element

    def _says_other(self, element: Any, edge: DrawnEdge) -> bool:
        """Returns whether a flow states a label or a condition that is another now."""
        conditions = list(children(element, "conditionExpression"))
        stated = "".join(conditions[0].itertext()).strip() if conditions else ""
        label = element.get("name", "")
        return bool(label and label.casefold() != edge.label) or bool(conditions and stated != self._condition(edge))

    def _condition(self, edge: DrawnEdge) -> str:
        if edge.condition is None:
            return ""
        return _feel(edge.condition) if self._style.camunda else write_condition(edge.condition)

    def _formal(self, parent: Any, name: str, text: str) -> None:
        kind = {f"{{{XSI}}}type": f"{self._prefix}tFormalExpression"}
        etree.SubElement(parent, model(name), kind, nsmap={"xsi": XSI}).text = xml_text(text)

    # --- the picture

    def _draw_new(self, drawing: Drawing, process: Any) -> None:
        """Draws what has no shape or line yet."""
        plane = next(self._root.iter(f"{{{DIAGRAM}}}BPMNPlane"), None)
        if plane is None:
            spaces = {"bpmndi": DIAGRAM, "dc": DC, "di": DI}
            holder = etree.SubElement(self._root, f"{{{DIAGRAM}}}BPMNDiagram", id="BPMNDiagram_1", nsmap=spaces)
            plane = etree.SubElement(holder, f"{{{DIAGRAM}}}BPMNPlane", id="BPMNPlane_1")
            plane.set("bpmnElement", process.get("id", ""))
        for each in drawings(drawing):
            for node in each.nodes:
                if node.id not in self._shown:
                    _draw_node(plane, node)
                if node.kind == "loop" and node.note[0] not in self._shown:
                    shape(plane, node.note[0], (node.x + GAP, node.y - 1.75 * NOTE, 200, NOTE))
                    line(plane, node.note[1], [(node.x + GAP, node.y), (node.x + GAP, node.y - 0.75 * NOTE)])
            places = {node.id: node for node in each.nodes}
            for edge in each.edges:
                if edge.id not in self._shown:
                    line(plane, edge.id, waypoints(edge, places))


def _set(element: Any, name: str, value: str) -> None:
    """Gives an attribute a value, or removes it where the value is empty."""
    element.attrib.pop(name, None) if not value else element.set(name, xml_text(value))


def _state_step(extension: Any, node: DrawnNode) -> None:
    """States the step of a task, which holds what a name cannot: variable, arguments, odd characters."""
    stated = extension.find(f"{{{OPUS}}}step")
    if stated is None:
        stated = etree.SubElement(extension, f"{{{OPUS}}}step", nsmap={"opus": OPUS})
    stated.text = node.step


def _zeebe(extension: Any, step: Statement | None) -> None:
    if isinstance(step, Call):
        etree.SubElement(extension, f"{{{ZEEBE}}}taskDefinition", type=xml_text(step.activity))
    else:
        etree.SubElement(extension, f"{{{ZEEBE}}}userTask")
    mapping = etree.SubElement(extension, f"{{{ZEEBE}}}ioMapping")
    for name, value in step.arguments if isinstance(step, Call) else ():
        etree.SubElement(mapping, f"{{{ZEEBE}}}input", source=_feel(value), target=name)
    etree.SubElement(mapping, f"{{{ZEEBE}}}output", source="=result", target=getattr(step, "variable", ""))


def _feel(value: Expression) -> str:
    return "=" + write_dialect(value, FEEL)


def _draw_node(plane: Any, node: DrawnNode) -> None:
    expanded = {"isExpanded": "true"} if node.kind == "loop" else {}
    shape(plane, node.id, _box(node), expanded or ({"isMarkerVisible": "true"} if node.kind in _MARKED else {}))


def _box(node: DrawnNode) -> Box:
    return node.x, node.y, node.width, node.height


def _conditions(flow: Flow) -> dict[str, Expression]:
    """The condition of each decision: by the id of its branch, or of its while."""
    found: dict[str, Expression] = {}
    for statement in walk(flow.body):
        if isinstance(statement, If):
            found |= {branch.id: branch.condition for branch in statement.branches}
        elif isinstance(statement, While):
            found[statement.id] = statement.condition
    return found


def _header(loop: Statement | None) -> tuple[str, Expression | None]:
    if isinstance(loop, For):
        return loop.variable, loop.iterable
    return "", loop.condition if isinstance(loop, While) else None
