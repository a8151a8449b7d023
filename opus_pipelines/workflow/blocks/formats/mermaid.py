"""Flows as Mermaid flowcharts: a rectangle is a step, a rhombus the header of an if or a loop."""

import re

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import loop_header, parse_step, write_condition, write_step
from opus_pipelines.workflow.blocks.formats.registry import ALL, BuiltIn, Feature
from opus_pipelines.workflow.blocks.formats.tree_files import decoded
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask
from opus_pipelines.workflow.blocks.recovery import EXIT, UNNAMED, ChartBox, charted, from_chart, parse_header

_LARGEST_BYTES = 1 << 20


def box_text(box: ChartBox) -> str:
    """Returns what an element says: its step, or its header."""
    if box.step is not None:
        return write_step(box.step)
    if box.loop is not None:
        return loop_header(box.loop)
    return f"{box.kind} {write_condition(box.condition)}" if box.condition is not None else box.kind


_SPECIAL = re.compile(r"[\"'#&;<>%{}\[\]()`|\\*_~$]|(?<= ) |[\x00-\x1f\x7f-\x9f]|^ | $")
_NODE = re.compile(
    r"([\w-]+)\s*(?:(\(\[|\[\[|\(\(|\{\{|[\[({])\s*(\"[^\"]*\"|[^\"\])}]*)\s*(\]\)|\]\]|\)\)|\}\}|[\])}]))?"
)
_ARROW = re.compile(r"\s*(?:--\s*([^->|]+?)\s*-->|(?:--+>|==+>|-\.+->)(?:\s*\|([^|]*)\|)?)\s*")
_SKIPPED = (
    "%%",
    "flowchart",
    "graph",
    "classDef",
    "class ",
    "style",
    "linkStyle",
    "click",
    "direction",
    "---",
    "title",
)
_SHAPES = {"step": '["{}"]', "if": '{{"{}"}}', "while": '{{"{}"}}', "for": '{{"{}"}}'}


def write_mermaid(flow: Flow) -> bytes:
    """Returns the flow as a Mermaid flowchart; equal flows with equal ids give equal bytes."""
    boxes = charted(flow)
    names = {box.id: f"n{i}" for i, box in enumerate(boxes, start=1)} | {EXIT: "finish"}
    lines = ["flowchart TD", "  begin([start])"]
    for box in boxes:
        shape = _SHAPES.get(box.kind, '(("{}"))')
        lines.append(f"  {names[box.id]}{shape.format(_mermaid(box_text(box)))}")
    lines.append(f"  begin --> {names[boxes[0].id]}")
    for box in boxes:
        for label, target in box.ways:
            lines.append(f"  {names[box.id]} -->{f'|{label}|' if label else ''} {names[target]}")
    return ("\n".join(lines) + "\n").encode()


def _mermaid(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)


def _unmermaid(text: str) -> str:
    return re.sub(r"#(\d{1,7});", lambda found: chr(min(int(found[1]), 0x10FFFF)), text.strip().strip('"'))


def read_mermaid(content: bytes, name: str = "") -> Flow:
    """Returns the flow of a Mermaid flowchart whose graph consists of blocks; raises FlowError with line and column.

    A rectangle whose text is no step is a call of an activity with that name; a rhombus holds a condition.
    """
    boxes: dict[str, ChartBox] = {}
    for number, line in enumerate(decoded(content, _LARGEST_BYTES).splitlines(), start=1):
        if line.strip() and not line.strip().startswith(_SKIPPED):
            _mermaid_line(line, number, boxes)
    reached = {target for box in boxes.values() for _, target in box.ways}
    starts = [ident for ident in boxes if ident not in reached]
    if len(starts) != 1:
        raise FlowError(f"the chart has {len(starts)} elements without a way to them; it needs one beginning", 1, 1)
    ends = {box.id for box in boxes.values() if not box.ways and box.kind == "join"}
    for box in boxes.values():
        box.ways = [(label, EXIT if target in ends else target) for label, target in box.ways]
        if box.kind == "join" and len(box.ways) > 1:
            box.kind = "fork"
    kept = [box for box in boxes.values() if box.id not in ends]
    return from_chart(kept, EXIT if starts[0] in ends else starts[0])


def _mermaid_line(line: str, number: int, boxes: dict[str, ChartBox]) -> None:
    at = len(line) - len(line.lstrip())
    last: ChartBox | None = None
    label = ""
    while True:
        found = _NODE.match(line, at)
        if found is None:
            raise FlowError(f"an element of a flowchart is missing at {line[at:].strip()[:20]!r}", number, at + 1)
        box = _mermaid_box(found, number, boxes)
        if last is not None:
            last.ways.append((label, box.id))
        last, at = box, found.end()
        if not line[at:].strip(" ;"):
            return
        arrow = _ARROW.match(line, at)
        if arrow is None:
            raise FlowError(f"an arrow is missing at {line[at:].strip()[:20]!r}", number, at + 1)
        label = (arrow[1] or arrow[2] or "").strip().strip('"').casefold()
        at = arrow.end()


def _mermaid_box(found: re.Match[str], number: int, boxes: dict[str, ChartBox]) -> ChartBox:
    ident, opening, text = found[1], found[2], _unmermaid(found[3] or "")
    box = boxes.setdefault(ident, ChartBox(ident, "step", Call(ident, UNNAMED), line=number, label=ident))
    if opening is None:
        return box
    box.label, box.step, box.kind = text, None, "join"
    if opening == "[":
        box.kind, box.step = "step", _mermaid_step(text or ident)
    elif opening == "{":
        try:
            box.kind, box.condition, box.loop = parse_header(text)
        except FlowError as error:
            raise FlowError(f"the rhombus {ident} holds no condition: {error}", number, found.start() + 1) from None
    return box


def _mermaid_step(text: str) -> Call | UserTask:
    try:
        return parse_step(text)
    except FlowError:
        return Call(text, UNNAMED)


MERMAID = BuiltIn((".mmd", ".mermaid"), ALL - {Feature.TITLE}, read_mermaid, write_mermaid)
