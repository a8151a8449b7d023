"""The four scores of every step of a workflow and its Penalty, EVAL (8)-(10), from facts of the WKG."""

from opus_pipelines.core.settings import Settings
from opus_pipelines.history.records.redaction import ACCOUNT, PHONE, meaning_of
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.evaluation.penalty import (
    Scores,
    TaskFacts,
    WorkflowPenalties,
    measure,
    penalties,
    statements,
)
from opus_pipelines.workflow.model import TaskNode, Workflow

# `estimated`: only the outcome of the case was recorded, not that of the task
_OUTCOME_KNOWN = {"observed": 1.0, "estimated": 0.5}


class TaskFactIndex:
    """The facts of each step, computed once for all workflows that have it."""

    def __init__(self, graph: WorkGraph) -> None:
        self._graph = graph
        self._known: dict[TaskNode, TaskFacts] = {}

    def of(self, node: TaskNode) -> TaskFacts:
        """Returns the facts of a step, whether or not the WKG knows its task."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = _facts(node, self._graph)
        return known


def penalty_scores(
    workflow: Workflow, task_facts: TaskFactIndex, settings: Settings
) -> tuple[dict[str, Scores], WorkflowPenalties]:
    """Returns the scores by node, reviews included, and the Penalty; the order of nodes and edges plays no part."""
    scores = measure(workflow, {task.id: task_facts.of(task) for task in workflow.tasks}, settings.scores)
    return scores, penalties(workflow, scores, settings.reward)


def _facts(node: TaskNode, graph: WorkGraph) -> TaskFacts:
    task = graph.tasks.get(node.task_id)
    inputs, outputs = (tuple(dict.fromkeys(map(folded, names))) for names in (node.inputs, node.outputs))
    executions = task.implementations if task else 0
    recorded = min(1.0, (task.p_n + task.q_n) / executions) if task and executions else 0.0
    names = node.title, ", ".join((*inputs, *outputs))
    return TaskFacts(
        statements(names, (task.description if task else None, node.objective, *node.instructions)),
        inputs,
        outputs,
        frozenset(name for name in outputs if meaning_of(name) in (PHONE, ACCOUNT)),
        task.community if task else None,
        _leaving(node.task_id, graph),
        1.0 if node.success_criterion else recorded * _OUTCOME_KNOWN.get(node.p_basis, 0.0),
        ((node.cost_basis in ("observed", "rate")) + (node.duration_basis == "observed")) / 2,
        node.q if node.q_basis in _OUTCOME_KNOWN else 0.0,
        node.is_review,
    )


def _leaving(task: str, graph: WorkGraph) -> float | None:
    """Returns the share of the transitions from and to other tasks that cross the border of the task's community."""
    if task not in graph.tasks:
        return None
    pairs = [(task, other) for other in graph.successors.get(task, ())] + [
        (other, task) for other in graph.predecessors.get(task, ())
    ]
    counts = {pair: graph.edges[pair].transitions for pair in pairs if pair[0] != pair[1]}
    crossing = sum(n for (src, dst), n in counts.items() if graph.tasks[src].community != graph.tasks[dst].community)
    return crossing / sum(counts.values()) if counts else None
