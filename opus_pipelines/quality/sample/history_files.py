"""Writes the cases of a source in its format: CSV, JSON Lines with one nested record for each claim, or XES.

The ledger has its own column names and split costs, and the expense tool four formats of times. XES has start and
complete events in order of time; the claims system also writes schedule and assign events, which are no work.
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import quoteattr

from opus_pipelines.quality.sample.cases import Case, Performed
from opus_pipelines.quality.sample.sources import Source


def case_id(case: Case) -> str:
    """Returns an id that is unique in its source: initials of contract and kind, and a number."""
    initials = "".join(word[0] for word in f"{case.contract} {case.kind.title}".split()).upper()
    return f"{initials}-{case.number + 1:04d}"


def outcome(source: Source, case: Case) -> str | None:
    """Returns the source's word for how the case ended, or None where it was not recorded."""
    return None if case.success is None else source.outcome[not case.success]


def instructions(step: Performed) -> str:
    """Returns the instructions that the actor was given."""
    return step.task.instructions[step.mode.actor_kind]


def usd(step: Performed) -> float:
    """Returns the step's cost in dollars, rounded to a millionth."""
    return round(step.cost_usd, 6)


def cost_parts(step: Performed) -> tuple[float | str, float | str, float | str]:
    """Returns (people, models, programs): the cost in the column that it belongs to, the others empty."""
    kind = step.mode.actor_kind
    return tuple(usd(step) if kind == part else "" for part in ("human", "model", "code"))  # type: ignore[return-value]


_LEDGER_COLUMNS = (
    "Document No",
    "Document Type",
    "Header Text",
    "Company Code",
    "Step",
    "Step Purpose",
    "Work Instruction",
    "Begun",
    "Finished",
    "Processed By",
    "Processor Class",
    "Engine",
    "Engine Tokens In",
    "Engine Tokens Out",
    "Charge USD",
    "Labour USD",
    "Engine USD",
    "Compute USD",
    "Needs",
    "Yields",
    "Step Correct",
    "Result",
)
_EXPENSE_COLUMNS = (
    "case",
    "title",
    "description",
    "activity",
    "task_description",
    "instructions",
    "start",
    "end",
    "actor",
    "actor_kind",
    "model",
    "tokens_in",
    "tokens_out",
    "inputs",
    "outputs",
    "task_success",
    "outcome",
)
CLASSES = {"human": "employee", "code": "program", "model": "llm"}
MANILA = timezone(timedelta(hours=8))


def ledger(source: Source, cases: list[Case]) -> bytes:
    """Writes one row for each step, with the total cost and its parts."""
    return _csv(_LEDGER_COLUMNS, [_ledger_row(source, case, step) for case in cases for step in case.performed])


def expenses(source: Source, cases: list[Case]) -> bytes:
    """Writes one row for each step, without costs.

    Descriptions and instructions contain newlines. Each case is written by one release of the tool.
    """
    return _csv(_EXPENSE_COLUMNS, [_expense_row(source, case, step) for case in cases for step in case.performed])


def _ledger_row(source: Source, case: Case, step: Performed) -> list[object]:
    human, model, compute = cost_parts(step)
    return [
        case_id(case),
        case.kind.title,
        case.description,
        "1000" if case.number % 3 else "2000",
        source.key(step.task.name),
        step.task.description,
        instructions(step),
        _iso_offset(step.start_ms),
        _iso_offset(step.end_ms),
        step.actor,
        CLASSES[step.mode.actor_kind],
        step.mode.model or "",
        step.tokens_in or "",
        step.tokens_out or "",
        usd(step),
        human,
        model,
        compute,
        "; ".join(step.task.inputs),
        "; ".join(step.task.outputs),
        "yes" if step.right else "no",
        outcome(source, case) or "",
    ]


def _expense_row(source: Source, case: Case, step: Performed) -> list[object]:
    release = case.number % 4
    return [
        case_id(case),
        case.kind.title,
        case.description.replace("; ", ";\n"),
        source.key(step.task.name),
        step.task.description,
        instructions(step),
        _released(step.start_ms, release),
        _released(step.end_ms, release),
        step.actor,
        step.mode.actor_kind,
        step.mode.model or "",
        step.tokens_in or "",
        step.tokens_out or "",
        "; ".join(step.task.inputs),
        "; ".join(step.task.outputs),
        str(step.right).lower(),
        outcome(source, case) or "",
    ]


def _csv(header: tuple[str, ...], rows: list[list[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def _iso_offset(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _released(ms: int, release: int) -> str:
    """Returns a time as one of the tool's four releases wrote it; the second and the fourth stated no zone."""
    moment = datetime.fromtimestamp(ms / 1000, MANILA)
    milli = f"{moment.microsecond // 1000:03d}"
    return (
        moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + milli + "Z",
        moment.strftime("%Y-%m-%d %H:%M:%S.") + milli,
        moment.strftime("%Y/%m/%d %H:%M:%S.") + milli + "+08:00",
        moment.strftime("%d.%m.%Y %H:%M:%S.") + milli,
    )[release]


def jsonl_claims(source: Source, cases: list[Case]) -> bytes:
    """Writes one line for each claim: claim, handling with its steps, result."""
    return "".join(json.dumps(_record(source, case), ensure_ascii=False) + "\n" for case in cases).encode()


def _record(source: Source, case: Case) -> dict[str, Any]:
    return {
        "claim": {
            "reference": case_id(case),
            "type": case.kind.written_title,
            "notice": case.description,
            "facts": case.facts,
        },
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
        "timing": {"from": _iso_z(step.start_ms), "to": _iso_z(step.end_ms)},
        "by": {"name": step.actor, "kind": step.mode.actor_kind, "model": step.mode.model},
        "told": [instructions(step)],
        "spend": spend,
        "ok": step.right,
        "reads": list(step.task.inputs),
        "writes": list(step.task.outputs),
    }


def _iso_z(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_XES_HEADER = """\
<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1849-2016" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""
_XesValue = str | int | float | bool
_quoted = lru_cache(4096)(quoteattr)  # most keys and values come again and again


def xes_claims(source: Source, cases: list[Case]) -> bytes:
    """Writes Harbourline's export: two contracts in one log, with a schedule event before people's work."""
    return _log(source, cases, "claim_type", "notice", True)


def xes_visits(source: Source, cases: list[Case]) -> bytes:
    """Writes Meridian's export: starts and completes only, with the procedure in each trace."""
    return _log(source, cases, "visit_type", "request", False)


def xes_permits(source: Source, cases: list[Case]) -> bytes:
    """Writes Eastmere's export, made when the last application arrived: what was not done then is not in it."""
    exported = max(case.performed[0].start_ms for case in cases)
    seen = []
    for case in cases:
        done = [step for step in case.performed if step.end_ms <= exported]
        ended = len(done) == len(case.performed)
        seen.append(replace(case, performed=done, success=case.success if ended else None))
    return _log(source, [case for case in seen if case.performed], "application", "request", False)


def _log(source: Source, cases: list[Case], title: str, description: str, scheduled: bool) -> bytes:
    parts = [_XES_HEADER]
    for case in cases:
        parts.append("  <trace>\n")
        parts.extend(_attribute("    ", key, value) for key, value in _trace(source, case, title, description).items())
        for _, event in sorted(_events(source, case, scheduled), key=lambda e: e[0]):
            parts.append(event)
        parts.append("  </trace>\n")
    return "".join([*parts, "</log>\n"]).encode()


def _trace(source: Source, case: Case, title: str, description: str) -> dict[str, _XesValue]:
    values: dict[str, _XesValue] = {
        "concept:name": case_id(case),
        title: case.kind.written_title,
        description: case.description,
    }
    if "risk_class" in case.facts:
        values["risk_class"] = case.facts["risk_class"]
    if len(source.contracts) > 1:
        values |= {
            "contract": case.contract,
            "place": case.facts["place"],
            "channel": ("portal", "telephone", "broker")[case.number % 3],
        }
        values["policyholder_email"] = f"holder{case.number:04d}@example.org"
    else:
        values["procedure"] = case.kind.procedure
    ended = outcome(source, case)
    return values if ended is None else values | {"outcome": ended}


def _events(source: Source, case: Case, scheduled: bool) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields ((time, place), event). Places keep a step's own events in order where times are equal."""
    for place, step in enumerate(case.performed):
        base: dict[str, _XesValue] = {
            "concept:name": source.key(step.task.name),
            "concept:instance": f"{case_id(case)}/{place + 1}",
        }
        if scheduled and step.mode.actor_kind == "human":
            yield (step.ready_ms, 10 * place), _event(base, "schedule", step.ready_ms, {})
            if place % 2:
                assigned = (step.ready_ms + step.start_ms) // 2
                yield (assigned, 10 * place + 1), _event(base, "assign", assigned, {"org:resource": step.actor})
        yield (step.start_ms, 10 * place + 2), _event(base, "start", step.start_ms, _who(step))
        yield (step.end_ms, 10 * place + 3), _event(base, "complete", step.end_ms, _who(step) | _what(step))


def _who(step: Performed) -> dict[str, _XesValue]:
    values: dict[str, _XesValue] = {"org:resource": step.actor, "actor_kind": step.mode.actor_kind}
    return values | {"model": step.mode.model} if step.mode.model else values


def _what(step: Performed) -> dict[str, _XesValue]:
    values: dict[str, _XesValue] = {
        "activity_description": step.task.description,
        "instructions": instructions(step),
        "inputs": "; ".join(step.task.inputs),
        "outputs": "; ".join(step.task.outputs),
        "cost_usd": usd(step),
        "step_ok": step.right,
    }
    return values | {"tokens_in": step.tokens_in, "tokens_out": step.tokens_out} if step.mode.model else values


def _event(base: dict[str, _XesValue], transition: str, ms: int, values: dict[str, _XesValue]) -> str:
    attributes = "".join(
        _attribute("      ", key, value)
        for key, value in (base | {"lifecycle:transition": transition} | values).items()
    )
    moment = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f'    <event>\n{attributes}      <date key="time:timestamp" value="{moment}"/>\n    </event>\n'


def _attribute(indent: str, key: str, value: _XesValue) -> str:
    kind, written = "string", str(value)
    if isinstance(value, bool):
        kind, written = "boolean", written.lower()
    elif isinstance(value, int | float):
        kind = "int" if isinstance(value, int) else "float"
    return f"{indent}<{kind} key={_quoted(key)} value={_quoted(written)}/>\n"
