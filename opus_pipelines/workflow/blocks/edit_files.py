"""Files of edits: operations as JSON, and the record of the edits of a flow's file, turn by turn, with their undo.

`opus flow edit --operations` takes operations as JSON, as a person or a program writes them. `FILE.turns` lies beside
the file and has a line of JSON for each turn: what was asked, the operations, and the content before. A turn is
recorded before the file is replaced; a process that is killed in between leaves a turn that never took effect, which
the next edit or undo drops.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from opus_pipelines.core.errors import InputError
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.workflow.blocks import edits
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import (
    loop_header,
    parse_condition,
    parse_steps,
    write_condition,
    write_step,
    write_steps,
)
from opus_pipelines.workflow.blocks.formats.tree_files import json_data
from opus_pipelines.workflow.blocks.model import Call, For, UserTask, While

_PLACEHOLDER = "\n  x = A()"


def read_operations(content: bytes) -> list[edits.Operation]:
    """Returns the operations of a JSON list; raises FlowError with the number of the operation.

    An operation is a table with `operation` (insert, delete, delete_else, replace, set_condition, negate_condition,
    add_else, wrap, unwrap, set_loop_header, move, swap, together), `target` (the id of a step), and where it needs them
    `steps` (text of the Python IR), `where`, `place`, `other`, `condition`, `header`, `first`, `last`.
    """
    data = json_data(content)
    if not isinstance(data, list):
        raise FlowError("operations are a list; put one operation in brackets too")
    operations = []
    for number, each in enumerate(data, start=1):
        try:
            operations.append(_operation(each))
        except FlowError as error:
            raise FlowError(f"operation {number}: {error}") from None
    return operations


def _operation(data: Any) -> edits.Operation:
    if not isinstance(data, dict) or not isinstance(data.get("operation"), str):
        raise FlowError("it is a table with 'operation'")
    name = data["operation"]
    if name not in _READERS:
        raise FlowError(f"{name!r} is no operation; known are {', '.join(_READERS)}")
    keys, make = _READERS[name]
    if unknown := sorted(map(str, data.keys() - {"operation", *keys})):
        raise FlowError(f"{name} has no key {unknown[0]!r}; it has {', '.join(sorted(keys))}")
    for key in data:
        if not isinstance(data[key], str):
            raise FlowError(f"{key} is a text, not {data[key]!r}")
    optional = {"where", "place"} | ({"target"} if name == "insert" else {"last"} if name == "wrap" else set())
    if missing := sorted(keys - data.keys() - optional):
        raise FlowError(f"{name} needs {missing[0]}")
    return make(data)


def _insert(data: dict[str, str]) -> edits.Operation:
    return edits.Insert(parse_steps(data["steps"]), _where(data), data.get("target", ""))


def _where(data: dict[str, str]) -> edits.Where:
    where = data.get("where", "append")
    for known in get_args(edits.Where):
        if where == known:
            return known
    raise FlowError(f"{where!r} is no place; known are {', '.join(get_args(edits.Where))}")


def _replace(data: dict[str, str]) -> edits.Operation:
    steps = parse_steps(data["steps"])
    if len(steps) != 1 or not isinstance(steps[0], Call | UserTask):
        raise FlowError("a step is replaced by one call or user task")
    return edits.Replace(data["target"], steps[0])


def _wrap(data: dict[str, str]) -> edits.Operation:
    (header,) = parse_steps(data["header"].rstrip(":") + ":" + _PLACEHOLDER)
    first, last = data["first"], data.get("last", data["first"])
    if isinstance(header, For):
        return edits.Wrap(first, last, header.iterable, header.variable)
    if isinstance(header, While):
        return edits.Wrap(first, last, header.condition, loop=True)
    if isinstance(header, Call | UserTask):
        raise FlowError("a header is 'if …', 'for … in …' or 'while …'")
    return edits.Wrap(first, last, parse_condition(data["header"].strip().removeprefix("if").rstrip(":")))


def _loop(data: dict[str, str]) -> edits.Operation:
    (header,) = parse_steps(data["header"].rstrip(":") + ":" + _PLACEHOLDER)
    if isinstance(header, For):
        return edits.SetLoopHeader(data["target"], header.iterable, header.variable)
    if isinstance(header, While):
        return edits.SetLoopHeader(data["target"], header.condition)
    raise FlowError("the header of a loop is 'for … in …' or 'while …'")


_READERS: dict[str, tuple[set[str], Callable[[dict[str, str]], edits.Operation]]] = {
    "insert": ({"steps", "where", "target"}, _insert),
    "delete": ({"target"}, lambda d: edits.Delete(d["target"])),
    "delete_else": ({"target"}, lambda d: edits.DeleteElse(d["target"])),
    "replace": ({"target", "steps"}, _replace),
    "set_condition": (
        {"target", "condition"},
        lambda d: edits.SetCondition(d["target"], parse_condition(d["condition"])),
    ),
    "negate_condition": ({"target"}, lambda d: edits.NegateCondition(d["target"])),
    "add_else": ({"target", "steps"}, lambda d: edits.AddElse(d["target"], parse_steps(d["steps"]))),
    "wrap": ({"first", "last", "header"}, _wrap),
    "unwrap": ({"target"}, lambda d: edits.Unwrap(d["target"])),
    "set_loop_header": ({"target", "header"}, _loop),
    "move": ({"target", "where", "place"}, lambda d: edits.Move(d["target"], _where(d), d.get("place", ""))),
    "swap": ({"target", "other"}, lambda d: edits.Swap(d["target"], d["other"])),
    "together": ({"first", "last"}, lambda d: edits.Together(d["first"], d["last"])),
}


def operation_data(operation: edits.Operation) -> dict[str, str]:
    """Returns an operation as the table that `read_operations` reads; raises FlowError for an inserted parallel."""
    if isinstance(operation, edits.Insert):
        target = {"target": operation.target} if operation.target else {}
        return {"operation": "insert", "where": operation.where, **target, "steps": write_steps(operation.steps)}
    if isinstance(operation, edits.Wrap):
        header = _header(operation.variable, operation)
        return {"operation": "wrap", "first": operation.first, "last": operation.last, "header": header}
    if isinstance(operation, edits.Move):
        return {"operation": "move", "target": operation.target, "where": operation.where, "place": operation.place}
    if isinstance(operation, edits.Swap):
        return {"operation": "swap", "target": operation.target, "other": operation.other}
    if isinstance(operation, edits.Together):
        return {"operation": "together", "first": operation.first, "last": operation.last}
    names = {kind: name for name, kind in _NAMES.items()}
    data = {"operation": names[type(operation)], "target": operation.target}
    if isinstance(operation, edits.Replace):
        data["steps"] = write_step(operation.step)
    elif isinstance(operation, edits.AddElse):
        data["steps"] = write_steps(operation.steps)
    elif isinstance(operation, edits.SetCondition):
        data["condition"] = write_condition(operation.condition)
    elif isinstance(operation, edits.SetLoopHeader):
        data["header"] = _header(operation.variable, operation)
    return data


def _header(variable: str, operation: edits.Wrap | edits.SetLoopHeader) -> str:
    step = (Call("A", "x"),)
    if variable:
        return loop_header(For(variable, operation.expression, step))
    if isinstance(operation, edits.SetLoopHeader) or operation.loop:
        return loop_header(While(operation.expression, step))
    return f"if {write_condition(operation.expression)}"


_NAMES: dict[str, type[edits.Operation]] = {
    "delete": edits.Delete,
    "delete_else": edits.DeleteElse,
    "replace": edits.Replace,
    "set_condition": edits.SetCondition,
    "negate_condition": edits.NegateCondition,
    "add_else": edits.AddElse,
    "unwrap": edits.Unwrap,
    "set_loop_header": edits.SetLoopHeader,
}


SUFFIX = ".turns"
MAX_TURNS = 1_000  # of one file; the oldest go
MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class Turn:
    """One edit: what was asked, the operations that it became, the file before, and the hash of the file after."""

    request: str
    operations: tuple[str, ...]
    before: str
    after_sha256: str


def edit_file(file: Path, after: bytes, request: str, operations: Sequence[str]) -> int:
    """Replaces the content of a flow's file and records the turn; returns how many turns can be undone now.

    Raises InputError where the file is no text, or its record cannot be read.
    """
    before = _content(file)
    known = _happened(turns(file), before)
    try:
        turn = Turn(request, tuple(operations), before.decode("utf-8"), _hash(after))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: it is not UTF-8 (byte {error.start}); its edits cannot be recorded") from None
    kept = [*known, turn][-MAX_TURNS:]
    _write(file, kept)
    write_atomically(file, partial(_put, after))
    return len(kept)


def undo(file: Path, count: int = 1) -> list[Turn]:
    """Takes back the last turns of a file, byte for byte; returns them, the latest first.

    Raises InputError where there are fewer turns, or the file was changed by something else since.
    """
    content = _content(file)
    known = _happened(turns(file), content)
    if count > len(known):
        raise InputError(f"{file}: {len(known)} turns can be undone, not {count}; {file.name}{SUFFIX} has no more")
    undone = []
    for turn in reversed(known[len(known) - count :]):
        if _hash(content) != turn.after_sha256:
            raise InputError(f"{file}: it was changed since its last turn by something else; nothing was undone")
        content = turn.before.encode()
        undone.append(turn)
    write_atomically(file, partial(_put, content))
    _write(file, known[: len(known) - count])
    return undone


def turns(file: Path) -> list[Turn]:
    """Returns the recorded turns of a file, the first one first; none where there is no record."""
    path = record_of(file)
    if not path.is_file():
        return []
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: it has more than {MAX_BYTES:,} bytes; remove it to begin a new record")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
        return [Turn(**(line | {"operations": tuple(line["operations"])})) for line in lines]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: it is no record of edits ({error}); remove it to begin a new one") from None


def record_of(file: Path) -> Path:
    """Returns the path of the record of a file."""
    return file.with_name(file.name + SUFFIX)


def _happened(known: list[Turn], content: bytes) -> list[Turn]:
    """The turns without a last one before whose effect a process was killed."""
    if known and known[-1].before.encode() == content and known[-1].after_sha256 != _hash(content):
        return known[:-1]
    return known


def _write(file: Path, kept: Sequence[Turn]) -> None:
    lines = "".join(json.dumps(asdict(turn), ensure_ascii=False) + "\n" for turn in kept)
    if lines:
        write_atomically(record_of(file), partial(_put, lines.encode()))
    else:
        record_of(file).unlink(missing_ok=True)


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
