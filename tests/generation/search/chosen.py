"""The best choice of options as a workflow and its worth: what tests hold against brute force."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.modes import COMBINATIONS, Allowed, Picks, PlanTable, best_mode_choice
from opus_pipelines.workflow.model import TaskNode, Workflow


@dataclass(frozen=True)
class Choice:
    """The workflow with its options chosen, what it is worth, and whether no other choice earns more."""

    workflow: Workflow
    worth: float
    exact: bool


def best_choice(
    workflow: Workflow,
    options: Mapping[str, Sequence[TaskNode]],
    cost: Cost,
    allowed: Allowed | None = None,
    reward: Reward | None = None,
    combinations: int = COMBINATIONS,
) -> Choice | None:
    """The choice that `best_picks` makes among the options of each node."""
    table = PlanTable.of(workflow, options, cost, reward)
    found = best_mode_choice(table, allowed, combinations)
    if found is None:
        return None
    picks, exact = found
    return Choice(workflow_of(table, picks), float(table.scored(picks[None, :]).worth[0]), exact)


def workflow_of(table: PlanTable, picks: Picks) -> Workflow:
    """The workflow that one row of picks represents."""
    nodes = {name: nodes[pick] for (name, nodes), pick in zip(table.options.items(), picks.tolist(), strict=True)}
    tasks = [nodes.get(t.id, t) for t in table.workflow.tasks]
    return Workflow((*table.workflow.inputs, *tasks, *table.workflow.outputs), table.workflow.edges)
