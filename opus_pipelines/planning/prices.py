"""The figures of every task of a Workflow Graph in each way it has been done, LWM (12): computed once an intake.

The ways of carrying out a task.
"""

from collections.abc import Collection
from dataclasses import dataclass

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.optimization.imputed_figures import imputed_usd
from opus_pipelines.optimization.node_cost import NodeCost, node_cost
from opus_pipelines.wkg.graph import Task, Way, WorkGraph
from opus_pipelines.workflow.model import TaskNode


def ways_of(task: Task) -> tuple[Way, ...]:
    """Returns the execution modes of a task, most frequent first; ties by actor kind, model and group.

    A task that was never carried out has one mode of which nothing is known.
    """
    return tuple(sorted(task.ways, key=_order)) or (Way(),)


def _order(way: Way) -> tuple[int, str, str, str]:
    return -way.implementations, way.actor_kind or "", way.model or "", way.actor_group or ""


@dataclass(frozen=True)
class Prices:
    """The execution modes of each task, most frequent first, with cost and node; the three lists run in parallel."""

    ways: dict[str, tuple[Way, ...]]
    costs: dict[str, tuple[NodeCost, ...]]
    nodes: dict[str, tuple[TaskNode, ...]]

    @classmethod
    def of(cls, graph: WorkGraph, tasks: Collection[str], cost: Cost, settings: Settings) -> "Prices":
        """Every way of these tasks."""
        ways = {t: ways_of(graph.tasks[t]) for t in sorted(tasks)}
        costs = {
            t: tuple(node_cost(graph.tasks[t], way, cost, settings.priors) for way in found)
            for t, found in ways.items()
        }
        instead = imputed_usd(costs, cost)
        nodes = {
            t: tuple(_node(graph, t, *way) for way in zip(ways[t], costs[t], instead[t], strict=True)) for t in ways
        }
        return cls(ways, costs, nodes)

    def known_way(self, node: TaskNode) -> Way | None:
        """Returns the execution mode of history that a node has; None where history does not know it."""
        ways = self.ways.get(node.task_id, ())
        return next((way for way in ways if way.actor == node.actor), None)


def _node(graph: WorkGraph, task: str, way: Way, figures: NodeCost, instead_usd: float) -> TaskNode:
    known = graph.tasks[task]
    return TaskNode(
        task,
        task,
        known.title,
        figures.p,
        figures.p_basis,
        figures.q,
        figures.q_basis,
        figures.cost_usd or 0.0,
        figures.cost_compute_usd,
        figures.cost_model_usd,
        figures.cost_human_usd,
        figures.cost_basis,
        figures.duration_ms or 0.0,
        figures.duration_basis,
        way.memory_gb or 0.0,
        way.threads or 0.0,
        way.actor_kind,
        way.model,
        actor_group=way.actor_group,
        inputs=known.inputs,
        outputs=known.outputs,
        instructions=way.instructions or known.instructions,
        imputed_usd=instead_usd,
    )
