"""The expressions of flows: conditions, iterables and arguments, as a small typed tree that nothing evaluates.

They are read from and written as FEEL (Camunda 8, DMN) and JavaScript (n8n), too.
"""

import json
import math
import re
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


_LONGEST = 100_000
_DEEPEST = 60
_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>\$?[^\W\d]\w*(?:\.[^\W\d]\w*)*)|(?P<sign>\.includes|===|!==|==|!=|<=|>=|&&|\|\||[<>=!(),]))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Dialect:
    """How a language writes what the tree holds."""

    name: str
    both: str
    either: str
    equal: str
    unequal: str
    contains: str  # of a list and an item: a function that tells whether the item is in the list
    method: bool = False  # whether `contains` is a method of the list


FEEL = Dialect("FEEL", "and", "or", "=", "!=", "list contains")
JAVASCRIPT = Dialect("JavaScript", "&&", "||", "===", "!==", "includes", method=True)


def write_dialect(expression: Expression, dialect: Dialect) -> str:
    """Returns the expression in the dialect; equal expressions give equal texts."""
    if isinstance(expression, Literal):
        return constant(expression)
    if isinstance(expression, Path):
        return ".".join(expression.parts)
    if isinstance(expression, Not):
        return (
            f"not({write_dialect(expression.operand, dialect)})"
            if dialect is FEEL
            else f"!({write_dialect(expression.operand, dialect)})"
        )
    if isinstance(expression, Comparison):
        return _comparison(expression, dialect)
    word = dialect.both if isinstance(expression, And) else dialect.either
    parts = [write_dialect(part, dialect) for part in expression.operands]
    wrapped = [
        f"({text})" if isinstance(p, And | Or) else text for p, text in zip(expression.operands, parts, strict=True)
    ]
    return f" {word} ".join(wrapped)


def constant(literal: Literal) -> str:
    """Returns a constant as FEEL, JavaScript and JSON all write it."""
    return json.dumps(literal.value)


def _comparison(comparison: Comparison, dialect: Dialect) -> str:
    left, right = write_dialect(comparison.left, dialect), write_dialect(comparison.right, dialect)
    if comparison.operator in ("in", "not in"):
        text = f"{right}.includes({left})" if dialect.method else f"{dialect.contains}({right}, {left})"
        if comparison.operator == "in":
            return text
        return f"{text} {dialect.equal} false"
    operator = {"==": dialect.equal, "!=": dialect.unequal}.get(comparison.operator, comparison.operator)
    return f"{left} {operator} {right}"


def read_dialect(text: str, dialect: Dialect) -> Expression:
    """Returns the expression of a text in the dialect; raises FlowError with the column."""
    if len(text) > _LONGEST:
        raise FlowError(f"the condition has more than {_LONGEST:,} characters")
    return _Reader(text, dialect).whole()


class _Reader:
    """A recursive-descent parser: or, and, not, comparison, operand."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._dialect = dialect
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise FlowError(f"{text[at:].strip()[:20]!r} is no {dialect.name}", 1, at + 1)
            kind = found.lastgroup or ""
            self._tokens.append((kind, found.group(kind), found.start(kind) + 1))
            at = found.end()
        self._at = 0

    def whole(self) -> Expression:
        expression = self._or(1)
        if self._at < len(self._tokens):
            raise self._error("nothing may follow")
        return expression

    def _error(self, what: str) -> FlowError:
        if self._at >= len(self._tokens):
            return FlowError(f"the {self._dialect.name} condition ends too early", 1, 1)
        _, text, column = self._tokens[self._at]
        return FlowError(f"{what} at {text[:20]!r} in the {self._dialect.name} condition", 1, column)

    def _next(self, *texts: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][0] != "text" and self._tokens[self._at][1] in texts:
            self._at += 1
            return True
        return False

    def _or(self, level: int) -> Expression:
        if level > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} conditions stand inside one another")
        parts = [self._and(level)]
        while self._next("or", "||"):
            parts.append(self._and(level))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self, level: int) -> Expression:
        parts = [self._not(level)]
        while self._next("and", "&&"):
            parts.append(self._not(level))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _not(self, level: int) -> Expression:
        if self._next("not", "!"):
            if level > _DEEPEST:
                raise self._error(f"more than {_DEEPEST} conditions stand inside one another")
            return Not(self._not(level + 1))
        return self._comparison(level)

    def _contains(self) -> Comparison | None:
        words = [token[1] for token in self._tokens[self._at : self._at + 3]]
        if self._dialect.method:
            return self._includes(words)
        if words != ["list", "contains", "("]:
            return None
        self._at += 3
        many = self._operand()
        self._need(",")
        one = self._operand()
        return self._contained(one, many)

    def _includes(self, words: list[str]) -> Comparison | None:
        """Reads `many.includes(one)`; the name before the point may be part of a path."""
        kind, text, _ = self._tokens[self._at] if words else ("", "", 0)
        if kind == "word" and text.endswith(".includes") and words[1:2] == ["("]:
            many: Operand = self._named(text.removesuffix(".includes"))
            self._at += 2
        elif kind in ("text", "number") and words[1:3] == [".includes", "("]:
            many = self._operand()
            self._at += 2
        else:
            return None
        return self._contained(self._operand(), many)

    def _contained(self, one: Operand, many: Operand) -> Comparison:
        self._need(")")
        if self._next("=", "==", "==="):
            if not self._next("false"):
                raise self._error("only false may stand here")
            return Comparison(one, "not in", many)
        return Comparison(one, "in", many)

    def _comparison(self, level: int) -> Expression:
        if (found := self._contains()) is not None:
            return found
        if self._next("("):
            inner = self._or(level + 1)
            self._need(")")
            return inner
        left = self._operand()
        operators: dict[str, Comparator] = {
            **{"=": "==", "==": "==", "===": "==", "!=": "!=", "!==": "!="},
            **{"<": "<", "<=": "<=", ">": ">", ">=": ">="},
        }
        for text, operator in operators.items():
            if self._next(text):
                return Comparison(left, operator, self._operand())
        return left

    def _need(self, text: str) -> None:
        if not self._next(text):
            raise self._error(f"{text!r} is missing")

    def _operand(self) -> Operand:
        if self._at >= len(self._tokens):
            raise self._error("")
        kind, text, _ = self._tokens[self._at]
        if kind == "sign":
            raise self._error("a variable or a constant is missing")
        self._at += 1
        if kind == "number":
            return Literal(float(text) if re.search("[.eE]", text) else int(text))
        if kind == "text":
            return Literal(json.loads(text, strict=False) if text[0] == '"' else text[1:-1].replace("\\'", "'"))
        return self._named(text)

    def _named(self, text: str) -> Operand:
        if text.startswith("$"):  # n8n calls the current item $json
            if not self._dialect.method:
                raise FlowError(f"{text!r} is no name in {self._dialect.name}", 1, 1)
            text = text[1:]
        return Literal(CONSTANTS[text]) if text in CONSTANTS else Path(tuple(text.split(".")))
