"""A ranked workflow read back from the lake, as its faces take it: nothing but DuckDB."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from pydantic import ValidationError

from opus_pipelines.errors import LakeError
from opus_pipelines.query.expected import between
from opus_pipelines.query.sql import rows
from opus_pipelines.workflow.faces.described import Described
from opus_pipelines.workflow.files import InputEntry, OutputEntry, Penalties, TaskEntry, Weights, WorkflowFile
from opus_pipelines.workflow.model import UNKNOWN

Row = dict[str, Any]
_SCORES = ("cohesion", "coupling", "observability", "hygiene")
_FIGURES = (
    "kind", "task_id", "title", "description", "inputs", "outputs", "actor_kind", "model", "actor_group", "p", "p_basis", "q", "q_basis",
    "cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd", "cost_basis", "duration_ms", "duration_basis",
    "memory_gb", "threads",
)


def read_workflow(connection: duckdb.DuckDBPyConnection, workflow: str) -> Described:
    """The workflow of this id; raises LakeError where the lake's rows are no workflow."""
    head = rows(connection, "workflow", workflow=workflow)[0]
    nodes, links, flow = (rows(connection, name, workflow=workflow) for name in ("nodes", "links", "expected"))
    return described(head, nodes, links, flow)


def described(head: Row, nodes: Sequence[Row], links: Sequence[Row], flow: Sequence[Row] = ()) -> Described:
    """The same of rows of `workflows/optimized`, `workflows/tasks`, `workflows/edges` and `workflows/expected_flow`."""
    by_kind: dict[str, list[Row]] = {"input": [], "task": [], "output": []}
    for row in nodes:
        by_kind["task" if row["kind"] == "review" else row["kind"]].append(row)
    try:
        file = WorkflowFile(
            title=head["title"],
            weights=Weights.model_validate_json(head["weights"]) if head["weights"] else None,
            inputs=tuple(InputEntry(**_known(id=r["node"], title=r["title"], prior=r["success_probability"])) for r in by_kind["input"]),
            tasks=tuple(_task(r) for r in by_kind["task"]),
            outputs=tuple(_output(r, head, len(by_kind["output"])) for r in by_kind["output"]),
            edges=tuple((r["src"], r["dst"]) for r in links),
        )
    except ValidationError as error:
        raise LakeError(f"workflow {head['workflow_id']} cannot be read back from the lake: {error}") from None
    return Described(
        file, head["workflow_id"],
        start_ms=_by_node(nodes, "start_ms"), finish_ms=_by_node(nodes, "finish_ms"),
        evidence=_by_node(nodes, "evidence"), origins=_by_node(nodes, "origin"),
        data_types={(r["src"], r["dst"]): r["data_type"] for r in links if r["data_type"]},
        expected=between(flow, nodes, links),
    )


def _task(row: Row) -> TaskEntry:
    scores = _known(**{name: row[name] for name in _SCORES})
    said = tuple(i["text"] for i in row["instructions"] or () if i["text"])
    unknown = {f"{name}_basis": UNKNOWN for name, figure in (("cost", "cost_usd"), ("duration", "duration_ms")) if row[figure] is None}
    return TaskEntry(
        id=row["node"], instructions=said, scores=Penalties(**scores) if scores else None,
        **_known(**{name: row[name] for name in _FIGURES}) | unknown,
    )


def _output(row: Row, head: Row, outputs: int) -> OutputEntry:
    """A result of an older version states the gain of the whole alone: one output has all of it. Without a stated gain neither has one."""
    gain = row["gain_usd"] if row["gain_usd"] is not None else head["gain_usd"] if outputs == 1 else None
    if gain is None and head["gain_usd"] is not None:
        raise LakeError(f"{head['workflow_id']}: the gain of output {row['node']} is not in the lake; `opus generate` makes it anew")
    return OutputEntry(id=row["node"], title=row["title"], gain_usd=gain)


def _known(**values: Any) -> dict[str, Any]:
    """What is not NULL: the rest is left to the defaults."""
    return {name: value for name, value in values.items() if value is not None}


def _by_node(nodes: Sequence[Row], column: str) -> Mapping[str, Any]:
    return {r["node"]: r[column] for r in nodes if r[column] is not None}
