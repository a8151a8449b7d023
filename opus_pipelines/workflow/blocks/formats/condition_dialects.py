"""Conditions as FEEL (Camunda 8, DMN) and as JavaScript (n8n): parsed into the same typed tree and printed from it."""

import json
import re
from dataclasses import dataclass

from opus_pipelines.workflow.blocks.expressions import (
    CONSTANTS,
    And,
    Comparator,
    Comparison,
    Expression,
    FlowError,
    Literal,
    Not,
    Operand,
    Or,
    Path,
)

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
