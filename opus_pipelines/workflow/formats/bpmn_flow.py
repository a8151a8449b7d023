"""Converts a workflow to BPMN's flow nodes and sequence flows.

Events stand for inputs and outputs, gateways for places where branches split and join. A node with several parents
waits for all of them, and a node with several children starts all of them; this is the meaning of parallel gateways.
"""

from collections import Counter
from dataclasses import dataclass, field

from opus_pipelines.workflow.formats.annotated import CLIENT, AnnotatedWorkflow, Edge
from opus_pipelines.workflow.model import InputNode, OutputNode

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
class Flow:
    """The elements in the order of the workflow's nodes, and the sequence flows as pairs of element ids."""

    nodes: list[FlowNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def flow_of(described: AnnotatedWorkflow) -> Flow:
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


def _with_gateways(nodes: list[FlowNode], links: list[Edge]) -> Flow:
    after, before = Counter(src for src, _ in links), Counter(dst for _, dst in links)
    splits = {n.id for n in nodes if after[n.id] > 1}
    joins = {n.id for n in nodes if before[n.id] > 1 and n.id != END}  # what ends, ends by itself
    flow = Flow()
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
