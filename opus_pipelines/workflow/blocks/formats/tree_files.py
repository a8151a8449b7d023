"""Flows as JSON and YAML: every statement is a table with its id; conditions are texts of the Python IR."""

import json
from typing import Any

import yaml

from opus_pipelines.workflow.blocks.expressions import FlowError, Literal, Path
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, write_condition
from opus_pipelines.workflow.blocks.model import (
    MAX_DEPTH,
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Parallel,
    Statement,
    UserTask,
    While,
    identified,
)

_LARGEST_BYTES = 1 << 24
LARGEST_YAML = 1 << 20
_KEYS = {
    "call": {"call", "variable", "arguments"},
    "user_task": {"user_task", "variable"},
    "if": {"if", "else"},
    "for": {"for", "in", "steps"},
    "while": {"while", "steps"},
    "parallel": {"parallel"},
}


def to_data(flow: Flow) -> dict[str, Any]:
    """Returns the flow as tables and lists."""
    return ({"name": flow.name} if flow.name else {}) | {"steps": _block_data(flow.body)}


def _block_data(block: Block) -> list[dict[str, Any]]:
    return [({"id": each.id} if each.id else {}) | _data(each) for each in block]


def _data(statement: Statement) -> dict[str, Any]:
    if isinstance(statement, Call):
        given = {name: write_condition(value) for name, value in statement.arguments}
        return {"call": statement.activity, "variable": statement.variable} | ({"arguments": given} if given else {})
    if isinstance(statement, UserTask):
        return {"user_task": statement.text, "variable": statement.variable}
    if isinstance(statement, If):
        branches = [
            ({"id": b.id} if b.id else {}) | {"condition": write_condition(b.condition), "steps": _block_data(b.body)}
            for b in statement.branches
        ]
        return {"if": branches} | ({"else": _block_data(statement.orelse)} if statement.orelse else {})
    if isinstance(statement, For):
        header = {"for": statement.variable, "in": write_condition(statement.iterable)}
        return header | {"steps": _block_data(statement.body)}
    if isinstance(statement, While):
        return {"while": write_condition(statement.condition), "steps": _block_data(statement.body)}
    return {"parallel": [_block_data(branch) for branch in statement.branches]}


def from_data(data: Any) -> Flow:
    """Returns the flow of tables and lists as `to_data` makes them; raises FlowError with the element."""
    if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
        raise FlowError("a flow is a table with 'steps', a list")
    if unknown := sorted(map(str, data.keys() - {"name", "steps"})):
        raise FlowError(f"a flow has no key {unknown[0]!r}; it has name and steps")
    return identified(Flow(_block(data["steps"], "steps", 1), _text(data.get("name", ""), "name")))


def _block(data: Any, place: str, level: int) -> Block:
    if not isinstance(data, list):
        raise FlowError(f"{place}: steps are a list")
    if level > MAX_DEPTH:
        raise FlowError(f"{place}: more than {MAX_DEPTH} statements stand inside one another")
    return tuple(_statement(each, f"{place}[{i}]", level) for i, each in enumerate(data))


def _statement(data: Any, place: str, level: int) -> Statement:
    if not isinstance(data, dict):
        raise FlowError(f"{place}: a step is a table")
    kinds = [kind for kind in _KEYS if kind in data]
    if len(kinds) != 1:
        raise FlowError(f"{place}: a step has one of {', '.join(_KEYS)}; this one has {', '.join(kinds) or 'none'}")
    kind = kinds[0]
    if unknown := sorted(map(str, data.keys() - _KEYS[kind] - {"id"})):
        raise FlowError(f"{place}: a step with {kind} has no key {unknown[0]!r}")
    try:
        return _made(kind, data, place, level)
    except FlowError as error:
        raise error if str(error).startswith("steps") else FlowError(f"{place}: {error}") from None


def _made(kind: str, data: dict[str, Any], place: str, level: int) -> Statement:
    ident = _text(data.get("id", ""), "id")
    if kind == "call":
        arguments = data.get("arguments", {})
        if not isinstance(arguments, dict):
            raise FlowError("arguments are a table")
        given = tuple((_text(name, "argument"), _operand(value)) for name, value in arguments.items())
        return Call(_text(data["call"], "call"), _text(data.get("variable"), "variable"), given, id=ident)
    if kind == "user_task":
        return UserTask(_text(data["user_task"], "user_task"), _text(data.get("variable"), "variable"), id=ident)
    if kind == "if":
        if not isinstance(data["if"], list):
            raise FlowError("if is a list of branches")
        branches = tuple(_branch(each, f"{place}.if[{i}]", level) for i, each in enumerate(data["if"]))
        return If(branches, _block(data.get("else", []), f"{place}.else", level + 1), id=ident)
    if kind == "for":
        iterable = parse_condition(_text(data.get("in"), "in"))
        return For(
            _text(data["for"], "for"), iterable, _block(data.get("steps"), f"{place}.steps", level + 1), id=ident
        )
    if kind == "while":
        body = _block(data.get("steps"), f"{place}.steps", level + 1)
        return While(parse_condition(_text(data["while"], "while")), body, id=ident)
    if not isinstance(data["parallel"], list):
        raise FlowError("parallel is a list of branches")
    blocks = (_block(each, f"{place}.parallel[{i}]", level + 1) for i, each in enumerate(data["parallel"]))
    return Parallel(tuple(blocks), id=ident)


def _branch(data: Any, place: str, level: int) -> Branch:
    if not isinstance(data, dict) or data.keys() - {"id", "condition", "steps"}:
        raise FlowError(f"{place}: a branch is a table with condition and steps")
    condition = parse_condition(_text(data.get("condition"), "condition"))
    body = _block(data.get("steps"), f"{place}.steps", level + 1)
    return Branch(condition, body, id=_text(data.get("id", ""), "id"))


def _operand(value: Any) -> Literal | Path:
    operand = parse_condition(_text(value, "argument"))
    if not isinstance(operand, Literal | Path):
        raise FlowError(f"an argument is a variable or a constant, not {value!r}")
    return operand


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise FlowError(f"{what} is a text, not {'missing' if value is None else repr(value)[:40]}")
    return value


def read_json(content: bytes, name: str = "") -> Flow:
    """Returns the flow of a JSON file; raises FlowError with line and column, or with the element."""
    return from_data(json_data(content))


def json_data(content: bytes) -> Any:
    """Returns the value of a JSON file; raises FlowError with line and column."""
    text = decoded(content, _LARGEST_BYTES)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FlowError(f"the text is not JSON: {error.msg}", error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise FlowError(f"the text is not JSON: {error}") from None


def decoded(content: bytes, most: int) -> str:
    """Returns the text of a file; raises FlowError where it is too large or not UTF-8."""
    if len(content) > most:
        raise FlowError(f"the file has {len(content):,} bytes; at most {most:,} are read")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FlowError(
            f"the file is not UTF-8 (byte {error.start})", content[: error.start].count(b"\n") + 1
        ) from None


def write_json(flow: Flow) -> bytes:
    """Returns the flow as JSON; equal flows with equal ids give equal bytes."""
    return (json.dumps(to_data(flow), ensure_ascii=False, indent=2) + "\n").encode()


def read_yaml(content: bytes, name: str = "") -> Flow:
    """Returns the flow of a YAML file; raises FlowError with line and column, or with the element."""
    text = decoded(content, LARGEST_YAML)
    try:
        for event in yaml.parse(text, yaml.CSafeLoader) if "&" in text else ():
            if isinstance(event, yaml.AliasEvent):
                mark = event.start_mark
                raise FlowError("aliases are not read; write the value out", mark.line + 1, mark.column + 1)
        data = yaml.load(text, yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        found = error.problem_mark or error.context_mark
        place = (found.line + 1, found.column + 1) if found else (None, None)
        raise FlowError(f"the text is not YAML: {error.problem or error.context}", *place) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, FlowError):
            raise
        raise FlowError(f"the text is not YAML: {' '.join(str(error).split())}") from None
    return from_data(data)


def write_yaml(flow: Flow) -> bytes:
    """Returns the flow as YAML; equal flows with equal ids give equal bytes."""
    text: str = yaml.dump(to_data(flow), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()
