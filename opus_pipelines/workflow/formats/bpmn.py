"""Writes a workflow as BPMN 2.0: one pool with a lane for each actor, typed tasks, data objects and a layout.

The figures of the workflow stand in extensionElements.
"""

from collections.abc import Iterator
from typing import Any

from lxml import etree

from opus_pipelines.core.safe_text import clean, xml_text
from opus_pipelines.workflow.files import InputEntry, OutputEntry, TaskEntry, WorkflowFile
from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow
from opus_pipelines.workflow.formats.bpmn_diagram import diagram
from opus_pipelines.workflow.formats.bpmn_fields import (
    DC,
    DI,
    DIAGRAM,
    MODEL,
    OPUS,
    DataUse,
    bpmn,
    data_uses,
    figures,
    to_xml,
)
from opus_pipelines.workflow.formats.bpmn_flow import Flow, FlowNode, flow_of

POOL, PROCESS, COLLABORATION = "pool", "process", "collaboration"
_Entry = InputEntry | TaskEntry | OutputEntry
_PREFIXES = {"bpmn": MODEL, "bpmndi": DIAGRAM, "dc": DC, "di": DI, "opus": OPUS}


def as_bpmn(described: AnnotatedWorkflow) -> bytes:
    """Returns the content of the file; equal workflows give equal bytes.

    Characters that XML cannot hold become U+FFFD.
    """
    flow = flow_of(described)
    uses = data_uses(described)
    root = etree.Element(bpmn("definitions"), nsmap=_PREFIXES, id="definitions", targetNamespace=OPUS, exporter="opus")
    collaboration = _child(root, "collaboration", id=COLLABORATION)
    _child(collaboration, "participant", id=POOL, name=clean(described.title), processRef=PROCESS)
    process = _child(root, "process", id=PROCESS, name=clean(described.title), isExecutable="false")
    file = described.file
    head = WorkflowFile(title=file.title, weights=file.weights)
    extensions = [to_xml("workflow", head)] + ([figures("made", {"id": described.id})] if described.id else [])
    _child(process, "extensionElements").extend(extensions)
    _lanes(process, described, flow)
    entries: dict[str, _Entry] = {entry.id: entry for entry in file.inputs}
    entries |= {entry.id: entry for entry in file.tasks} | {entry.id: entry for entry in file.outputs}
    used = {node: [use for use in uses if use.node == node] for node in entries}
    for node in flow.nodes:
        # BPMN's schema prescribes the order of the children: annotations, sequence flows, data.
        element = _child(process, node.tag, id=node.id, **({"name": clean(node.title)} if node.title else {}))
        if (entry := entries.get(node.node or "")) is not None:
            _annotations(element, described, entry)
        _sequence_flows(element, node, flow)
        _data(element, node, used.get(node.node or "", []))
    for name, ident in {use.name: use.object for use in uses}.items():
        _child(process, "dataObject", id=ident, name=clean(name))
    for use in uses:
        _child(process, "dataObjectReference", id=use.reference, name=clean(use.name), dataObjectRef=use.object)
    for i, (src, dst) in enumerate(flow.edges, start=1):
        _child(process, "sequenceFlow", id=f"flow_{i}", sourceRef=src, targetRef=dst)
    root.append(diagram(described, flow, uses, plane=COLLABORATION, pool=POOL))
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _child(parent: Any, name: str, /, **attributes: str) -> Any:
    return etree.SubElement(parent, bpmn(name), attributes)


def _lanes(process: Any, described: AnnotatedWorkflow, flow: Flow) -> None:
    lanes = _child(process, "laneSet", id="lanes")
    for i, name in enumerate(lanes_of(described, flow), start=1):
        lane = _child(lanes, "lane", id=f"lane_{i}", name=clean(name))
        for node in flow.nodes:
            if node.lane == name:
                _child(lane, "flowNodeRef").text = node.id


def lanes_of(described: AnnotatedWorkflow, flow: Flow) -> list[str]:
    """Returns the lanes in their order.

    The start and end events of BPMN may need the client's lane where the workflow does not.
    """
    known = described.lanes()
    return [*sorted({n.lane for n in flow.nodes} - set(known)), *known]


def _annotations(element: Any, described: AnnotatedWorkflow, entry: _Entry) -> None:
    """Writes what a task is told to do as documentation, and all its figures as extension elements."""
    if isinstance(entry, TaskEntry) and (text := "\n".join(_instructions(entry))):
        _child(element, "documentation").text = xml_text(text)
    _child(element, "extensionElements").extend(_extensions(described, entry))


def _sequence_flows(element: Any, node: FlowNode, flow: Flow) -> None:
    """Writes the sequence flows that enter and leave a node."""
    for i, (_, dst) in enumerate(flow.edges, start=1):
        if dst == node.id:
            _child(element, "incoming").text = f"flow_{i}"
    for i, (src, _) in enumerate(flow.edges, start=1):
        if src == node.id:
            _child(element, "outgoing").text = f"flow_{i}"


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
    holder = _child(element, "ioSpecification", id=f"{node.id}_io")
    reads, writes = [u for u in uses if u.is_input], [u for u in uses if not u.is_input]
    _ends(holder, "dataInput", reads)
    _ends(holder, "dataOutput", writes)
    _set(holder, "inputSet", "dataInputRefs", reads)
    _set(holder, "outputSet", "dataOutputRefs", writes)
    _associations(element, reads, writes)


def _ends(holder: Any, name: str, uses: list[DataUse]) -> None:
    for use in uses:
        _child(holder, name, id=use.end, name=clean(use.name))


def _set(holder: Any, name: str, refs: str, uses: list[DataUse]) -> None:
    element = _child(holder, name)
    for use in uses:
        _child(element, refs).text = use.end


def _associations(element: Any, reads: list[DataUse], writes: list[DataUse]) -> None:
    for name, uses in (("dataInputAssociation", reads), ("dataOutputAssociation", writes)):
        for use in uses:
            association = _child(element, name, id=use.association)
            _child(association, "sourceRef").text = use.reference if use.is_input else use.end
            _child(association, "targetRef").text = use.end if use.is_input else use.reference
