"""Rows of `workflows/*`: the ranked workflows of one Intention, their nodes and their edges."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from opus_pipelines.generation.flow import Generated
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.knowledge import Knowledge
from opus_pipelines.generation.rows import Row, Rows, node_origin
from opus_pipelines.generation.situation import Candidate
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.schemas import OPTIMIZED, WORKFLOW_EDGES, WORKFLOW_TASKS
from opus_pipelines.workflow.model import OutputNode, TaskNode

_INSTRUCTION_KINDS = {"model": "model inference", "code": "code", "human": "human"}


def workflow_rows(intake: Intake, made: Generated, knowledge: Knowledge, model: LargeWorkModel) -> Rows:
    """Every row of workflows/* for the Intention, without client, contract and result."""
    ids = {"intake_id": intake.intake_id, "intention_id": made.intention_id}
    keys = _task_keys(made)
    for rank, candidate in made.ranked:
        yield OPTIMIZED, ids | _optimized(rank, candidate, intake, made, knowledge, model)
        for position, node in enumerate(candidate.workflow.topological()):
            row = {"workflow_id": candidate.id, "node": node, "position": position}
            yield WORKFLOW_TASKS, ids | row | _node(node, candidate, made, knowledge, keys)
        for row in _edges(candidate, made):
            yield WORKFLOW_EDGES, ids | row


def observed_share(tasks: Iterable[TaskNode]) -> float:
    """Share of the tasks' figures (p, q, cost, duration of each) that were observed."""
    bases = [basis for task in tasks for basis in task.bases]
    return sum(b == "observed" for b in bases) / len(bases)


def _optimized(rank: int, candidate: Candidate, intake: Intake, made: Generated, knowledge: Knowledge, model: LargeWorkModel) -> Row:
    worth, base = candidate.evaluation, made.baseline
    figures = (
        "reward_usd", "gain_usd", "success_probability", "cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd",
        "cost_time_usd", "cost_held_usd", "duration_ms", "peak_memory_gb", "peak_threads",
    )
    return {name: getattr(worth, name) for name in figures} | {
        "workflow_id": candidate.id, "title": _title(candidate, intake), "rank": rank, "backend": model.name,
        "sequence_ids": list(candidate.sequence_ids), "path_cost_usd": candidate.path_cost_usd, "feasible": candidate.feasible,
        "violations": list(candidate.violations), "tasks": len(candidate.tasks), "reviews": 0, "new_tasks": 0,
        "observed_share": observed_share(candidate.workflow.tasks), "in_history": knowledge.in_history(candidate.tasks),
        "baseline_cost_usd": base.cost_usd, "baseline_duration_ms": base.duration_ms, "baseline_success": base.success,
        "weights": made.weights.model_dump_json(exclude_none=True, by_alias=True),
        "snapshot": knowledge.snapshot.id, "model_version": model.version,
    }


def _title(candidate: Candidate, intake: Intake) -> str:
    titles = [t.title for t in candidate.workflow.tasks]
    steps = titles if len(titles) <= 2 else [titles[0], f"{len(titles) - 2} more", titles[-1]]
    return f"{intake.title or intake.folder}: {' → '.join(steps)}"


def _node(node: str, candidate: Candidate, made: Generated, knowledge: Knowledge, keys: dict[str, list[str]]) -> dict[str, Any]:
    data, worth = candidate.workflow.by_id[node], candidate.evaluation
    common = {
        "kind": data.kind, "title": data.title, "success_probability": worth.success[node],
        "start_ms": worth.start_ms[node], "finish_ms": worth.finish_ms[node],
    }
    if isinstance(data, OutputNode):
        return common | {"gain_usd": data.gain_usd}
    return common | _task(data, made, knowledge, keys) if isinstance(data, TaskNode) else common


def _task(data: TaskNode, made: Generated, knowledge: Knowledge, keys: dict[str, list[str]]) -> dict[str, Any]:
    task, way = knowledge.graph.tasks[data.task_id], made.prices.way(data)
    kind = _INSTRUCTION_KINDS.get(data.actor_kind or "")
    figures = (
        "actor_kind", "model", "actor_group", "p", "p_basis", "q", "q_basis", "cost_usd", "cost_compute_usd", "cost_model_usd",
        "cost_human_usd", "cost_basis", "duration_ms", "duration_basis", "memory_gb", "threads",
    )
    return {name: getattr(data, name) for name in figures} | {
        "task_id": data.task_id, "task_keys": keys.get(data.task_id) or knowledge.raw_keys[data.task_id], "description": task.description,
        "instructions": [{"kind": kind, "text": text} for text in way.instructions or task.instructions],
        "inputs": list(task.inputs), "outputs": list(task.outputs), "origin": node_origin(made, data.id),
        "evidence": way.implementations or task.implementations,
    }


def _edges(candidate: Candidate, made: Generated) -> Iterator[Row]:
    for pair in pairwise(candidate.workflow.topological()):
        edge = made.wfg.edges[pair]
        yield {"workflow_id": candidate.id, "src": pair[0], "dst": pair[1], "gamma": edge.gamma, "origin": edge.origin}


def _task_keys(made: Generated) -> dict[str, list[str]]:
    """Raw keys of every task in the near cases, most frequent first, then by name."""
    counts: dict[str, Counter[str]] = {}
    for case in made.cases:
        for task, key in zip(case.tasks, case.task_keys, strict=True):
            counts.setdefault(task, Counter())[key] += 1
    return {task: sorted(keys, key=lambda k: (-keys[k], k)) for task, keys in counts.items()}
