"""Between flows and the stochastic workflows W = (G, Φ) of this product: structure goes both ways.

The tasks of a workflow become a sequence with parallels where its graph is series-parallel. Otherwise tasks that can
start together run together, and each order that this adds is told. Tasks of people become user tasks.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from opus_pipelines.workflow.blocks.expressions import FlowError, is_name
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, Parallel, Statement, UserTask
from opus_pipelines.workflow.blocks.traversal import identified
from opus_pipelines.workflow.files import TaskEntry, WorkflowFile
from opus_pipelines.workflow.model import TaskNode, Workflow

Graph = dict[str, frozenset[str]]


class FlowOfWorkflow(NamedTuple):
    """A flow and what it does not say of its workflow, each a sentence."""

    flow: Flow
    losses: list[str]


def flow_of(workflow: Workflow, title: str = "") -> FlowOfWorkflow:
    """Returns the workflow as a flow; the ids of its statements are those of its tasks, variables are their names."""
    tasks = {node.id: node for node in workflow.tasks}
    graph = _reduced(_task_graph(workflow, tasks))
    writer = _Writer(tasks)
    block = writer.block(graph)
    flow = identified(Flow(block, title))
    added = _order(block) - _closure(graph)
    losses = [f"{a} comes before {b} in the flow; the workflow lets them overlap" for a, b in sorted(added)]
    if tasks:
        losses.append("probabilities, costs, durations and resources of the tasks are left out")
    if workflow.inputs or workflow.outputs:
        losses.append("inputs and outputs of the client are left out")
    return FlowOfWorkflow(flow, losses)


def workflow_of(flow: Flow) -> WorkflowFile:
    """Returns a flow of calls, user tasks and parallels as a workflow file.

    Raises FlowError naming the first step that a workflow cannot have: an if or a loop.
    """
    flow = identified(flow)
    tasks: list[TaskEntry] = []
    edges: list[tuple[str, str]] = []
    _write(flow.body, frozenset(), tasks, edges)
    return WorkflowFile(title=flow.name or None, tasks=tuple(tasks), edges=tuple(sorted(set(edges))))


def _write(
    block: Block, before: frozenset[str], tasks: list[TaskEntry], edges: list[tuple[str, str]]
) -> frozenset[str]:
    for statement in block:
        if isinstance(statement, Parallel):
            before = frozenset().union(*(_write(branch, before, tasks, edges) for branch in statement.branches))
        elif isinstance(statement, Call | UserTask):
            title = statement.activity if isinstance(statement, Call) else statement.text
            actor = {"actor_kind": "human"} if isinstance(statement, UserTask) else {}
            tasks.append(TaskEntry(id=statement.id, title=title or statement.id, **actor))
            edges += [(node, statement.id) for node in sorted(before)]
            before = frozenset((statement.id,))
        else:
            kind = type(statement).__name__.lower()
            raise FlowError(f"step {statement.id} is {kind}; a workflow has neither decisions nor loops")
    return before


def _task_graph(workflow: Workflow, tasks: dict[str, TaskNode]) -> Graph:
    return {
        node: frozenset(n for n in workflow.successors(node) if n in tasks)
        for node in workflow.topological()
        if node in tasks
    }


def _reach(graph: Graph) -> Graph:
    """Every node with all nodes after it."""
    found: Graph = {}
    for node in reversed(_topological(graph)):
        found[node] = graph[node].union(*(found[n] for n in graph[node]))
    return found


def _topological(graph: Graph) -> list[str]:
    waiting = {node: sum(node in after for after in graph.values()) for node in graph}
    order = [node for node, n in waiting.items() if not n]
    for node in order:
        for after in sorted(graph[node]):
            waiting[after] -= 1
            if not waiting[after]:
                order.append(after)
    return order


def _closure(graph: Graph) -> set[tuple[str, str]]:
    return {(node, after) for node, all_after in _reach(graph).items() for after in all_after}


def _reduced(graph: Graph) -> Graph:
    """The graph without edges that a longer way makes superfluous."""
    reach = _reach(graph)
    return {
        node: frozenset(n for n in after if not any(n in reach[other] for other in after if other != n))
        for node, after in graph.items()
    }


def _order(block: Block) -> set[tuple[str, str]]:
    """Every pair of steps of which the first ends before the second begins."""
    pairs: set[tuple[str, str]] = set()
    before: list[str] = []
    for statement in block:
        inside = list(_step_ids((statement,)))
        pairs |= {(a, b) for a in before for b in inside}
        if isinstance(statement, Parallel):
            for branch in statement.branches:
                pairs |= _order(branch)
        before += inside
    return pairs


def _step_ids(block: Block) -> Iterator[str]:
    for statement in block:
        if isinstance(statement, Parallel):
            for branch in statement.branches:
                yield from _step_ids(branch)
        else:
            yield statement.id


class _Writer:
    def __init__(self, tasks: dict[str, TaskNode]) -> None:
        self._tasks = tasks
        self._variables: set[str] = set()

    def block(self, graph: Graph) -> Block:
        """Splits the graph into parts that run together, else into parts one after another, else by levels."""
        if len(graph) < 2:
            return tuple(self._step(node) for node in graph)
        parts = _components(graph)
        if len(parts) > 1:
            return (Parallel(tuple(self.block(part) for part in parts)),)
        stages = _stages(graph) or _levels(graph)
        return tuple(statement for stage in stages for statement in self.block(stage))

    def _step(self, node: str) -> Statement:
        task = self._tasks[node]
        stem = re.sub(r"\W+", "_", task.title.casefold()).strip("_") or "result"
        stem = stem if is_name(stem) else f"result_{stem}" if is_name(f"result_{stem}") else "result"
        name, number = stem, 2
        while name in self._variables:
            name, number = f"{stem}_{number}", number + 1
        self._variables.add(name)
        if task.actor_kind == "human":
            return UserTask(task.title, name, id=node)
        return Call(task.title or node, name, id=node)


def _only(graph: Graph, nodes: list[str]) -> Graph:
    kept = set(nodes)
    return {node: graph[node] & kept for node in graph if node in kept}


def _components(graph: Graph) -> list[Graph]:
    """The parts of the graph between which no edge leads, in the order of their first nodes."""
    neighbours: dict[str, set[str]] = {node: set(after) for node, after in graph.items()}
    for node, after in graph.items():
        for other in after:
            neighbours[other].add(node)
    left, found = dict.fromkeys(graph), []
    while left:
        part, waiting = set[str](), [next(iter(left))]
        while waiting:
            here = waiting.pop()
            if here not in part:
                part.add(here)
                waiting += neighbours[here]
        found.append(_only(graph, list(part)))
        for node in part:
            left.pop(node, None)
    return found


def _stages(graph: Graph) -> list[Graph]:
    """Parts of which each comes wholly before the next; empty where there is only one."""
    reach = _reach(graph)
    order = _topological(graph)
    cuts = [0]
    for i in range(1, len(order)):
        rest = set(order[i:])
        if all(rest <= reach[node] for node in order[:i] if not (reach[node] & set(order[:i]))):
            cuts.append(i)
    if len(cuts) == 1:
        return []
    return [_only(graph, order[a:b]) for a, b in zip(cuts, [*cuts[1:], len(order)], strict=True)]


def _levels(graph: Graph) -> list[Graph]:
    """The nodes by the length of the longest way to them; nodes of a level can run together."""
    level = dict.fromkeys(graph, 0)
    for node in _topological(graph):
        for after in graph[node]:
            level[after] = max(level[after], level[node] + 1)
    highest = max(level.values())
    return [_only(graph, [node for node in graph if level[node] == i]) for i in range(highest + 1)]
