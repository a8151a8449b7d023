"""The Workflow Graph: the dags of sequences, and Algorithm 1 that joins them.

A sequence is its dag_s of LWM (10): a chain, in which a task waits for the one before it, or a partial order. Algorithm
1 joins the dags of all sequences and the edges of the WKG between them. Algorithm 2 of the paper, which joins the
components of a disconnected graph with similar tasks, changed no workflow of five sets, and is left out.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.model import INPUT, OUTPUT

ALGORITHM_1 = "algorithm1"  # the origin of the edges of the WKG between dags


@dataclass(frozen=True)
class Dag:
    """V_dag_s and E_dag_s; the nodes are task ids in the order of the sequence."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> list[str]:
        """Return the nodes without a predecessor."""
        targets = {dst for _, dst in self.edges}
        return [n for n in self.nodes if n not in targets]

    @property
    def last(self) -> list[str]:
        """Return the nodes without a successor."""
        sources = {src for src, _ in self.edges}
        return [n for n in self.nodes if n not in sources]


def chain(sequence: Sequence[str]) -> Dag:
    """Return the chain of the sequence's tasks, each at its first occurrence.

    A loop is planned once: history repeats a task because it failed, and the cost of a failure is in p, q and the
    figures of the task. Raises WorkflowError for a sequence without tasks.
    """
    tasks = tuple(dict.fromkeys(sequence))
    if not tasks:
        raise WorkflowError("a sequence without tasks makes no dag: leave it out")
    return Dag(tasks, tuple(itertools.pairwise(tasks)))


def linear_extensions(sequence: Sequence[str], waits: Collection[tuple[str, str]]) -> Dag:
    """Return the tasks with an edge for every two that can be direct neighbours in an order that keeps `waits`.

    `waits` are pairs (a, b) such that b waits for a; only pairs in the order of the sequence count. A path through all
    tasks exists for every order that keeps them, the sequence itself included, so two tasks of which neither waits for
    the other have edges in both directions. Raises WorkflowError for a sequence without tasks.
    """
    tasks = chain(sequence).nodes
    place = {task: n for n, task in enumerate(tasks)}
    after = {task: set[str]() for task in tasks}
    for a, b in waits:
        if a in place and b in place and place[a] < place[b]:
            after[a].add(b)
    for task in reversed(tasks):  # the transitive closure: a task is also before what waits for its followers
        after[task] |= set[str]().union(*(after[later] for later in after[task]))
    edges = [
        (a, b)
        for a in tasks
        for b in tasks
        if a != b and a not in after[b] and not any(b in after[between] for between in after[a])
    ]
    return Dag(tasks, tuple(edges))


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
    origins = {pair: ALGORITHM_1 if pair in crossing else origin for pair in sorted(crossing | edges.keys())}
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
