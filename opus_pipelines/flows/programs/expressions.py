"""Evaluates the conditions and operands of formal instructions on the variables of a run."""

from collections.abc import Callable, Mapping
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.programs.values import Value
from opus_pipelines.workflow.blocks.expressions import And, Comparison, Expression, Literal, Not, Or, Path


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


def evaluate(expression: Expression, variables: Mapping[str, Value]) -> Any:
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


def value_of(operand: Literal | Path, variables: Mapping[str, Value]) -> Value:
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


def plain(content: Any) -> Value:
    """Returns a content of Python as a value of its plain type."""
    if isinstance(content, Value):
        return content
    for kind, name in _TYPES:
        if isinstance(content, kind):
            return Value(name, content)
    if isinstance(content, list | tuple):
        return Value("list", content)
    return Value("record", dict(content)) if isinstance(content, Mapping) else Value("none", content)
