"""Puts an edited flow into the BPMN file that it was read from: Diff2BPMN (Flow-Bench, arXiv 2505.11646).

Elements that no edit touches stay byte for byte, with their ids, attributes and layout. Touched are the elements that
come, go or change, the flows at their ends, and loops that have to grow.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from opus_pipelines.core.formatting import xml_text
from opus_pipelines.workflow.blocks.drawing import (
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
from opus_pipelines.workflow.blocks.expressions import Expression, FlowError
from opus_pipelines.workflow.blocks.formats import bpmn_writer as text
from opus_pipelines.workflow.blocks.formats.bpmn_reader import CALLS, OPUS, PEOPLE, ZEEBE, BpmnFlow, read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import Style
from opus_pipelines.workflow.blocks.model import Call, Flow, For, If, Statement, UserTask, While, identified, walk
from opus_pipelines.workflow.bpmn_xml import DIAGRAM, MODEL

_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*(/?)>")


@dataclass
class Element:
    """One element: its place in the file, the end of its opening tag, and what is in it."""

    uri: str
    name: str
    attributes: dict[str, str]
    begin: int
    head_end: int
    empty: bool
    parent: "Element | None"
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its id; an empty text where it has none."""
        return self.attributes.get("id", "")

    @property
    def owner(self) -> str:
        """The id of the process or sub-process that it is in."""
        return "" if self.parent is None else self.parent.id

    def own(self, name: str) -> list["Element"]:
        """Returns its children of BPMN's model with this name."""
        return [child for child in self.children if child.name == name and child.uri == MODEL]


class Scan:
    """A file: elements of the model by id, shapes and lines by the id that they show, and what is to be changed."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.model: dict[str, Element] = {}
        self.shown: dict[str, Element] = {}
        self.plane: Element | None = None
        self.root: Element | None = None
        self._stack: list[Element] = []
        self._edits: list[tuple[int, int, bytes]] = []
        self._removed: list[Element] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = lambda name, attributes: self._start(parser.CurrentByteIndex, name, attributes)
        parser.EndElementHandler = lambda name: self._end(parser.CurrentByteIndex)
        parser.StartDoctypeDeclHandler = _no_doctype
        parser.XmlDeclHandler = _only_utf8
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise FlowError(
                f"the XML is broken: {expat.ErrorString(error.code)}", error.lineno, error.offset + 1
            ) from None

    def _start(self, begin: int, name: str, attributes: dict[str, str]) -> None:
        tag = _TAG.match(self.content, begin)
        if tag is None:
            raise FlowError("a tag cannot be read", self.content[:begin].count(b"\n") + 1)
        uri, _, local = name.rpartition(" ")
        element = Element(
            uri, local, attributes, begin, tag.end(), bool(tag[1]), self._stack[-1] if self._stack else None
        )
        if element.parent is None:
            self.root = element
        else:
            element.parent.children.append(element)
        if uri == MODEL and element.id:
            self.model[element.id] = element
        if uri == DIAGRAM and "bpmnElement" in attributes and local != "BPMNPlane":
            self.shown[attributes["bpmnElement"]] = element
        if local == "BPMNPlane":
            self.plane = element
        self._stack.append(element)

    def _end(self, at: int) -> None:
        element = self._stack.pop()
        element.end = element.head_end if element.empty else self.content.index(b">", at) + 1

    def style(self) -> Style:
        """Returns the prefixes of the file and whether its nodes list their flows."""
        refs = any(e.own("incoming") or e.own("outgoing") for e in self.model.values())
        return Style(
            model=self._prefix(self.root),
            diagram=self._prefix(self.plane) if self.plane else "bpmndi:",
            bounds=self._prefix(self._drawn("Bounds")) if self._drawn("Bounds") else "dc:",
            line=self._prefix(self._drawn("waypoint")) if self._drawn("waypoint") else "di:",
            refs=refs,
            camunda=ZEEBE.encode() in self.content,
        )

    def _drawn(self, name: str) -> Element | None:
        return next((c for e in self.shown.values() for c in e.children if c.name == name), None)

    def _prefix(self, element: Element | None) -> str:
        tag = b"" if element is None else self.content[element.begin + 1 : element.head_end]
        name = re.split(rb"[\s/>]", tag, maxsplit=1)[0]
        return name[: name.index(b":") + 1].decode() if b":" in name else ""

    def ids(self) -> set[str]:
        """Returns every id of the file, of shapes and lines too."""
        found, waiting = set[str](), [self.root] if self.root else []
        while waiting:
            element = waiting.pop()
            found.add(element.id)
            waiting += element.children
        return found

    def boxes(self) -> dict[str, Box]:
        """Returns the box of every element that has a shape: left, top, width, height."""
        found = {}
        for ident, element in self.shown.items():
            for child in element.children:
                if child.name == "Bounds":
                    x, y, w, h = (float(child.attributes.get(key, 0)) for key in ("x", "y", "width", "height"))
                    found[ident] = x, y, w, h
        return found

    def replace(self, begin: int, end: int, text: str) -> None:
        """Notes that the bytes from `begin` to `end` become this text."""
        self._edits.append((begin, end, text.encode()))

    def insert_into(self, element: Element, text: str, before_artifacts: bool = False) -> None:
        """Notes a text that goes to the end of an element, or before its first annotation."""
        names = ("textAnnotation", "association", "group")
        first = next((c for c in element.children if c.name in names), None) if before_artifacts else None
        at = self._line_start(first.begin) if first else self._line_start(self.content.rindex(b"<", 0, element.end))
        self.replace(at, at, text)

    def insert_before(self, element: Element, lines: list[str]) -> None:
        """Notes elements that go before an element, each on a line of its own where that is."""
        at = self._line_start(element.begin)
        indent = self.content[at : element.begin].decode()
        end = "\n" if at < element.begin or self.content[at - 1 : at] == b"\n" else ""
        self.replace(at, at, "".join(f"{indent}{line}{end}" for line in lines))

    def remove(self, element: Element) -> None:
        """Notes that an element goes, with the blanks before it."""
        self._removed.append(element)

    def _line_start(self, at: int) -> int:
        """Returns the place behind the last line break before `at` where only blanks stand between."""
        begin = at
        while begin and self.content[begin - 1 : begin] in (b" ", b"\t"):
            begin -= 1
        return begin if self.content[begin - 1 : begin] == b"\n" else at

    def _span(self, element: Element) -> tuple[int, int]:
        begin = self._line_start(element.begin)
        if begin < element.begin or self.content[begin - 1 : begin] == b"\n":
            after = element.end
            if self.content[after : after + 2] == b"\r\n":
                return begin, after + 2
            if self.content[after : after + 1] == b"\n":
                return begin, after + 1
        return element.begin, element.end

    def text(self, element: Element) -> str:
        """Returns an element as it will be, with the changes inside it."""
        return self._changed(element.begin, element.end, element).decode()

    def changed(self) -> bytes:
        """Returns the whole file with all changes."""
        return self._changed(0, len(self.content), None)

    def _changed(self, begin: int, end: int, itself: Element | None) -> bytes:
        gone = [self._span(e) for e in self._removed if e is not itself]
        gone = [span for span in gone if begin <= span[0] and span[1] <= end]
        gone = [span for span in gone if not any(_within(span, other) for other in gone if other != span)]
        changes = [(b, e, text) for b, e, text in self._edits if begin <= b and e <= end]
        changes = [c for c in changes if not any(_within((c[0], c[1]), span) for span in gone)]
        pieces, at = [], begin
        for b, e, new in sorted([*changes, *((b, e, b"") for b, e in dict.fromkeys(gone))], key=_order):
            pieces += [self.content[at:b], new]
            at = max(at, e)
        return b"".join([*pieces, self.content[at:end]])


def _order(change: tuple[int, int, bytes]) -> tuple[int, int]:
    return change[0], change[1]


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    if inner[0] == inner[1]:
        return outer[0] < inner[0] < outer[1]
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _no_doctype(*_: object) -> None:
    raise FlowError("a BPMN file has no document type; remove the <!DOCTYPE …>")


def _only_utf8(version: str, encoding: str | None, standalone: int) -> None:
    if encoding is not None and encoding.casefold() not in ("utf-8", "utf8", "us-ascii"):
        raise FlowError(f"the file is in {encoding}; only UTF-8 files can be changed in place")


def joined(lines: Iterable[str]) -> str:
    """Returns lines as text with a line break behind each."""
    return "".join(f"{line}\n" for line in lines)


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
        for drawing in drawings(self._drawing):
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
        nodes = {n.id for d in drawings(self._drawing) for n in d.nodes}
        edges = {e.id for d in drawings(self._drawing) for e in d.edges}
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

    def _node(self, element: Element, node: DrawnNode, drawing: Drawing) -> None:
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

    def _step(self, element: Element, node: DrawnNode, old: Statement | None) -> None:
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

    def _loop(self, element: Element, node: DrawnNode) -> None:
        """Gives a loop another header: its annotation and its characteristics."""
        style, indent = self._style, self._indent(element) + "  "
        for name in ("multiInstanceLoopCharacteristics", "standardLoopCharacteristics"):
            for child in element.own(name):
                self._scan.replace(child.begin, child.end, "\n".join(text.loop(node, style, indent)).strip())
        note = self._scan.model.get(node.note[0])
        for child in note.own("text") if note else ():
            self._scan.replace(child.begin, child.end, text.note_text(node, style))

    def _refs(self, element: Element, node: DrawnNode, edges: list[DrawnEdge]) -> None:
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

    def _edge(self, element: Element, edge: DrawnEdge) -> None:
        """Changes a flow whose label or condition is stated and is another now."""
        label, conditions = element.attributes.get("name", ""), element.own("conditionExpression")
        found = self._scan.content[conditions[0].head_end : conditions[0].end].decode() if conditions else ""
        stated = found.rpartition("</")[0].strip()
        wanted = escape(text.condition_text(edge, self._style))
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
        for drawing in drawings(self._drawing):
            places = {node.id: node for node in drawing.nodes}
            for node in drawing.nodes:
                if node.id not in scan.shown:
                    lines += text.shape(node, style, indent)
                if node.kind == "loop" and node.note[0] not in scan.shown:
                    lines += text.note_shape(node, style, indent)
            for edge in drawing.edges:
                if edge.id not in scan.shown:
                    lines += text.line(edge, waypoints(edge, places), style, indent)
        scan.insert_into(scan.plane, joined(lines))

    def _resize(self, ident: str) -> None:
        node = next(n for d in drawings(self._drawing) for n in d.nodes if n.id == ident)
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
