"""Algorithm 1 of LWM: it joins the dags of all sequences and the edges of the WKG between them."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.lwm.merging.sequence_dag import Dag
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.model import INPUT, OUTPUT

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class WfgNode:
    """One node; `task_id` is None for input and output, `sequence_ids` are the sequences that hold it, sorted."""

    node: str
    task_id: str | None
    origin: str
    sequence_ids: tuple[str, ...]


@dataclass(frozen=True)
class WfgEdge:
    """One directed edge; γ is None, 1 - γ is 1 and transitions are 0 where the WKG has no such edge."""

    src: str
    dst: str
    origin: str
    gamma: float | None
    one_minus_gamma: float
    transitions: int
    sequence_ids: tuple[str, ...]


@dataclass
class WFG:
    """The Workflow Graph, LWM (10), with one input and one output; nodes and edges are sorted by id.

    It may hold cycles (spec B).
    """

    nodes: dict[str, WfgNode] = field(default_factory=dict)
    edges: dict[tuple[str, str], WfgEdge] = field(default_factory=dict)


def workflow_graph(dags: Mapping[str, Dag], graph: WorkGraph, origin: str = "history") -> WFG:
    """Return the WFG of the dags by sequence id, LWM Algorithm 1.

    Nodes and edges of a dag have `origin` (a node that the WKG lacks: `new`), the edges of the WKG between dags
    `algorithm1`. An edge of a dag keeps its origin. The input leads to the first tasks of each dag, and the last
    tasks lead to the output. Raises WorkflowError where there are no dags.
    """
    if not dags:
        raise WorkflowError("no sequences: a Workflow Graph needs at least one")
    nodes: dict[str, set[str]] = defaultdict(set)
    edges: dict[tuple[str, str], set[str]] = defaultdict(set)
    for sequence, dag in dags.items():
        _add(nodes, [INPUT, OUTPUT, *dag.nodes], sequence)
        ends = [(INPUT, n) for n in dag.first] + [(n, OUTPUT) for n in dag.last]
        _add(edges, [*dag.edges, *ends], sequence)
    crossing = {pair for pair in _crossing(dags, graph) if pair not in edges}
    origins = {pair: "algorithm1" if pair in crossing else origin for pair in sorted(crossing | edges.keys())}
    return WFG(
        {n: _node(n, graph, origin, nodes[n]) for n in sorted(nodes)},
        {pair: _edge(pair, graph, kind, edges.get(pair, set())) for pair, kind in origins.items()},
    )


def _crossing(dags: Mapping[str, Dag], graph: WorkGraph) -> set[tuple[str, str]]:
    """Return the edges of the WKG from a task of one dag to a task of another: the loop of Algorithm 1."""
    members: dict[str, set[str]] = defaultdict(set)
    for sequence, dag in dags.items():
        _add(members, [n for n in dag.nodes if n in graph.tasks], sequence)
    return {
        (v, x)
        for v, own in members.items()
        for x in graph.successors.get(v, ())
        # x lies in a dag other than one that holds v: not so only where both lie in one and the same dag alone
        if members.get(x) and (len(own) > 1 or members[x] != own)
    }


def _add(into: dict[T, set[str]], keys: Iterable[T], sequence: str) -> None:
    for key in keys:
        into[key].add(sequence)


def _node(node: str, graph: WorkGraph, origin: str, sequences: set[str]) -> WfgNode:
    if node in (INPUT, OUTPUT):
        return WfgNode(node, None, origin, tuple(sorted(sequences)))
    return WfgNode(node, node, origin if node in graph.tasks else "new", tuple(sorted(sequences)))


def _edge(pair: tuple[str, str], graph: WorkGraph, origin: str, sequences: set[str]) -> WfgEdge:
    known, (src, dst), sequence_ids = graph.edges.get(pair), pair, tuple(sorted(sequences))
    if known is None:
        return WfgEdge(src, dst, origin, None, 1.0, 0, sequence_ids)
    return WfgEdge(src, dst, origin, known.gamma, known.one_minus_gamma, known.transitions, sequence_ids)
