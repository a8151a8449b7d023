"""The rows of compared flows: what `evaluations/flows` in the lake holds."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import EVALUATION_FLOWS
from opus_pipelines.flows.enterprise.flow_json import write
from opus_pipelines.flows.writers.model_comparison import WrittenFlow
from opus_pipelines.lake.layout import Lake, table_of, write_table


def publish(lake: Lake, flows: Sequence[WrittenFlow]) -> str:
    """Writes the flows into the lake in one step, and returns the evaluation's id; equal flows are written once."""
    evaluation = evaluation_id(flows)
    lake.ensure_empty()  # an older lake has no empty file of this dataset, which its view needs
    final = lake.folder(EVALUATION_FLOWS, evaluation_key=evaluation)
    if final.exists():
        return evaluation
    with lake.staging() as staged:
        write_table(EVALUATION_FLOWS, table_of(EVALUATION_FLOWS, rows(flows, evaluation)), staged / "rows")
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "rows", final)
    return evaluation


def evaluation_id(flows: Sequence[WrittenFlow]) -> str:
    """Returns the id of an evaluation: a hash of the requirements, the references, the models and their flows."""
    parts = ((one.model, one.example.id, one.example.text, write(one.example.flow), write(one.flow)) for one in flows)
    return make_id("v", "flows", digest(*(part for own in parts for part in own)))


def rows(flows: Sequence[WrittenFlow], evaluation: str) -> list[dict[str, Any]]:
    """Returns one row for each flow."""
    return [
        {
            "evaluation": evaluation,
            "model": one.model,
            "item": one.example.id,
            "kind": one.example.kind,
            "part": one.example.part,
            "requirement": one.example.text,
            "tags": list(one.example.tags),
            "steps": [c.name for c in one.flow.components],
            "gold_steps": [c.name for c in one.example.flow.components],
            **asdict(one.scores),
            "repairs": one.repaired,
            "problem": one.problem or None,
            "duration_ms": round(1000 * one.seconds),
            "tokens_in": one.tokens_in,
            "tokens_out": one.tokens_out,
            "cost_usd": one.cost_usd,
        }
        for one in flows
    ]
