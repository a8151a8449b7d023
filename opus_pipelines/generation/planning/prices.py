"""Computes the figures of every task of a Workflow Graph in each of its execution modes, LWM (12)."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.core.ids import SameObject, SameSettings
from opus_pipelines.core.settings import Cost, Priors, Settings
from opus_pipelines.generation.search.imputed_figures import imputed_usd
from opus_pipelines.generation.search.node_cost import NodeCost, node_cost
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.model import TaskNode

_TASK_SETS_KEPT = 64  # sets of tasks, some 100 kB each: most intakes of a contract lead to the same ones


def execution_modes_of(task: Task) -> tuple[ExecutionMode, ...]:
    """Returns the execution modes of a task, most frequent first; ties by actor kind, model and group.

    A task that was never carried out has one mode of which nothing is known.
    """
    return tuple(sorted(task.execution_modes, key=_order)) or (ExecutionMode(),)


def _order(mode: ExecutionMode) -> tuple[int, str, str, str]:
    return -mode.implementations, mode.actor_kind or "", mode.model or "", mode.actor_group or ""


@dataclass(frozen=True)
class Prices:
    """The execution modes of each task, most frequent first, with cost and node; the three lists run in parallel."""

    execution_modes: dict[str, tuple[ExecutionMode, ...]]
    costs: dict[str, tuple[NodeCost, ...]]
    nodes: dict[str, tuple[TaskNode, ...]]

    @classmethod
    def of(cls, graph: WorkGraph, tasks: Collection[str], cost: Cost, settings: Settings) -> "Prices":
        """Returns the figures of every execution mode of these tasks; of the same tasks it is the same object."""
        known = tuple(SameObject(graph.tasks[t]) for t in sorted(tasks))
        return _prices_of(known, SameSettings.of(cost), SameSettings.of(settings.priors))

    def known_mode(self, node: TaskNode) -> ExecutionMode | None:
        """Returns the execution mode of history that a node has; None where history does not know it."""
        modes = self.execution_modes.get(node.task_id, ())
        return next((mode for mode in modes if mode.actor == node.actor), None)


@lru_cache(_TASK_SETS_KEPT)
def _prices_of(tasks: tuple[SameObject[Task], ...], cost: SameSettings[Cost], priors: SameSettings[Priors]) -> Prices:
    known = {task.value.task_id: task.value for task in tasks}
    modes = {t: execution_modes_of(task) for t, task in known.items()}
    costs = {t: tuple(node_cost(known[t], mode, cost.settings, priors.settings) for mode in modes[t]) for t in known}
    instead = imputed_usd(costs, cost.settings)
    nodes = {
        t: tuple(_node(task, *parts) for parts in zip(modes[t], costs[t], instead[t], strict=True))
        for t, task in known.items()
    }
    return Prices(modes, costs, nodes)


def _node(known: Task, mode: ExecutionMode, figures: NodeCost, instead_usd: float) -> TaskNode:
    return TaskNode(
        known.task_id,
        known.task_id,
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
        mode.memory_gb or 0.0,
        mode.threads or 0.0,
        mode.actor_kind,
        mode.model,
        actor_group=mode.actor_group,
        inputs=known.inputs,
        outputs=known.outputs,
        instructions=mode.instructions or known.instructions,
        imputed_usd=instead_usd,
        paid_by_time=figures.paid_by_time,
    )
