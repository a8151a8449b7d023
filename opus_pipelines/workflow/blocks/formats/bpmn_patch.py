"""Puts an edited flow into the BPMN file that it was read from: Diff2BPMN (Flow-Bench, arXiv 2505.11646).

Elements that no edit touches stay byte for byte, with their ids, attributes and layout. Touched are the elements that
come, go or change, the flows at their ends, and loops that have to grow.
"""

import re
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from opus_pipelines.core.safe_text import xml_text
from opus_pipelines.workflow.blocks.drawing import Drawing, Edge, Node, draw, step_name
from opus_pipelines.workflow.blocks.expressions import Expression
from opus_pipelines.workflow.blocks.formats import bpmn_text as text
from opus_pipelines.workflow.blocks.formats.bpmn_reader import CALLS, OPUS, PEOPLE, BpmnFlow, read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_scan import Element, Scan, joined
from opus_pipelines.workflow.blocks.model import Call, Flow, For, If, Statement, UserTask, While
from opus_pipelines.workflow.blocks.placement import place
from opus_pipelines.workflow.blocks.traversal import identified, walk


def patched_bpmn(content: bytes, flow: Flow, duplicate: bool = False) -> bytes:
    """Returns the BPMN file with the flow in place of its own, which must have been read from it and edited.

    Statements are recognised by id. Raises FlowError where the file cannot be read or is not UTF-8.
    """
    prior = read_bpmn(content, duplicate=duplicate)
    return _Patch(Scan(content), prior, identified(flow)).done()


class _Patch:
    def __init__(self, scan: Scan, prior: BpmnFlow, flow: Flow) -> None:
        self._scan, self._style = scan, scan.style()
        self._old = {s.id: s for s in walk(prior.flow.body)}
        self._conditions = _conditions(prior.flow)
        self._names = prior.names
        names = prior.names | {f"#{i}": ident for i, ident in enumerate(sorted(scan.ids() - set(prior.names.values())))}
        gateways = {s.id for s in walk(flow.body) if isinstance(s, While) and self._is_gateway(s.id)}
        self._drawing = draw(flow, names, loops_as_gateways=True if self._style.camunda else frozenset(gateways))
        self._kept: dict[str, str] = {}
        self._moved: list[tuple[Element, Drawing | None]] = []

    def _is_gateway(self, ident: str) -> bool:
        return ident in self._scan.model and self._scan.model[ident].name == "exclusiveGateway"

    def done(self) -> bytes:
        old_edges = {
            (e.attributes.get("sourceRef", ""), e.attributes.get("targetRef", "")): e.id
            for e in self._scan.model.values()
            if e.name == "sequenceFlow"
        }
        for drawing in text.drawings(self._drawing):
            for edge in drawing.edges:
                edge.id = old_edges.get((edge.source, edge.target), edge.id)
        grown = place(self._drawing, self._scan.boxes())
        self._remove_old()
        process = next(
            e for e in self._scan.model.values() if e.id == self._scan.model[self._drawing.nodes[0].id].owner
        )
        self._container(self._drawing, process.id, inserted=False)
        for element, inner in reversed(self._moved):  # what moves into another moved element comes after it
            if inner is not None:
                self._insert(inner, element)
            self._kept[element.id] = self._scan.text(element)
        self._insert(self._drawing, process)
        self._draw_new(process.id)
        for ident in grown:
            self._resize(ident)
        return self._scan.changed()

    def _remove_old(self) -> None:
        """Removes the nodes, flows and annotations that the new flow does not have, with their shapes."""
        nodes = {n.id for d in text.drawings(self._drawing) for n in d.nodes}
        edges = {e.id for d in text.drawings(self._drawing) for e in d.edges}
        gone = {ident for key, ident in self._names.items() if key == ident and ident not in nodes}
        gone |= {i for k, i in self._names.items() if k.endswith((".text", ".link")) and k.rpartition(".")[0] in gone}
        model = self._scan.model.values()
        gone |= {e.id for e in model if e.name == "sequenceFlow" and e.id not in edges}
        ends = ("sourceRef", "targetRef")
        gone |= {e.id for e in model if e.name == "association" and any(e.attributes.get(k) in gone for k in ends)}
        for ident in gone & self._scan.model.keys():
            self._scan.remove(self._scan.model[ident])
            if ident in self._scan.shown:
                self._scan.remove(self._scan.shown[ident])

    def _container(self, drawing: Drawing, owner: str, inserted: bool) -> None:
        """Changes what stays of a container; `inserted`: the container is new, so that what is in it moves into it."""
        for node in drawing.nodes:
            element = self._scan.model.get(node.id)
            if element is not None:
                self._node(element, node, drawing)
            if element is not None and (inserted or element.owner != owner):
                self._move(element, node.inner)
                for note in node.note:
                    if note in self._scan.model:
                        self._move(self._scan.model[note], None)
            if node.inner is not None:
                self._container(node.inner, node.id, inserted=element is None)
        late = self._out_of_order(drawing)
        for edge in drawing.edges:
            element = self._scan.model.get(edge.id)
            if element is not None:
                self._edge(element, edge)
                if inserted or element.owner != owner or edge.id in late:
                    self._move(element, None)

    def _out_of_order(self, drawing: Drawing) -> set[str]:
        """Returns the flows of parallel branches that a branch before them would follow in the file.

        A reader takes the order of the branches from the order of the flows.
        """
        late: set[str] = set()
        for fork in (node for node in drawing.nodes if node.kind == "fork"):
            last, moves = -1, False
            for edge in (edge for edge in drawing.edges if edge.source == fork.id):
                element = self._scan.model.get(edge.id)
                moves = moves or element is None or element.begin < last
                if element is not None:
                    last = element.begin
                    late |= {edge.id} if moves else set()
        return late

    def _move(self, element: Element, inner: Drawing | None) -> None:
        self._scan.remove(element)
        self._moved.append((element, inner))

    def _node(self, element: Element, node: Node, drawing: Drawing) -> None:
        kind = "user_task" if element.name in PEOPLE else "call" if element.name in CALLS else node.kind
        if kind != node.kind:
            lines = text.element(node, drawing.edges, self._style, "")
            self._scan.replace(element.begin, element.end, "\n".join(lines))
            return
        old = self._old.get(node.id)
        if isinstance(node.statement, Call | UserTask) and node.statement != old:
            self._step(element, node, old)
        elif node.kind == "decision" and self._conditions.get(node.id) != node.condition:
            self._attribute(element, "name", node.name)
        elif isinstance(node.statement, For | While) and _header(node.statement) != _header(old):
            self._loop(element, node)
        if element.attributes.get("default") and self._scan.model.get(element.attributes["default"]):
            default = next((e.id for e in drawing.edges if e.source == node.id and e.label == "no"), "")
            if default != element.attributes["default"]:
                self._attribute(element, "default", default)
        self._refs(element, node, drawing.edges)

    def _attribute(self, element: Element, name: str, value: str) -> None:
        """Gives an attribute another value, adds it, or removes it where the value is empty."""
        head = self._scan.content[element.begin : element.head_end]
        written = f" {name}={quoteattr(xml_text(value))}" if value else ""
        found = re.search(rb"\s+" + name.encode() + rb"\s*=\s*(\"[^\"]*\"|'[^']*')", head)
        close = re.search(rb"\s*/?>$", head)
        begin, end = found.span() if found else (close.start(), close.start()) if close else (len(head), len(head))
        self._scan.replace(element.begin + begin, element.begin + end, written)

    def _step(self, element: Element, node: Node, old: Statement | None) -> None:
        if not isinstance(old, Call | UserTask) or step_name(old) != node.name:
            self._attribute(element, "name", node.name)
        stated = [s for e in element.own("extensionElements") for s in e.children if s.uri == OPUS and s.name == "step"]
        if stated:
            self._scan.replace(stated[0].begin, stated[0].end, text.step_text(node))
        elif not element.own("extensionElements"):
            indent = self._indent(element) + "  "
            inside = f"\n{indent}<{self._style.model}extensionElements>{text.step_text(node)}"
            inside += f"</{self._style.model}extensionElements>"
            self._inside(element, inside)

    def _inside(self, element: Element, inside: str) -> None:
        """Puts a text behind the opening tag of an element, which is opened where it was empty."""
        if not element.empty:
            self._scan.replace(element.head_end, element.head_end, inside)
            return
        name = re.match(rb"<([^\s/>]+)", self._scan.content[element.begin : element.head_end])
        slash = self._scan.content.rindex(b"/", element.begin, element.head_end)
        while self._scan.content[slash - 1 : slash] == b" ":
            slash -= 1
        tag = name[1].decode() if name else ""
        self._scan.replace(slash, element.head_end, f">{inside}\n{self._indent(element)}</{tag}>")

    def _indent(self, element: Element) -> str:
        begin = self._scan.content.rfind(b"\n", 0, element.begin) + 1
        before = self._scan.content[begin : element.begin]
        return before.decode() if not before.strip() else ""

    def _loop(self, element: Element, node: Node) -> None:
        """Gives a loop another header: its annotation and its characteristics."""
        style, indent = self._style, self._indent(element) + "  "
        for name in ("multiInstanceLoopCharacteristics", "standardLoopCharacteristics"):
            for child in element.own(name):
                self._scan.replace(child.begin, child.end, "\n".join(text.loop(node, style, indent)).strip())
        note = self._scan.model.get(node.note[0])
        for child in note.own("text") if note else ():
            self._scan.replace(child.begin, child.end, text.note_text(node, style))

    def _refs(self, element: Element, node: Node, edges: list[Edge]) -> None:
        """Takes the flows that go out of the lists of a node, and adds the new ones where the node has lists."""
        new: list[str] = []
        last: Element | None = None
        for name, mine in (("incoming", "target"), ("outgoing", "source")):
            wanted = [edge.id for edge in edges if getattr(edge, mine) == node.id]
            for child in element.own(name):
                ident = re.sub(rb"<[^>]*>", b"", self._scan.content[child.begin : child.end]).decode().strip()
                last = child
                if ident not in wanted:
                    self._scan.remove(child)
            added = [ident for ident in wanted if ident not in self._scan.model]
            new += [f"<{self._style.model}{name}>{ident}</{self._style.model}{name}>" for ident in added]
        if last is not None and new:
            self._scan.insert_before(last, new)

    def _edge(self, element: Element, edge: Edge) -> None:
        """Changes a flow whose label or condition is stated and is another now."""
        label, conditions = element.attributes.get("name", ""), element.own("conditionExpression")
        found = self._scan.content[conditions[0].head_end : conditions[0].end].decode() if conditions else ""
        stated = found.rpartition("</")[0].strip()
        wanted = text.escaped(text.condition_text(edge, self._style))
        if (label and label.casefold() != edge.label) or (conditions and stated != wanted):
            lines = list(text.sequence_flow(edge, self._style, self._indent(element)))
            self._scan.replace(element.begin, element.end, "\n".join(lines).lstrip())

    def _insert(self, drawing: Drawing, owner: Element) -> None:
        """Inserts what is new or moved into the containers that stay."""
        indent = self._indent(owner) + "  "
        self._scan.insert_into(owner, joined(self._new(drawing, owner, indent)), before_artifacts=True)
        notes = [n for n in drawing.nodes if n.note[0] in self._kept or n.note[0] not in self._scan.model]
        self._scan.insert_into(
            owner, joined(line for node in notes for line in text.annotation(node, self._style, indent, self._kept))
        )
        for node in drawing.nodes:
            if node.inner is not None and node.id in self._scan.model and node.id not in self._kept:
                self._insert(node.inner, self._scan.model[node.id])

    def _new(self, drawing: Drawing, owner: Element, indent: str) -> Iterator[str]:
        for node in drawing.nodes:
            if node.id not in self._scan.model:
                yield from text.element(node, drawing.edges, self._style, indent, self._kept)
            elif node.id in self._kept:
                yield indent + self._kept[node.id]
        for edge in drawing.edges:
            if edge.id in self._kept:
                yield indent + self._kept[edge.id]
            elif edge.id not in self._scan.model:
                yield from text.sequence_flow(edge, self._style, indent)

    def _draw_new(self, process: str) -> None:
        """Draws what has no shape or line yet."""
        scan, style = self._scan, self._style
        if scan.plane is None:
            if scan.root is not None:
                scan.insert_into(scan.root, joined(text.diagram(self._drawing, style, process, "  ", declare=True)))
            return
        indent = self._indent(scan.plane) + "  "
        lines: list[str] = []
        for drawing in text.drawings(self._drawing):
            places = {node.id: node for node in drawing.nodes}
            for node in drawing.nodes:
                if node.id not in scan.shown:
                    lines += text.shape(node, style, indent)
                if node.kind == "loop" and node.note[0] not in scan.shown:
                    lines += text.note_shape(node, style, indent)
            for edge in drawing.edges:
                if edge.id not in scan.shown:
                    lines += text.line(edge, text.waypoints(edge, places), style, indent)
        scan.insert_into(scan.plane, joined(lines))

    def _resize(self, ident: str) -> None:
        node = next(n for d in text.drawings(self._drawing) for n in d.nodes if n.id == ident)
        for child in self._scan.shown[ident].children:
            if child.name == "Bounds":
                lines = list(text.shape(node, self._style, ""))
                self._scan.replace(child.begin, child.end, lines[1].strip())


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
