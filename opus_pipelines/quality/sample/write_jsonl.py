"""Writes JSONL with one nested record for each claim."""

import json
from datetime import UTC, datetime
from typing import Any

from opus_pipelines.quality.sample.cases import Case, Performed
from opus_pipelines.quality.sample.records import case_id, instructions, outcome, usd
from opus_pipelines.quality.sample.sources import Source


def claims(source: Source, cases: list[Case]) -> bytes:
    """Writes one line for each claim: claim, handling with its steps, result."""
    return "".join(json.dumps(_record(source, case), ensure_ascii=False) + "\n" for case in cases).encode()


def _record(source: Source, case: Case) -> dict[str, Any]:
    return {
        "claim": {"reference": case_id(case), "type": case.kind.title, "notice": case.description, "facts": case.facts},
        "handling": {"procedure": case.kind.procedure, "steps": [_step(source, step) for step in case.performed]},
        "result": {"status": outcome(source, case)},
    }


def _step(source: Source, step: Performed) -> dict[str, Any]:
    spend: dict[str, Any] = {"usd": usd(step)}
    if step.mode.model:
        spend["tokens"] = {"in": step.tokens_in, "out": step.tokens_out}
    return {
        "step": source.key(step.task.name),
        "purpose": step.task.description,
        "timing": {"from": _iso(step.start_ms), "to": _iso(step.end_ms)},
        "by": {"name": step.actor, "kind": step.mode.actor_kind, "model": step.mode.model},
        "told": [instructions(step)],
        "spend": spend,
        "ok": step.right,
        "reads": list(step.task.inputs),
        "writes": list(step.task.outputs),
    }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
