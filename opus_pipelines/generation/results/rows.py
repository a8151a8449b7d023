"""Rows of `generation/*`, and the ids of results."""

import json
from collections.abc import Iterator
from typing import Any

from opus_pipelines.core.schemas import (
    INTENTIONS,
    NEIGHBOURS,
    SEQUENCES,
    SUBGRAPH_EDGES,
    SUBGRAPH_TASKS,
    WFG_EDGES,
    WFG_NODES,
    Dataset,
)
from opus_pipelines.generation.records import GenerationContext, Ranked
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.workflow_graph import WfgEdge

Row = dict[str, Any]
Rows = Iterator[tuple[Dataset, Row]]


def intake_row(intake: Intake, status: str, reason: str | None) -> Row:
    """The row of generation/intakes."""
    return {
        "intake_id": intake.intake_id,
        "folder": intake.folder,
        "received_at": intake.received_at,
        "title": intake.title or intake.folder,
        "industry": intake.industry,
        "content_hash": intake.content_hash,
        "elements": [{k: v for k, v in vars(e).items() if k != "places"} for e in intake.elements],
        "constraints": json.dumps(intake.constraints.model_dump(exclude_defaults=True), sort_keys=True),
        "gain_usd": intake.gain_usd,
        "gain_basis": intake.gain_basis,
        "status": status,
        "reason": reason,
    }


def broken_row(intake_id: str, folder: str, reason: str) -> Row:
    """The row of an intake whose settings or documents could not even be read."""
    return {"intake_id": intake_id, "folder": folder, "title": folder, "status": "failed", "reason": reason}


def generation_rows(result: Ranked, context: GenerationContext) -> Rows:
    """Yields every row of generation/* but the intake's own, without client, contract and result."""
    ids = {"intake_id": result.request.intake.intake_id, "intention_id": result.request.intention_id}
    yield INTENTIONS, ids | _intention(result)
    for case in result.evidence.cases:
        is_compared = case.implementation_id in result.compared
        near = {"implementation_id": case.implementation_id, "similarity": case.similarity, "is_compared": is_compared}
        yield NEIGHBOURS, ids | near
    for dataset, row in _subgraphs(result):
        yield dataset, ids | row
    for row in _sequences(result, context):
        yield SEQUENCES, ids | row
    for node in result.drafted.wfg.nodes.values():
        yield (
            WFG_NODES,
            ids
            | {
                "node": node.node,
                "task_id": node.task_id,
                "sequence_ids": list(node.sequence_ids),
                "origin": node_origin(result, node.node),
            },
        )
    for edge in result.drafted.wfg.edges.values():
        yield (
            WFG_EDGES,
            ids
            | {
                "src": edge.src,
                "dst": edge.dst,
                "gamma": edge.gamma,
                "sequence_ids": list(edge.sequence_ids),
                "origin": edge_origin(result, edge),
            },
        )


def node_origin(result: Ranked, node: str) -> str | None:
    """Where a node of the WFG came from; None for input and output.

    history: a near case did it; connector: no near case did it, and the SWKG added it between tasks; lwm: only the
    intake's procedure asks for it, or it comes with work that is asked for beside the near cases'; new: the
    procedure asks for it, and nobody in history did it; declared: the same of a tool of the contract's catalogue;
    decision: only the workflow that a person chose has it.
    """
    found = result.drafted.wfg.nodes[node]
    if found.task_id is None:
        return None
    if found.task_id in result.drafted.declared:
        return "declared"
    if found.origin == "new":
        return found.origin
    origin = _written_by(result, found.sequence_ids)
    roles = {s.tasks.get(found.task_id) for _, s in result.retrieved.subgraphs}
    return "connector" if origin == "lwm" and "connector" in roles else origin


def edge_origin(result: Ranked, edge: WfgEdge) -> str:
    """Where an edge of the WFG came from: the sequences that have its tasks next to each other, or what joined them."""
    return _written_by(result, edge.sequence_ids) if edge.sequence_ids else edge.origin


def _written_by(result: Ranked, sequence_ids: tuple[str, ...]) -> str:
    """history, where one of the sequences is a near case's; decision, where a person's choice is the only one; else
    lwm.
    """
    sources = {result.drafted.sequences[s].source for s in sequence_ids}
    return "history" if "history" in sources else "decision" if sources == {"decision"} else "lwm"


def _intention(result: Ranked) -> Row:
    found = result.request.intention
    return {
        "kind": found.kind,
        "vector": found.vector.tolist(),
        "goal": found.goal,
        "routed": [{"task_id": r.id, "similarity": r.similarity} for r in result.retrieved.routed],
        "attention": [{"element_id": e, "weight": w} for e, w in found.attention.items()],
        "inputs": [{**vars(s)} for s in found.decoded.inputs],
        "outputs": [{**vars(s)} for s in found.decoded.outputs],
        "rules": [
            {"text": r.sentence.text, "element_id": r.sentence.element_id, "place": r.sentence.place}
            for r in found.decoded.rules
        ],
        "constraints": [
            {
                "kind": d.kind,
                "value": d.value,
                "sentence": d.sentence,
                "element_id": d.element_id,
                "place": d.place,
                "effect": d.effect,
                "status": d.status,
                "asks": d.unclear_phrase,
                "nearest": list(d.nearest) if d.unclear_phrase else None,
                "why": d.why,
                "differs": d.differs,
            }
            for d in result.context.requirements.rules.rules
        ],
        "rules_not_applied": result.context.requirements.rules.not_applied,
        "resolved": {"part": found.resolved[0], "implementation_ids": list(found.resolved[1:])}
        if found.resolved
        else None,
    }


def _subgraphs(result: Ranked) -> Rows:
    for subgraph_id, subgraph in result.retrieved.subgraphs:
        for task, role in subgraph.tasks.items():
            yield SUBGRAPH_TASKS, {"subgraph_id": subgraph_id, "task_id": task, "role": role}
        for edge in subgraph.edges:
            yield SUBGRAPH_EDGES, {"subgraph_id": subgraph_id, "src": edge.src, "dst": edge.dst, "gamma": edge.gamma}


def _sequences(result: Ranked, context: GenerationContext) -> Iterator[Row]:
    said = {s.task_id: s.sentence for s in result.evidence.procedure.steps} if result.evidence.procedure else {}
    version = context.model.version
    for sequence_id, sequence in result.drafted.sequences.items():
        for position, task in enumerate(sequence.tasks):
            yield {
                "sequence_id": sequence_id,
                "subgraph_id": result.retrieved.subgraphs[sequence.subgraph][0],
                "position": position,
                "task_id": task,
                "predecessors": result.planned.predecessors[sequence_id][position],
                "title": result.drafted.graph.tasks[task].title,
                "instructions": list(result.drafted.graph.tasks[task].instructions),
                "score": sequence.score,
                "sentence": said.get(task) if sequence.source == "procedure" else None,
                "is_new": task not in context.index.graph.tasks,
                "backend": context.model.name,
                "model_version": version,
            }
