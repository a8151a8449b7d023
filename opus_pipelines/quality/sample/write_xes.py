"""Writes XES: start and complete events in order of time.

The claims system also writes schedule and assign events, which are no work.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from xml.sax.saxutils import quoteattr

from opus_pipelines.quality.sample.cases import Case, Performed
from opus_pipelines.quality.sample.records import case_id, instructions, outcome, usd
from opus_pipelines.quality.sample.sources import Source

HEADER = """\
<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1849-2016" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""
Value = str | int | float | bool
_quoted = lru_cache(4096)(quoteattr)  # most keys and values come again and again


def claims(source: Source, cases: list[Case]) -> bytes:
    """Writes Harbourline's export: two contracts in one log, with a schedule event before people's work."""
    return _log(source, cases, "claim_type", "notice", True)


def visits(source: Source, cases: list[Case]) -> bytes:
    """Writes Meridian's export: starts and completes only, with the procedure in each trace."""
    return _log(source, cases, "visit_type", "request", False)


def _log(source: Source, cases: list[Case], title: str, description: str, scheduled: bool) -> bytes:
    parts = [HEADER]
    for case in cases:
        parts.append("  <trace>\n")
        parts.extend(_attribute("    ", key, value) for key, value in _trace(source, case, title, description).items())
        for _, event in sorted(_events(source, case, scheduled), key=lambda e: e[0]):
            parts.append(event)
        parts.append("  </trace>\n")
    return "".join([*parts, "</log>\n"]).encode()


def _trace(source: Source, case: Case, title: str, description: str) -> dict[str, Value]:
    values: dict[str, Value] = {"concept:name": case_id(case), title: case.kind.title, description: case.description}
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
        base: dict[str, Value] = {
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


def _who(step: Performed) -> dict[str, Value]:
    values: dict[str, Value] = {"org:resource": step.actor, "actor_kind": step.mode.actor_kind}
    return values | {"model": step.mode.model} if step.mode.model else values


def _what(step: Performed) -> dict[str, Value]:
    values: dict[str, Value] = {
        "activity_description": step.task.description,
        "instructions": instructions(step),
        "inputs": "; ".join(step.task.inputs),
        "outputs": "; ".join(step.task.outputs),
        "cost_usd": usd(step),
        "step_ok": step.right,
    }
    return values | {"tokens_in": step.tokens_in, "tokens_out": step.tokens_out} if step.mode.model else values


def _event(base: dict[str, Value], transition: str, ms: int, values: dict[str, Value]) -> str:
    attributes = "".join(
        _attribute("      ", key, value)
        for key, value in (base | {"lifecycle:transition": transition} | values).items()
    )
    moment = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f'    <event>\n{attributes}      <date key="time:timestamp" value="{moment}"/>\n    </event>\n'


def _attribute(indent: str, key: str, value: Value) -> str:
    kind, written = "string", str(value)
    if isinstance(value, bool):
        kind, written = "boolean", written.lower()
    elif isinstance(value, int | float):
        kind = "int" if isinstance(value, int) else "float"
    return f"{indent}<{kind} key={_quoted(key)} value={_quoted(written)}/>\n"
