"""Flows as a few lines of text: one step a line, its inputs with | between them, two blanks for each block around it.

when record_create table=incident | condition=priority=1
look_up_records table=sys_user
FOREACH items={{look_up_records.records}}
send_email to={{foreach.item}}
"""

import re
from collections.abc import Sequence

from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    FLOW_LOGIC,
    LOGIC,
    SUBFLOW,
    Component,
    FlowDocument,
    FlowDocumentError,
    Input,
    Trigger,
)

_SPAN = re.compile(r"\[(?:(\d+(?:,\d+)*)\|)?([^\[\]]*)\]")


def parse(text: str, annotations: Sequence[str] = (), subflows: Sequence[str] = ()) -> FlowDocument:
    """Returns the flow of a script. `annotations` belong to the trigger and the steps in order.

    Raises FlowDocumentError with the line that is not well formed.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith("when "):
        raise FlowDocumentError("line 1: a flow begins with when and a trigger")
    if annotations and len(annotations) != len(lines):
        raise FlowDocumentError(f"{len(annotations)} annotations for {len(lines)} steps; the first is {lines[0]!r}")
    spans = [*annotations, *[""] * (len(lines) - len(annotations))]
    kind, given = _step(lines[0].removeprefix("when "), 1)
    components: list[Component] = []
    around: list[int] = []
    for order, line in enumerate(lines[1:], 1):
        depth = (len(line) - len(line.lstrip())) // 2
        if depth > len(around):
            raise FlowDocumentError(f"line {order + 1}: it stands deeper than a step can")
        del around[depth:]
        definition, inputs = _step(line.strip(), order + 1)
        category = FLOW_LOGIC if definition in LOGIC else SUBFLOW if definition in subflows else ACTION
        block = around[-1] if around else None
        components.append(Component(definition, order, category, block, inputs, spans[order]))
        around.append(order)
    return FlowDocument((Trigger(kind, given, spans[0]),), tuple(components))


def write(flow: FlowDocument) -> str:
    """Returns the flow as a script; annotations and scopes are left out."""
    trigger = flow.trigger
    lines = [f"when {trigger.type}{_shown(trigger.inputs)}"] if trigger else []
    lines += ["  " * depth + component.name + _shown(component.inputs) for depth, component in flow.nested()]
    return "\n".join(lines) + "\n"


def marked(text: str) -> tuple[str, list[str]]:
    """Returns a text without its brackets, and the spans that stood in them in the order of the steps."""
    spans: dict[int, str] = {}
    for numbers, span in _SPAN.findall(text):
        for number in numbers.split(",") if numbers else [str(len(spans))]:
            spans[int(number)] = span
    return _SPAN.sub(r"\2", text), [spans[n] for n in sorted(spans)]


def _step(text: str, line: int) -> tuple[str, tuple[Input, ...]]:
    definition, _, rest = text.partition(" ")
    pairs = [part.partition("=") for part in rest.split(" | ")] if rest else []
    if any(not equals for _, equals, _ in pairs):
        raise FlowDocumentError(f"line {line}: an input has no value; write name=value")
    return definition, tuple(Input(name.strip(), value) for name, _, value in pairs)


def _shown(inputs: Sequence[Input]) -> str:
    text = " | ".join(f"{given.name}={given.value}" for given in inputs)
    return f" {text}" if text else ""
