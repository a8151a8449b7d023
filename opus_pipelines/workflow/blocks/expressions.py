"""The expressions of flows: conditions, iterables and arguments, as a small typed tree that nothing evaluates."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Literal as OneOf
from typing import TypeAlias, get_args
from unicodedata import normalize

from opus_pipelines.core.errors import InputError

Scalar: TypeAlias = str | int | float | bool | None
Comparator = OneOf["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
COMPARATORS: tuple[Comparator, ...] = get_args(Comparator)
OPPOSITE: dict[Comparator, Comparator] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
}


CONSTANTS = {"true": True, "false": False, "null": None, "Null": None, "none": None, "NULL": None}
USER_TASK = "user_task"


class FlowError(InputError):
    """A flow, its file or an edit of it is not well formed. `line` and `column` count from 1 where they are known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if line is None else f"line {line}" + ("" if column is None else f", column {column}") + ": "
        super().__init__(place + message)
        self.line, self.column = line, column


def is_name(text: str) -> bool:
    """Returns whether a variable may be called so: an identifier that is no keyword and no constant."""
    return _is_identifier(text) and text not in CONSTANTS and text != USER_TASK


def check_text(text: str) -> None:
    """Raises FlowError where a text has half a surrogate pair, which no file can hold."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise FlowError(f"{text!r} is no Unicode text")


def _is_identifier(text: str) -> bool:
    plain = text.isidentifier() and not iskeyword(text) and not text.startswith("__")
    return plain and normalize("NFKC", text) == text


@dataclass(frozen=True, eq=False)
class Literal:
    """A constant. Constants of different types are different: `True` is not `1`."""

    value: Scalar

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise FlowError(f"the number {self.value} is not finite")
        if isinstance(self.value, str):
            check_text(self.value)
        if isinstance(self.value, int) and not -(2**63) <= self.value < 2**63:
            raise FlowError("a whole number has more than 64 bits")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)


@dataclass(frozen=True)
class Path:
    """A variable and the attributes read from it: `issue.priority` is `Path(("issue", "priority"))`."""

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.parts or not is_name(self.parts[0]) or not all(map(_is_identifier, self.parts[1:])):
            raise FlowError(f"{'.'.join(self.parts)!r} is no variable with attributes")


Operand: TypeAlias = Literal | Path


@dataclass(frozen=True)
class Comparison:
    """Two operands and one of `COMPARATORS` between them."""

    left: Operand
    operator: Comparator
    right: Operand

    def __post_init__(self) -> None:
        if self.operator not in COMPARATORS:
            raise FlowError(f"{self.operator!r} is no comparison; known are {', '.join(COMPARATORS)}")


@dataclass(frozen=True)
class Not:
    """The opposite of a condition."""

    operand: "Expression"


@dataclass(frozen=True)
class And:
    """Two conditions or more, all of which hold."""

    operands: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _check_operands("and", self.operands)


@dataclass(frozen=True)
class Or:
    """Two conditions or more, at least one of which holds."""

    operands: tuple["Expression", ...]

    def __post_init__(self) -> None:
        _check_operands("or", self.operands)


Expression: TypeAlias = Literal | Path | Comparison | Not | And | Or


def _check_operands(word: str, operands: tuple[Expression, ...]) -> None:
    if len(operands) < 2:
        raise FlowError(f"{word!r} has {len(operands)} operands; it needs two or more")


def negated(condition: Expression) -> Expression:
    """Returns the opposite condition in its shortest form: `!=` becomes `==`, and `not x` becomes `x`."""
    if isinstance(condition, Not):
        return condition.operand
    if isinstance(condition, Comparison):
        return replace(condition, operator=OPPOSITE[condition.operator])
    return Not(condition)


def map_paths(expression: Expression, change: Callable[[Path], Path]) -> Expression:
    """Returns the expression with every path changed."""
    if isinstance(expression, Path):
        return change(expression)
    if isinstance(expression, Comparison):
        return Comparison(_operand(expression.left, change), expression.operator, _operand(expression.right, change))
    if isinstance(expression, Not):
        return Not(map_paths(expression.operand, change))
    if isinstance(expression, And):
        return And(tuple(map_paths(part, change) for part in expression.operands))
    if isinstance(expression, Or):
        return Or(tuple(map_paths(part, change) for part in expression.operands))
    return expression


def _operand(operand: Operand, change: Callable[[Path], Path]) -> Operand:
    return change(operand) if isinstance(operand, Path) else operand


def paths(expression: Expression) -> list[Path]:
    """Returns every path of the expression from left to right."""
    found: list[Path] = []

    def note(path: Path) -> Path:
        found.append(path)
        return path

    map_paths(expression, note)
    return found
