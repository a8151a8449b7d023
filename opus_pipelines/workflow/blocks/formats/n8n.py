"""Flows as n8n workflows: nodes and connections; an If has the outputs true and false, a loop done and loop.

The note of a node holds its step in the Python IR; where a person changed the node, the node counts and not its note.
"""

import json
import re
from typing import Any

from opus_pipelines.workflow.blocks.expressions import (
    JAVASCRIPT,
    And,
    Comparator,
    Comparison,
    Expression,
    FlowError,
    Literal,
    Operand,
    Or,
    Path,
    is_name,
    negated,
    read_dialect,
    write_dialect,
)
from opus_pipelines.workflow.blocks.formats.mermaid import box_text
from opus_pipelines.workflow.blocks.formats.python_ir import parse_step
from opus_pipelines.workflow.blocks.formats.registry import ALL, BuiltIn
from opus_pipelines.workflow.blocks.formats.tree_files import json_data
from opus_pipelines.workflow.blocks.model import Call, Flow, For, UserTask
from opus_pipelines.workflow.blocks.recovery import EXIT, NO, UNNAMED, YES, ChartBox, charted, from_chart, parse_header

BASE = "n8n-nodes-base."
CALLED, FORM, IF, LOOP, FORK, JOIN = (
    BASE + name for name in ("executeWorkflow", "form", "if", "splitInBatches", "noOp", "merge")
)
_TRIGGER = re.compile(r"trigger$|\.webhook$|\.start$|cron$", re.IGNORECASE)
_IGNORED = {BASE + "stickyNote"}
_OPERATIONS: dict[str, Comparator] = {
    "equals": "==", "equal": "==", "notEquals": "!=", "notEqual": "!=", "larger": ">", "gt": ">", "gte": ">=",
    "largerEqual": ">=", "smaller": "<", "lt": "<", "lte": "<=", "smallerEqual": "<=", "contains": "in",
}  # fmt: skip


def write_n8n(flow: Flow) -> bytes:
    """Returns the flow as an n8n workflow file; equal flows with equal ids give equal bytes."""
    boxes = charted(flow)
    names = {box.id: f"{i}. {_title(box)}" for i, box in enumerate(boxes, start=1)}
    nodes = [{"id": "start", "name": "Start", "type": BASE + "manualTrigger", "typeVersion": 1, "position": [0, 0]}]
    nodes[0]["parameters"] = {}
    connections: dict[str, Any] = {}
    if boxes[0].kind != "end":
        connections["Start"] = {"main": [[_link(names[boxes[0].id])]]}
    for i, box in enumerate(boxes[:-1], start=1):
        nodes.append({"id": box.id, "name": names[box.id], "position": [220 * i, 0], **_node(box)})
        ways = [target for _, target in box.ways]
        outputs = (
            [[w] for w in reversed(ways)] if box.kind == "for" else [[w] for w in ways] if len(ways) == 2 else [ways]
        )
        if box.kind == "fork":
            outputs = [ways]
        links = [[_link(names[target]) for target in output if target != EXIT] for output in outputs]
        connections[names[box.id]] = {"main": links}
    data = {"name": flow.name or "flow", "nodes": nodes, "connections": connections, "active": False, "settings": {}}
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def _link(name: str) -> dict[str, Any]:
    return {"node": name, "type": "main", "index": 0}


def _title(box: ChartBox) -> str:
    if isinstance(box.step, Call):
        return box.step.activity
    return box.step.text if box.step else box.kind


def _node(box: ChartBox) -> dict[str, Any]:
    note = {"notes": box_text(box), "typeVersion": 1}
    if isinstance(box.step, Call):
        if _is_type(box.step.activity):
            given = {name: _value(value) for name, value in box.step.arguments}
            return {"type": box.step.activity, "parameters": given, **note}
        inputs = {name: _value(value) for name, value in box.step.arguments}
        return {"type": CALLED, "parameters": {"workflowId": box.step.activity, "workflowInputs": inputs}, **note}
    if box.step is not None:
        return {"type": FORM, "parameters": {"formTitle": box.step.text}, **note}
    if box.loop is not None:
        return {"type": LOOP, "parameters": {"items": _value(box.loop.iterable)}, **note, "typeVersion": 3}
    if box.condition is not None:
        test = {"operation": "true", "type": "boolean", "singleValue": True}
        condition = {"leftValue": _expression(box.condition), "rightValue": "", "operator": test}
        return {"type": IF, "parameters": {"conditions": {"combinator": "and", "conditions": [condition]}}, **note}
    return {"type": FORK if box.kind == "fork" else JOIN, "parameters": {}, **note}


def _is_type(activity: str) -> bool:
    known = (CALLED, FORM, IF, LOOP, FORK, JOIN)
    return bool(re.fullmatch(r"[@\w/-]+\.[\w-]+", activity)) and activity not in known and not _TRIGGER.search(activity)


def _expression(expression: Expression) -> str:
    return "={{ " + write_dialect(expression, JAVASCRIPT) + " }}"


def _value(value: Expression) -> Any:
    if isinstance(value, Literal) and not (isinstance(value.value, str) and value.value.startswith("=")):
        return value.value
    return _expression(value)


def read_n8n(content: bytes, name: str = "") -> Flow:
    """Returns the flow of an n8n workflow file whose graph consists of blocks.

    Notes are no steps, nor are nodes that are attached to another node as its model, memory or tool, and switched-off
    nodes. Raises FlowError naming the node.
    """
    data = json_data(content)
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("nodes"), list)
        or not isinstance(data.get("connections"), dict)
    ):
        raise FlowError("an n8n workflow is a table with nodes, a list, and connections, a table")
    boxes: dict[str, ChartBox] = {}
    starts: list[str] = []
    attached = {
        name for name, outputs in data["connections"].items() if isinstance(outputs, dict) and "main" not in outputs
    }
    for i, node in enumerate(data["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or not isinstance(node.get("type"), str):
            raise FlowError(f"nodes[{i}]: a node has a name and a type, both texts")
        if node["type"] in _IGNORED or node.get("disabled") is True or node["name"] in attached:
            continue
        if node["name"] in boxes or node["name"] in starts:
            raise FlowError(f"nodes[{i}]: a second node is called {node['name']!r}")
        if _TRIGGER.search(node["type"]):
            starts.append(node["name"])
        else:
            boxes[node["name"]] = _box(node)
    links = {
        source: _outputs(source, outputs) for source, outputs in data["connections"].items() if source not in attached
    }
    for box in boxes.values():
        _ways(box, [[t for t in output if t in boxes] for output in links.get(box.id, [])])
    firsts = list(dict.fromkeys(t for s in starts for output in links.get(s, []) for t in output if t in boxes))
    reached = {target for box in boxes.values() for _, target in box.ways}
    if not starts:
        firsts = [box for box in boxes if box not in reached]
    if len(firsts) > 1 or (boxes and not firsts):
        raise FlowError(f"the workflow begins at {len(firsts)} nodes ({', '.join(firsts[:5])}); a flow begins at one")
    flow = from_chart(list(boxes.values()), firsts[0] if firsts else EXIT)
    title = data.get("name")
    return Flow(flow.body, title if isinstance(title, str) and title != "flow" else "")


def _outputs(source: str, outputs: Any) -> list[list[str]]:
    main = outputs.get("main") if isinstance(outputs, dict) else None
    if not isinstance(main, list):
        raise FlowError(f"connections[{source!r}]: the connections of a node are a table with 'main', a list")
    found = []
    for output in main:
        targets = output or []
        if not isinstance(targets, list) or not all(
            isinstance(t, dict) and isinstance(t.get("node"), str) for t in targets
        ):
            raise FlowError(f"connections[{source!r}]: an output is a list of tables with 'node'")
        found.append([target["node"] for target in targets])
    return found


def _ways(box: ChartBox, outputs: list[list[str]]) -> None:
    if box.kind in ("if", "while", "for"):
        pair = [output[0] if output else EXIT for output in [*outputs, [], []][:2]]
        labels = (NO, YES) if box.kind == "for" else (YES, NO)
        box.ways = list(zip(labels, pair, strict=True))
        if any(len(output) > 1 for output in outputs):
            raise FlowError(
                f"the node {box.label!r} leads to several nodes at once; put a node without an operation between"
            )
        return
    targets = [target for output in outputs for target in output]
    box.ways = [("", target) for target in targets or [EXIT]]
    if len(targets) > 1 and box.step is None:
        box.kind = "fork"


def _box(node: dict[str, Any]) -> ChartBox:
    name, kind = node["name"], node["type"]
    given, note = _table(node.get("parameters")), str(node.get("notes") or "")
    box = ChartBox(name, "step", label=name)
    try:
        if kind == IF:
            box.kind, box.condition = "if", _condition(given)
            stated = parse_header(note)[1] if note.startswith(("if ", "while ")) else None
            if stated is not None and _expression(stated) == _rows(given)[0].get("leftValue"):
                box.condition = stated
        elif kind == LOOP:
            box.kind, box.loop = "for", _loop(note, given)
        elif kind in (FORK, JOIN):
            box.kind = "join"
        else:
            box.step = _step(kind, given, note)
    except FlowError as error:
        raise FlowError(f"the node {name!r}: {error}") from None
    return box


def _step(kind: str, given: dict[str, Any], note: str) -> Call | UserTask:
    step: Call | UserTask
    if kind == FORM:
        step = UserTask(str(given.get("formTitle", "")), UNNAMED)
    else:
        called = kind == CALLED and isinstance(given.get("workflowId"), str)
        activity = given["workflowId"] if called else kind
        values = given.get("workflowInputs") if called else given
        pairs = values.items() if isinstance(values, dict) else ()
        step = Call(
            activity,
            UNNAMED,
            tuple((k, _operand(v)) for k, v in pairs if is_name(k) and not isinstance(v, dict | list)),
        )
    try:
        stated = parse_step(note)
    except FlowError:
        return step
    same = stated.text == step.text if isinstance(stated, UserTask) and isinstance(step, UserTask) else False
    if isinstance(stated, Call) and isinstance(step, Call):
        same = (stated.activity, stated.arguments) == (step.activity, step.arguments)
    return stated if same else step


def _operand(value: Any) -> Operand:
    if isinstance(value, str) and value.startswith("="):
        try:
            read = _read(value)
        except FlowError:
            return Literal(value)  # an expression of n8n that is no plain value stays a text
        return read if isinstance(read, Literal | Path) else Literal(value)
    return Literal(value)


def _read(text: str) -> Expression:
    inner = re.sub(r"^=\s*\{\{(.*)\}\}\s*$", r"\1", text, flags=re.DOTALL)
    return read_dialect(inner, JAVASCRIPT)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(given: dict[str, Any]) -> list[dict[str, Any]]:
    rows = _table(given.get("conditions")).get("conditions")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise FlowError("an If has a list of conditions, each a table")
    return rows


def _condition(given: dict[str, Any]) -> Expression:
    parts = tuple(_compared(row) for row in _rows(given))
    if len(parts) == 1:
        return parts[0]
    return Or(parts) if _table(given.get("conditions")).get("combinator") == "or" else And(parts)


def _compared(row: dict[str, Any]) -> Expression:
    operation = str(_table(row.get("operator")).get("operation", ""))
    stated = str(row.get("leftValue", ""))
    left = _read(stated) if stated.startswith("=") else Literal(stated)
    if operation in ("true", "exists", "notEmpty", ""):
        return left
    if operation in ("false", "notExists", "empty"):
        return negated(left)
    if operation not in _OPERATIONS or not isinstance(left, Literal | Path):
        raise FlowError(f"the operation {operation!r} of an If cannot be read")
    right = _operand(row.get("rightValue"))
    return Comparison(right, "in", left) if operation == "contains" else Comparison(left, _OPERATIONS[operation], right)


def _loop(note: str, given: dict[str, Any]) -> For:
    loop = parse_header(note)[2] if note.startswith("for ") else None
    items = given.get("items")
    if loop is not None and _value(loop.iterable) == items:
        return loop
    iterable = _read(items) if isinstance(items, str) and items.startswith("=") else Path(("items",))
    return For("item", iterable, (Call("A", "x"),))


N8N = BuiltIn((), ALL, read_n8n, write_n8n)
