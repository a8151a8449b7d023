"""reports/cost: where a contract's money goes, task by task over its rank-1 workflows, against what history paid."""

from collections import defaultdict
from collections.abc import Sequence

from opus_pipelines.evaluation.cost import split_cost
from opus_pipelines.generation.flow import BASELINE_CASES, Generated
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.rows import Row
from opus_pipelines.generation.workflow_rows import observed_share
from opus_pipelines.lwm.interface import NearCase
from opus_pipelines.workflow.model import TaskNode


def cost_rows(made: Sequence[tuple[Intake, Generated]]) -> list[Row]:
    """A row a task that stands in some rank-1 workflow. Costs and durations are sums over those workflows."""
    found: dict[str, list[tuple[TaskNode, Generated]]] = defaultdict(list)
    for _, generated in made:
        for node in generated.ranked[0][1].workflow.tasks if generated.ranked else ():
            found[node.task_id].append((node, generated))
    total = sum(node.cost_usd for nodes in found.values() for node, _ in nodes)
    return [_row(task, nodes, total) for task, nodes in sorted(found.items())]


def _row(task: str, nodes: list[tuple[TaskNode, Generated]], total: float) -> Row:
    parts = [split_cost(n.cost_usd, n.cost_compute_usd, n.cost_model_usd, n.cost_human_usd, n.actor_kind) for n, _ in nodes]
    cost = sum(n.cost_usd for n, _ in nodes)
    paid = [p for _, g in nodes if (p := paid_for(task, g.cases[:BASELINE_CASES])) is not None]
    baseline = sum(paid) if len(paid) == len(nodes) else None
    return {
        "task_id": task, "title": nodes[0][0].title, "workflows": len(nodes), "cost_usd": cost,
        "cost_compute_usd": sum(p.compute_usd for p in parts), "cost_model_usd": sum(p.model_usd for p in parts),
        "cost_human_usd": sum(p.human_usd for p in parts), "duration_ms": sum(n.duration_ms for n, _ in nodes),
        "share": cost / total if total else None, "baseline_cost_usd": baseline,
        "saving_usd": None if baseline is None else baseline - cost, "observed_share": observed_share(n for n, _ in nodes),
    }


def paid_for(task: str, cases: Sequence[NearCase]) -> float | None:
    """Mean dollars that a near case paid for the task, repetitions included; None where no near case states a cost for it."""
    costs = [c for case in cases for t, c in zip(case.tasks, case.task_cost_usd, strict=True) if t == task and c is not None]
    return sum(costs) / len(cases) if costs else None
