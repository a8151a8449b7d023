"""Typed values and tools, and the conditions and operands of instructions that are evaluated on the variables of a run.

A tool states what it takes and gives, and is held to it, to its time and to its type.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.workflow.blocks.expressions import And, Comparison, Expression, Literal, Not, Or, Path

_PLAIN: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list, tuple),
    "record": (dict,),
}


class ToolError(OpusError):
    """A tool failed; `status` is failed, hanging, wrong_type or bad_arguments."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class TypedValue:
    """A content with the name of its type: text, number, boolean, list, record, or a type of the tools' own."""

    type: str
    content: Any

    def __post_init__(self) -> None:
        plain = _PLAIN.get(self.type)
        is_flag = isinstance(self.content, bool) and self.type == "number"
        if plain is not None and (not isinstance(self.content, plain) or is_flag):
            raise InputError(f"a value of the type {self.type} holds a {type(self.content).__name__}")

    @property
    def text(self) -> str:
        """The content as the answer of a step."""
        if isinstance(self.content, bool):
            return "Yes" if self.content else "No"
        if isinstance(self.content, list | tuple):
            return ", ".join(map(str, self.content))
        return str(self.content)


@dataclass(frozen=True)
class Tool:
    """A tool: its name, its arguments with their types, the type that it gives, and the function that does it.

    `run` takes the contents of the arguments by name and returns the content, or a `Value`. `seconds`: the longest that
    it may take. `cost_usd` and `duration_ms` are figures of one call where they are known. Tools are pure: the same
    arguments give the same content, so that answers are kept by content.
    """

    name: str
    about: str
    run: Callable[..., Any]
    takes: Mapping[str, str] = field(default_factory=dict)
    gives: str = "text"
    seconds: float = 10.0
    version: int = 1
    cost_usd: float | None = None
    duration_ms: float | None = None


class Toolbox:
    """Tools by name; a second tool of one name is refused."""

    def __init__(self, tools: tuple[Tool, ...] = ()) -> None:
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise InputError(f"two tools have the name {tool.name!r}; rename one")
            self.tools[tool.name] = tool

    @property
    def version(self) -> str:
        """What answers depend on: names and versions of all tools."""
        return ",".join(f"{tool.name}-{tool.version}" for tool in self.tools.values())

    def call(self, name: str, arguments: Mapping[str, TypedValue]) -> TypedValue:
        """Returns what the tool gives.

        Raises ToolError where there is no such tool, where arguments are missing, unknown or of another type, where the
        tool raises, takes too long, or gives another type than it states.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise ToolError("bad_arguments", f"there is no tool {name!r}; there are: {', '.join(self.tools) or 'none'}")
        if set(arguments) != set(tool.takes):
            wanted = ", ".join(f"{k}: {v}" for k, v in tool.takes.items()) or "no arguments"
            raise ToolError(
                "bad_arguments", f"{name} takes {wanted}, and was given {', '.join(arguments) or 'nothing'}"
            )
        for key, value in arguments.items():
            if value.type != tool.takes[key]:
                raise ToolError("bad_arguments", f"{name}: {key} is a {value.type}, and must be a {tool.takes[key]}")
        contents = {key: value.content for key, value in arguments.items()}
        given = _within(tool, contents)
        try:
            value = given if isinstance(given, TypedValue) else TypedValue(tool.gives, given)
        except InputError as error:
            raise ToolError("wrong_type", f"{name} states that it gives a {tool.gives}: {error}") from None
        if value.type != tool.gives:
            raise ToolError("wrong_type", f"{name} states that it gives a {tool.gives}, and gave a {value.type}")
        return value


def _within(tool: Tool, contents: Mapping[str, Any]) -> Any:
    """Runs a tool in a thread of its own. One that hangs is left to itself: a thread cannot be ended."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(tool.run(**contents))
        except BaseException as error:  # whatever a foreign tool raises, the run goes on and names it
            failed.append(error)

    if tool.seconds <= 0:  # a tool of our own that cannot hang: no thread is needed
        work()
    else:
        thread = threading.Thread(target=work, daemon=True, name=f"tool {tool.name}")
        thread.start()
        thread.join(tool.seconds)
        if thread.is_alive():
            raise ToolError("hanging", f"{tool.name} took more than {tool.seconds:g} s")
    if failed:
        raise ToolError("failed", f"{tool.name}: {type(failed[0]).__name__}: {failed[0]}")
    return found[0]


class EvaluationError(OpusError):
    """A condition cannot be evaluated: a variable is not there, or two values cannot be compared."""


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
_TYPES: tuple[tuple[type, str], ...] = ((bool, "boolean"), (int, "number"), (float, "number"), (str, "text"))


def evaluate(expression: Expression, variables: Mapping[str, TypedValue]) -> Any:
    """Returns the content that an expression has. Raises EvaluationError where it has none."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Path):
        return value_of(expression, variables).content
    if isinstance(expression, Not):
        return not evaluate(expression.operand, variables)
    if isinstance(expression, And):
        return all(evaluate(part, variables) for part in expression.operands)
    if isinstance(expression, Or):
        return any(evaluate(part, variables) for part in expression.operands)
    assert isinstance(expression, Comparison)
    left, right = evaluate(expression.left, variables), evaluate(expression.right, variables)
    try:
        return _COMPARE[expression.operator](left, right)
    except TypeError:
        kinds = f"{type(left).__name__} and {type(right).__name__}"
        raise EvaluationError(f"{kinds} cannot be compared with {expression.operator!r}") from None


def value_of(operand: Literal | Path, variables: Mapping[str, TypedValue]) -> TypedValue:
    """Returns an operand as a typed value. Raises EvaluationError for a variable or an attribute that is not there."""
    if isinstance(operand, Literal):
        return plain(operand.value)
    name, *attributes = operand.parts
    if name not in variables:
        raise EvaluationError(f"no step has set the variable {name!r}")
    value = variables[name]
    for attribute in attributes:
        if not isinstance(value.content, Mapping) or attribute not in value.content:
            raise EvaluationError(f"{'.'.join(operand.parts)} has no attribute {attribute!r}")
        value = plain(value.content[attribute])
    return value


def plain(content: Any) -> TypedValue:
    """Returns a content of Python as a value of its plain type."""
    if isinstance(content, TypedValue):
        return content
    for kind, name in _TYPES:
        if isinstance(content, kind):
            return TypedValue(name, content)
    if isinstance(content, list | tuple):
        return TypedValue("list", content)
    return TypedValue("record", dict(content)) if isinstance(content, Mapping) else TypedValue("none", content)
