"""A workflow as BPMN 2.0, written and read back: a pool with a lane for each actor, typed tasks, data and a layout.

The figures of the workflow stand in extensionElements.

Events stand for inputs and outputs, gateways for places where branches split and join. A node with several parents
waits for all of them, and a node with several children starts all of them; this is the meaning of parallel gateways.

A record of `workflow.files` in extensionElements is read back without a loss: single values are attributes; each item
of a list, each entry of a table and each record in a record is an element. BPMN files of other programs are history;
`history/formats/bpmn.py` reads them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import clean, xml_text
from opus_pipelines.core.settings import Section, parse
from opus_pipelines.workflow.bpmn_xml import DC, DI, DIAGRAM, MODEL, bounds, child, line, local, model, parsed, shape
from opus_pipelines.workflow.files import (
    CLIENT,
    AnnotatedWorkflow,
    Edge,
    InputEntry,
    OutputEntry,
    TaskEntry,
    WorkflowFile,
)
from opus_pipelines.workflow.formats.swimlane_layout import Geometry, Size, geometry, grid
from opus_pipelines.workflow.model import InputNode, OutputNode

NAMESPACE = "urn:opus-pipelines:workflow:1"
_LISTS = frozenset({"instructions", "inputs", "outputs"})
_TABLES = frozenset({"consumes", "holds", "usd_per_unit", "usd_per_held"})
_RECORDS = frozenset({"scores", "weights"})


def own(name: str) -> str:
    """Returns an element name in the namespace of this package."""
    return f"{{{NAMESPACE}}}{name}"


def to_xml(name: str, record: Section) -> Any:
    """Returns the record as an element; a value that equals its default is left out."""
    return _element(name, record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))


def from_xml(element: Any) -> dict[str, Any]:
    """Returns the values that `to_xml` was given, as the record's own validation takes them."""
    data: dict[str, Any] = dict(element.attrib)
    for part in element:
        name = etree.QName(part).localname if isinstance(part.tag, str) else ""
        if name in _LISTS:
            data.setdefault(name, []).append(part.text or "")
        elif name in _TABLES:
            data.setdefault(name, {})[part.get("name", "")] = part.text or ""
        elif name in _RECORDS:
            data[name] = from_xml(part)
    return data


def figures(name: str, values: dict[str, Any]) -> Any:
    """Returns an element with the known values as attributes."""
    return _element(name, {key: value for key, value in values.items() if value is not None})


def _element(name: str, data: dict[str, Any]) -> Any:
    element = etree.Element(own(name), nsmap={"opus": NAMESPACE})
    for key, value in data.items():
        if key in _LISTS:
            for item in value:
                etree.SubElement(element, own(key)).text = xml_text(item)
        elif key in _TABLES:
            for entry, amount in value.items():
                etree.SubElement(element, own(key), name=xml_text(entry)).text = repr(amount)
        elif key in _RECORDS:
            element.append(_element(key, value))
        else:
            element.set(key, xml_text(value) if isinstance(value, str) else repr(value))
    return element


@dataclass(frozen=True)
class DataUse:
    """A task that reads or writes some data.

    Every use is drawn next to its node, so that no line crosses the whole picture.
    """

    node: str
    name: str
    is_input: bool
    object: str
    number: int

    @property
    def reference(self) -> str:
        """The id of the drawn data object."""
        return f"data_{self.number}"

    @property
    def end(self) -> str:
        """The id of the data inside the task."""
        return f"data_{self.number}_end"

    @property
    def association(self) -> str:
        """The id of the line between the two."""
        return f"data_{self.number}_line"


def data_uses(described: AnnotatedWorkflow) -> list[DataUse]:
    """Returns every use of data, by node in the order of the flow; data of one name are one object."""
    objects: dict[str, str] = {}
    uses: list[DataUse] = []
    for node, name, is_input in _named(described):
        ident = objects.setdefault(name, f"object_{len(objects) + 1}")
        uses.append(DataUse(node, name, is_input, ident, len(uses) + 1))
    return uses


def _named(described: AnnotatedWorkflow) -> Iterator[tuple[str, str, bool]]:
    for node in described.workflow.topological():
        if task := described.tasks.get(node):
            yield from ((node, name, True) for name in dict.fromkeys(task.inputs))
            yield from ((node, name, False) for name in dict.fromkeys(task.outputs))


TASKS = {"human": "userTask", "model": "serviceTask", "code": "scriptTask"}
START, END = "start", "end"


@dataclass(frozen=True)
class FlowNode:
    """One element of the flow; `node` is the workflow's node, None for gateways and for events that only BPMN needs."""

    id: str
    tag: str
    lane: str
    node: str | None = None
    title: str = ""


@dataclass
class Process:
    """The elements in the order of the workflow's nodes, and the sequence flows as pairs of element ids."""

    nodes: list[FlowNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def process_of(described: AnnotatedWorkflow) -> Process:
    """Returns the flow of a workflow.

    A single input that leads to every first task is the start event; each output is an end event.
    """
    workflow = described.workflow
    ids = {node.id: f"node_{i}" for i, node in enumerate(workflow.nodes, start=1)}
    links = [(ids[src], ids[dst]) for src, dst in workflow.edges]
    first = [n for n in ids if not workflow.predecessors(n)]
    last = [n for n in ids if not workflow.successors(n) and not isinstance(workflow.by_id[n], OutputNode)]
    is_start = len(first) == 1 and isinstance(workflow.by_id[first[0]], InputNode)
    nodes = [
        FlowNode(i, _tag(described, n, is_start), described.lane_of(n), n, described.title_of(n))
        for n, i in ids.items()
    ]
    if not is_start:
        nodes.insert(0, FlowNode(START, "startEvent", CLIENT, title="Start"))
        links += [(START, ids[n]) for n in first]
    if last or not ids:
        nodes.append(FlowNode(END, "endEvent", CLIENT, title="End"))
        links += [(ids[n], END) for n in last] or [(START, END)]
    return _with_gateways(nodes, links)


def _tag(described: AnnotatedWorkflow, node: str, is_start: bool) -> str:
    data = described.workflow.by_id[node]
    if isinstance(data, InputNode):
        return "startEvent" if is_start else "intermediateThrowEvent"
    if isinstance(data, OutputNode):
        return "endEvent"
    return TASKS.get(data.actor_kind or "", "task")


def _with_gateways(nodes: list[FlowNode], links: list[Edge]) -> Process:
    after, before = Counter(src for src, _ in links), Counter(dst for _, dst in links)
    splits = {n.id for n in nodes if after[n.id] > 1}
    joins = {n.id for n in nodes if before[n.id] > 1 and n.id != END}  # what ends, ends by itself
    flow = Process()
    for n in nodes:
        if n.id in joins:
            flow.nodes.append(FlowNode(f"join_{n.id}", "parallelGateway", n.lane))
            flow.edges.append((f"join_{n.id}", n.id))
        flow.nodes.append(n)
        if n.id in splits:
            flow.nodes.append(FlowNode(f"split_{n.id}", "parallelGateway", n.lane))
            flow.edges.append((n.id, f"split_{n.id}"))
    for src, dst in links:
        flow.edges.append((f"split_{src}" if src in splits else src, f"join_{dst}" if dst in joins else dst))
    place = {n.id: i for i, n in enumerate(flow.nodes)}
    flow.edges.sort(key=lambda e: (place[e[0]], place[e[1]]))
    return flow


LEFT, TOP, HEAD, _MARGIN = 60.0, 60.0, 30.0, 30.0
TASK, GATEWAY, EVENT = (120.0, 80.0), (50.0, 50.0), (36.0, 36.0)
DATA, DATA_STEP, DATA_GAP, LABEL = (36.0, 50.0), 88.0, 18.0, 28.0


def _diagram(described: AnnotatedWorkflow, flow: Process, uses: Sequence[DataUse], plane: str, pool: str) -> Any:
    drawing = _Diagram(described, flow, uses)
    root = etree.Element(f"{{{DIAGRAM}}}BPMNDiagram", id="diagram")
    surface = etree.SubElement(root, f"{{{DIAGRAM}}}BPMNPlane", id="plane", bpmnElement=plane)
    shape(surface, pool, drawing.pool, {"isHorizontal": "true"})
    for i, box in enumerate(drawing.lanes, start=1):
        shape(surface, f"lane_{i}", box, {"isHorizontal": "true"})
    for ident, box in drawing.boxes.items():
        drawn = shape(surface, ident, box)
        if (label := drawing.labels.get(ident)) is not None:
            holder = etree.SubElement(drawn, f"{{{DIAGRAM}}}BPMNLabel")
            etree.SubElement(holder, f"{{{DC}}}Bounds", bounds(label))
    for i, edge in enumerate(flow.edges, start=1):
        line(surface, f"flow_{i}", drawing.routes[edge])
    for use in uses:
        line(surface, use.association, drawing.line(use))
    return root


_Box = tuple[float, float, float, float]
_Point = tuple[float, float]


class _Diagram:
    """Every box and line in pixels."""

    def __init__(self, described: AnnotatedWorkflow, flow: Process, uses: Sequence[DataUse]) -> None:
        names = lanes_of(described, flow)
        lane = {n.id: names.index(n.lane) for n in flow.nodes}
        self._element = {n.node: n.id for n in flow.nodes if n.node}
        self._uses: dict[str, list[DataUse]] = {}
        for use in uses:
            self._uses.setdefault(self._element[use.node], []).append(use)
        self._size = {n.id: _size(n.tag, self._uses.get(n.id, [])) for n in flow.nodes}
        order = nx.DiGraph()
        order.add_nodes_from(n.id for n in flow.nodes)
        order.add_edges_from(flow.edges)
        placed = grid(list(nx.topological_sort(order)), flow.edges, lane.__getitem__, len(names))
        self._placed = geometry(placed, flow.edges, self._size)
        self.boxes = {n.id: self._box(n.id) for n in flow.nodes}
        self.labels = {n.id: _below(self.boxes[n.id]) for n in flow.nodes if n.title and n.tag.endswith("Event")}
        for element, mine in self._uses.items():
            self._put_data(element, mine)
        self.routes = {edge: [self._point(p) for p in route] for edge, route in self._placed.routes.items()}
        self.lanes = _lane_boxes(self._placed)
        height = self.lanes[-1][1] + self.lanes[-1][3] - TOP
        self.pool = (LEFT - HEAD, TOP, self.lanes[0][2] + HEAD, height)

    def line(self, use: DataUse) -> list[_Point]:
        """Returns the straight line from the data to its node or back."""
        x, y, width, _ = self.boxes[use.reference]
        nx, ny, nwidth, nheight = self.boxes[self._element[use.node]]
        data = x + width / 2, y
        node = min(max(data[0], nx + 8), nx + nwidth - 8), ny + nheight
        return [data, node] if use.is_input else [node, data]

    def _point(self, place: tuple[float, float]) -> _Point:
        return LEFT + HEAD + _MARGIN + place[0], TOP + place[1]

    def _box(self, ident: str) -> _Box:
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


def _lane_boxes(placed: Geometry) -> list[_Box]:
    width = placed.length + 2 * _MARGIN + HEAD
    return [(LEFT, TOP + begins, width, ends - begins) for begins, ends in placed.lanes]


def _below(box: _Box, width: float = 90.0) -> _Box:
    x, y, own, height = box
    return x + own / 2 - width / 2, y + height + 2, width, LABEL - 2


POOL, PROCESS, COLLABORATION = "pool", "process", "collaboration"
_Entry = InputEntry | TaskEntry | OutputEntry
_PREFIXES = {"bpmn": MODEL, "bpmndi": DIAGRAM, "dc": DC, "di": DI, "opus": NAMESPACE}


def as_bpmn(described: AnnotatedWorkflow) -> bytes:
    """Returns the content of the file; equal workflows give equal bytes.

    Characters that XML cannot hold become U+FFFD.
    """
    flow = process_of(described)
    uses = data_uses(described)
    root = etree.Element(
        model("definitions"), nsmap=_PREFIXES, id="definitions", targetNamespace=NAMESPACE, exporter="opus"
    )
    collaboration = child(root, "collaboration", id=COLLABORATION)
    child(collaboration, "participant", id=POOL, name=clean(described.title), processRef=PROCESS)
    process = child(root, "process", id=PROCESS, name=clean(described.title), isExecutable="false")
    file = described.file
    head = WorkflowFile(title=file.title, weights=file.weights)
    extensions = [to_xml("workflow", head)] + ([figures("made", {"id": described.id})] if described.id else [])
    child(process, "extensionElements").extend(extensions)
    _lanes(process, described, flow)
    entries: dict[str, _Entry] = {entry.id: entry for entry in file.inputs}
    entries |= {entry.id: entry for entry in file.tasks} | {entry.id: entry for entry in file.outputs}
    used = {node: [use for use in uses if use.node == node] for node in entries}
    for node in flow.nodes:
        # BPMN's schema prescribes the order of the children: annotations, sequence flows, data.
        element = child(process, node.tag, id=node.id, **({"name": clean(node.title)} if node.title else {}))
        if (entry := entries.get(node.node or "")) is not None:
            _annotations(element, described, entry)
        _sequence_flows(element, node, flow)
        _data(element, node, used.get(node.node or "", []))
    for name, ident in {use.name: use.object for use in uses}.items():
        child(process, "dataObject", id=ident, name=clean(name))
    for use in uses:
        child(process, "dataObjectReference", id=use.reference, name=clean(use.name), dataObjectRef=use.object)
    for i, (src, dst) in enumerate(flow.edges, start=1):
        child(process, "sequenceFlow", id=f"flow_{i}", sourceRef=src, targetRef=dst)
    root.append(_diagram(described, flow, uses, plane=COLLABORATION, pool=POOL))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _lanes(process: Any, described: AnnotatedWorkflow, flow: Process) -> None:
    lanes = child(process, "laneSet", id="lanes")
    for i, name in enumerate(lanes_of(described, flow), start=1):
        lane = child(lanes, "lane", id=f"lane_{i}", name=clean(name))
        for node in flow.nodes:
            if node.lane == name:
                child(lane, "flowNodeRef").text = node.id


def lanes_of(described: AnnotatedWorkflow, flow: Process) -> list[str]:
    """Returns the lanes in their order.

    The start and end events of BPMN may need the client's lane where the workflow does not.
    """
    known = described.lanes()
    return [*sorted({n.lane for n in flow.nodes} - set(known)), *known]


def _annotations(element: Any, described: AnnotatedWorkflow, entry: _Entry) -> None:
    """Writes what a task is told to do as documentation, and all its figures as extension elements."""
    if isinstance(entry, TaskEntry) and (text := "\n".join(_instructions(entry))):
        child(element, "documentation").text = xml_text(text)
    child(element, "extensionElements").extend(_extensions(described, entry))


def _sequence_flows(element: Any, node: FlowNode, flow: Process) -> None:
    """Writes the sequence flows that enter and leave a node."""
    for name, end in (("incoming", 1), ("outgoing", 0)):
        for i, edge in enumerate(flow.edges, start=1):
            if edge[end] == node.id:
                child(element, name).text = f"flow_{i}"


def _instructions(entry: TaskEntry) -> Iterator[str]:
    """Yields the description of a task, then its instructions step by step."""
    if entry.description:
        yield entry.description
    if len(entry.instructions) == 1:
        yield entry.instructions[0]
    else:
        yield from (f"{i}. {text}" for i, text in enumerate(entry.instructions, start=1))


def _extensions(described: AnnotatedWorkflow, entry: _Entry) -> Iterator[Any]:
    kind = {InputEntry: "input", TaskEntry: "task", OutputEntry: "output"}[type(entry)]
    yield to_xml(kind, entry)
    maps = {name: getattr(described, name).get(entry.id) for name in ("start_ms", "finish_ms", "evidence")}
    if any(value is not None for value in maps.values()):
        yield figures("found", maps | {"origin": described.origins.get(entry.id)})


def _data(element: Any, node: FlowNode, uses: list[DataUse]) -> None:
    """Writes what a task reads and writes; BPMN names both in its ioSpecification and links them to the drawn data."""
    if not uses:
        return
    holder = child(element, "ioSpecification", id=f"{node.id}_io")
    reads, writes = [u for u in uses if u.is_input], [u for u in uses if not u.is_input]
    for name, ends in (("dataInput", reads), ("dataOutput", writes)):
        for use in ends:
            child(holder, name, id=use.end, name=clean(use.name))
    for name, refs, ends in (("inputSet", "dataInputRefs", reads), ("outputSet", "dataOutputRefs", writes)):
        group = child(holder, name)
        for use in ends:
            child(group, refs).text = use.end
    for name, ends in (("dataInputAssociation", reads), ("dataOutputAssociation", writes)):
        for use in ends:
            association = child(element, name, id=use.association)
            source, target = (use.reference, use.end) if use.is_input else (use.end, use.reference)
            child(association, "sourceRef").text = source
            child(association, "targetRef").text = target


_ACTORS = {  # who does a step that a person drew, where its kind of BPMN task tells
    **dict.fromkeys(("task", "serviceTask", "sendTask", "receiveTask", "callActivity", "subProcess")),
    "userTask": "human",
    "manualTask": "human",
    "scriptTask": "code",
    "businessRuleTask": "code",
}
_KINDS = {"input": "inputs", "task": "tasks", "output": "outputs"}


def from_bpmn(content: bytes, name: str) -> WorkflowFile:
    """Reads the workflow of a BPMN file, with the tasks that a person added or renamed in it.

    Flows become edges again. `name` is the name of the file in error messages. Raises InputError or SettingsError.
    """
    try:
        root = parsed(content)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    process = root.find(model("process"))
    head = None if process is None else process.find(f"{model('extensionElements')}/{own('workflow')}")
    if process is None or head is None:
        raise InputError(
            f"{name}: no workflow that `opus export` wrote; other BPMN is history, which `opus rebuild` reads"
        )
    data: dict[str, Any] = from_xml(head)
    nodes: dict[str, str] = {}
    for element in process:
        for kind, table in _KINDS.items():
            entry = element.find(f"{model('extensionElements')}/{own(kind)}")
            if entry is not None:
                record = from_xml(entry)
                data.setdefault(table, []).append(_renamed(record, element) if kind == "task" else record)
                nodes[element.get("id", "")] = entry.get("id", "")
        if element.get("id", "") not in nodes and local(element) in _ACTORS:
            data.setdefault("tasks", []).append(_drawn(element))
            nodes[element.get("id", "")] = element.get("id", "")
    data["edges"] = _edges(process, nodes)
    return parse(WorkflowFile, data, name)


def _drawn(element: Any) -> dict[str, Any]:
    """Returns a task that a person drew: it has a title, its element kind gives the actor, and all else is unknown."""
    ident, actor = element.get("id", ""), _ACTORS[local(element)]
    return {"id": ident, "title": element.get("name") or ident} | ({"actor_kind": actor} if actor else {})


def _renamed(record: dict[str, Any], element: Any) -> dict[str, Any]:
    """Returns the record of a renamed task: it is another task, so the fields of the old one are dropped."""
    name, title = element.get("name"), record.get("title") or record.get("id", "")
    if name is None or clean(name) == clean(title) or record.get("kind") == "review":
        return record
    return {"id": record.get("id", ""), "title": name}


def _edges(process: Any, nodes: dict[str, str]) -> list[tuple[str, str]]:
    """Returns edges from each node to the next nodes; gateways and events without a node are skipped."""
    after = defaultdict(list)
    for flow in process.iter(model("sequenceFlow")):
        after[flow.get("sourceRef")].append(flow.get("targetRef"))
    edges = set()
    for element, node in nodes.items():
        seen, waiting = set(), list(after[element])
        while waiting:
            here = waiting.pop()
            if here in nodes:
                edges.add((node, nodes[here]))
            elif here not in seen:
                seen.add(here)
                waiting += after[here]
    return sorted(edges)
