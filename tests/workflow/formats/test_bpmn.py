"""BPMN: what is written is BPMN 2.0 by its structure, is laid out, comes back as it was, and is read by the reader of
history.
"""

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.bpmn import ProcessFlow
from opus_pipelines.workflow.files import AnnotatedWorkflow, WorkflowFile
from opus_pipelines.workflow.formats.bpmn import as_bpmn, from_bpmn
from opus_pipelines.workflow.formats.registry import read_file
from tests.workflow.formats.conftest import HOSTILE, files, refund

NS = {
    "b": "http://www.omg.org/spec/BPMN/20100524/MODEL",
    "di": "http://www.omg.org/spec/BPMN/20100524/DI",
    "dc": "http://www.omg.org/spec/DD/20100524/DC",
    "w": "http://www.omg.org/spec/DD/20100524/DI",
    "opus": "urn:opus-pipelines:workflow:1",
}
FLOW_NODES = (
    "startEvent",
    "endEvent",
    "intermediateThrowEvent",
    "parallelGateway",
    "task",
    "userTask",
    "serviceTask",
    "scriptTask",
)
# tBaseElement, tFlowNode, tActivity in BPMN's own order of children.
ORDER = (
    "documentation",
    "extensionElements",
    "incoming",
    "outgoing",
    "ioSpecification",
    "dataInputAssociation",
    "dataOutputAssociation",
)
OF_PROCESS = {*FLOW_NODES, "extensionElements", "laneSet", "dataObject", "dataObjectReference", "sequenceFlow"}


def local(element: Any) -> str:
    return etree.QName(element).localname


def defects(content: bytes) -> list[str]:
    """What BPMN 2.0 demands of a file's structure and this one lacks."""
    root = etree.fromstring(content)
    found = [] if root.tag == f"{{{NS['b']}}}definitions" and root.get("targetNamespace") else ["no definitions"]
    found += [f"{local(e)}: namespace" for e in root.iter() if etree.QName(e).namespace not in NS.values()]
    ids = Counter(e.get("id") for e in root.iter() if e.get("id") and etree.QName(e).namespace != NS["opus"])
    found += [f"id {i} twice" for i, n in ids.items() if n > 1]
    (process,) = root.findall("b:process", NS)
    found += [f"{local(e)} in a process" for e in process if local(e) not in OF_PROCESS]
    nodes = {e.get("id"): e for e in process if local(e) in FLOW_NODES}
    flows = {f.get("id"): f for f in process.findall("b:sequenceFlow", NS)}
    for ident, flow in flows.items():
        for end, listed in (("sourceRef", "outgoing"), ("targetRef", "incoming")):
            node = nodes.get(flow.get(end))
            if node is None or ident not in [e.text for e in node.findall(f"b:{listed}", NS)]:
                found.append(f"{ident}: {end}")
    for ident, node in nodes.items():
        names = [local(child) for child in node]
        found += [f"{ident}: order {names}"] if names != sorted(names, key=ORDER.index) else []
        counts = len(node.findall("b:incoming", NS)), len(node.findall("b:outgoing", NS))
        found += [f"{ident}: it starts and has incoming"] if local(node) == "startEvent" and counts[0] else []
        found += [f"{ident}: it ends and has outgoing"] if local(node) == "endEvent" and counts[1] else []
        found += [f"{ident}: nothing leads to it"] if local(node) != "startEvent" and not counts[0] else []
        gateway = local(node) == "parallelGateway"
        found += [f"{ident}: a gateway of {counts}"] if gateway and (min(counts) != 1 or max(counts) < 2) else []
        found += [f"{ident}: {counts[1]} ways out of no gateway"] if not gateway and counts[1] > 1 else []
    found += lanes(process, nodes)
    return found + data(process, ids) + diagram(root, process, nodes, flows)


def lanes(process: Any, nodes: dict[str, Any]) -> list[str]:
    held = Counter(ref.text for ref in process.iterfind(".//b:flowNodeRef", NS))
    return [f"{ident} is in {held[ident]} lanes" for ident in nodes if held[ident] != 1] + [
        f"lane of {i}" for i in held if i not in nodes
    ]


def data(process: Any, ids: Counter[str]) -> list[str]:
    ends = [
        e.text
        for name in ("sourceRef", "targetRef", "dataInputRefs", "dataOutputRefs")
        for e in process.iterfind(f".//b:{name}", NS)
    ]
    ends += [e.get("dataObjectRef") for e in process.findall("b:dataObjectReference", NS)]
    found = [f"no {end}" for end in ends if end not in ids]
    for task in process.iterfind(".//b:ioSpecification", NS):
        if [local(e) for e in task][-2:] != ["inputSet", "outputSet"]:
            found.append("an ioSpecification without its sets")
    return found


def diagram(root: Any, process: Any, nodes: dict[str, Any], flows: dict[str, Any]) -> list[str]:
    (plane,) = root.findall("di:BPMNDiagram/di:BPMNPlane", NS)
    shapes = Counter(s.get("bpmnElement") for s in plane.findall("di:BPMNShape", NS))
    edges = {e.get("bpmnElement"): e.findall("w:waypoint", NS) for e in plane.findall("di:BPMNEdge", NS)}
    drawn = [
        *nodes,
        "pool",
        *(e.get("id") for e in process.iter(f"{{{NS['b']}}}lane", f"{{{NS['b']}}}dataObjectReference")),
    ]
    lines = [
        *flows,
        *(
            e.get("id")
            for e in process.iter(f"{{{NS['b']}}}dataInputAssociation", f"{{{NS['b']}}}dataOutputAssociation")
        ),
    ]
    found = [f"{ident} is drawn {shapes[ident]} times" for ident in drawn if shapes[ident] != 1]
    found += [f"{ident} has no line" for ident in lines if len(edges.get(ident, ())) < 2]
    found += [f"{ident} is drawn and is not there" for ident in {*shapes, *edges} - {*drawn, *lines}]
    boxes = {s.get("bpmnElement"): bounds(s) for s in plane.findall("di:BPMNShape", NS)}
    solid = [(i, boxes[i]) for i in nodes]
    for place, (ident, box) in enumerate(solid):
        found += [f"{ident} and {other} overlap" for other, b in solid[place + 1 :] if overlap(box, b)]
        found += [] if inside(box, boxes["pool"]) else [f"{ident} lies outside the pool"]
    for ident, points in edges.items():
        if ident in flows:
            found += touched(ident, flows[ident], points, boxes, nodes)
    return found


def bounds(shape: Any) -> tuple[float, float, float, float]:
    box = shape.find("dc:Bounds", NS)
    return tuple(float(box.get(name)) for name in ("x", "y", "width", "height"))  # type: ignore[return-value]


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def inside(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return b[0] <= a[0] and b[1] <= a[1] and a[0] + a[2] <= b[0] + b[2] and a[1] + a[3] <= b[1] + b[3]


def touched(ident: str, flow: Any, points: Any, boxes: dict[str, Any], nodes: dict[str, Any]) -> list[str]:
    """A flow begins and ends at its own nodes and passes through no other."""
    at = [(float(p.get("x")), float(p.get("y"))) for p in points]
    ends = {flow.get("sourceRef"): at[0], flow.get("targetRef"): at[-1]}
    found = [
        f"{ident} misses {node}"
        for node, (x, y) in ends.items()
        if node in boxes and not inside((x, y, 0, 0), boxes[node])
    ]
    for (x0, y0), (x1, y1) in pairwise(at):
        found += [f"{ident} is askew"] if x0 != x1 and y0 != y1 else []
        line = (min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
        found += [f"{ident} crosses {n}" for n in nodes if n not in ends and overlap(line, boxes[n])]
    return found


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(files())
def test_every_workflow_is_bpmn_and_comes_back_as_it_was(file: WorkflowFile) -> None:
    content = as_bpmn(AnnotatedWorkflow(file))
    assert defects(content) == []
    back = from_bpmn(content, "x.bpmn")
    assert back.workflow() == file.workflow()
    assert back == file.model_copy(update={"edges": file.workflow().edges})


def test_the_checker_finds_what_is_wrong() -> None:
    content = as_bpmn(refund())
    assert defects(content) == []
    for wrong, said in (
        (content.replace(b'targetRef="node_3"', b'targetRef="node_99"'), "targetRef"),
        (content.replace(b'id="node_4"', b'id="node_3"', 1), "id node_3 twice"),
        (content.replace(b'bpmnElement="flow_1"', b'bpmnElement="flow_01"'), "flow_1 has no line"),
        (content.replace(b"<bpmn:flowNodeRef>node_5</bpmn:flowNodeRef>", b""), "node_5 is in 0 lanes"),
    ):
        assert wrong != content
        assert any(said in d for d in defects(wrong)), said


def test_types_lanes_gateways_and_figures() -> None:
    process = etree.fromstring(as_bpmn(refund())).find("b:process", NS)
    kinds = {e.get("name"): local(e) for e in process if local(e) in FLOW_NODES and e.get("name")}
    assert kinds == {
        "Start": "startEvent",
        "Mail": "intermediateThrowEvent",
        "Order": "intermediateThrowEvent",
        "Read mail": "serviceTask",
        "Refund desk": "scriptTask",
        "Decide": "userTask",
        "Second look": "userTask",
        "Pay": "scriptTask",
        "Log it": "task",
        "Answer": "endEvent",
        "Money": "endEvent",
        "End": "endEvent",
    }
    assert [e.get("name") for e in process.iterfind(".//b:lane", NS)] == [
        "Client",
        "quill-2",
        "Software",
        "Refund team",
        "No role stated",
        "People",
    ]
    assert len(process.findall("b:parallelGateway", NS)) == 6
    (read,) = [e for e in process if e.get("name") == "Read mail"]
    assert read.findtext("b:documentation", None, NS) == "Facts from a mail.\n1. Read it.\n2. Write facts."
    figures = read.find("b:extensionElements/opus:task", NS)
    assert (figures.get("p"), figures.get("cost_usd"), figures.get("duration_ms")) == ("0.95", "0.1", "2000.0")
    assert dict(read.find("b:extensionElements/opus:found", NS).attrib) == {"start_ms": "0.0", "evidence": "231"}
    assert [e.get("name") for e in process.findall("b:dataObject", NS)] == ["mail", "facts", "record"]


def test_one_input_is_the_start_itself(faces: SimpleNamespace) -> None:
    file = WorkflowFile(
        inputs=({"id": "i"},),
        tasks=({"id": "t"},),
        outputs=({"id": "o", "gain_usd": 1},),
        edges=(("i", "t"), ("t", "o")),
    )
    process = etree.fromstring(as_bpmn(AnnotatedWorkflow(file))).find("b:process", NS)
    assert [local(e) for e in process if local(e) in FLOW_NODES] == ["startEvent", "task", "endEvent"]


def test_hostile_titles_are_text() -> None:
    described = refund(HOSTILE)
    content = as_bpmn(described)
    assert b"<script" not in content
    assert from_bpmn(content, "x").title == HOSTILE
    control = AnnotatedWorkflow(described.file.model_copy(update={"title": "a\x00b\x0bc"}))
    assert from_bpmn(as_bpmn(control), "x").title == "a�b�c"


def test_equal_workflows_give_equal_bytes() -> None:
    assert as_bpmn(refund()) == as_bpmn(refund())


def test_the_reader_of_history_reads_it() -> None:
    process = etree.fromstring(as_bpmn(refund())).find("b:process", NS)
    flow = ProcessFlow(process, {})
    tasks = {node["name"]: node for node in flow.nodes if node}
    assert {name: (t.get("actor_kind"), t.get("actor")) for name, t in tasks.items()} == {
        "Read mail": ("code", "quill-2"),
        "Refund desk": ("code", "Software"),
        "Decide": ("human", "Refund team"),
        "Second look": ("human", "People"),
        "Pay": ("code", "Software"),
        "Log it": (None, "No role stated"),
    }
    assert (tasks["Decide"]["inputs"], tasks["Read mail"]["outputs"]) == (["facts", "record"], ["facts"])


DECLARED = b'<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no xml", "the XML is broken"),
        (b"<a/>", "no workflow that `opus export` wrote"),
        (
            f'<definitions xmlns="{NS["b"]}"><process id="p"/></definitions>'.encode(),
            "no workflow that `opus export` wrote",
        ),
        (DECLARED + b"<d>&b;</d>", "document type"),
        (as_bpmn(refund()).replace(b'p="0.95"', b'p="9.5"'), "less than or equal to 1"),
        (as_bpmn(refund()).replace(b'p="0.95"', b'pp="0.95"'), "unknown key"),
    ],
    ids=["text", "other", "foreign", "entities", "a wrong figure", "an unknown key"],
)
def test_what_is_not_ours_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as found:
        from_bpmn(content, "w.bpmn")
    assert "w.bpmn" in str(found.value)


def test_opus_score_reads_it(tmp_path: Any) -> None:
    (tmp_path / "w.bpmn").write_bytes(as_bpmn(refund()))
    assert read_file(tmp_path / "w.bpmn").workflow() == refund().workflow
    with pytest.raises(InputError, match="no such file"):
        read_file(tmp_path / "none.bpmn")


def test_what_a_person_draws_or_renames_is_read_and_nothing_is_lost() -> None:
    text = as_bpmn(refund()).decode()
    root = etree.fromstring(text.encode())
    (process,) = root.findall("b:process", NS)
    pay = next(e for e in process if e.get("name") == "Pay")
    pay.set("name", "Call the client")
    new = etree.SubElement(process, f"{{{NS['b']}}}manualTask", id="Activity_1", name="File the letter")
    etree.SubElement(
        process, f"{{{NS['b']}}}sequenceFlow", id="Flow_1", sourceRef=pay.get("id"), targetRef=new.get("id")
    )
    file = from_bpmn(etree.tostring(root), "drawn.bpmn")
    tasks = {task.id: task for task in file.tasks}
    assert (tasks["Activity_1"].title, tasks["Activity_1"].actor_kind) == ("File the letter", "human")
    assert (tasks["d"].title, tasks["d"].actor_kind, tasks["d"].task_id) == ("Call the client", None, None)
    assert ("d", "Activity_1") in file.edges
    assert tasks["a"] == refund().tasks["a"]
