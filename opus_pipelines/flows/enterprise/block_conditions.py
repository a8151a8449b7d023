"""Conditions of the block model as encoded queries, and back.

`a^b^ORc` is a and (b or c); `^NQ` is the "or" of whole groups. A truth value is ISNOTEMPTY, its opposite ISEMPTY, and a
comparison with nothing has an empty value.
"""

import re
from collections.abc import Callable

from opus_pipelines.flows.enterprise.documents import FlowDocumentError
from opus_pipelines.flows.enterprise.encoded_queries import AND, NEW_QUERY, OR, Query, Term
from opus_pipelines.workflow.blocks.expressions import (
    COMPARATORS,
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
    Scalar,
)

_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARATORS: dict[str, Comparator] = {written: c for c in COMPARATORS if (written := _OPERATORS.get(c))}
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_PILL = re.compile(r"\{\{([^{}]+)\}\}")
PathText = Callable[[Path], str]
PathOf = Callable[[str], Path]


def query_of(expression: Expression, pill: PathText) -> Query:
    """Returns a condition as a query; `pill` writes a path. Raises FlowDocumentError where no query says the same."""
    groups = expression.operands if isinstance(expression, Or) and _has_and(expression) else (expression,)
    terms: list[Term] = []
    for n, group in enumerate(groups):
        parts = group.operands if isinstance(group, And) else (group,)
        for m, part in enumerate(parts):
            either = part.operands if isinstance(part, Or) else (part,)
            for k, atom in enumerate(either):
                join = OR if k else AND if m or not n else NEW_QUERY
                terms.append(_term(atom, pill, join))
    return Query(tuple(terms))


def condition_of(query: Query, path: PathOf) -> Expression:
    """Returns a query as a condition; `path` reads a field or a pill. Raises FlowDocumentError for other operators."""
    if not query.terms:
        raise FlowDocumentError("the condition is empty")
    groups: list[list[list[Expression]]] = [[[]]]
    for n, term in enumerate(query.terms):
        atom = _atom(term, path)
        if n and term.join == NEW_QUERY:
            groups.append([[atom]])
        elif n and term.join == AND:
            groups[-1].append([atom])
        else:
            groups[-1][-1].append(atom)
    return _joined(Or, [_joined(And, [_joined(Or, either) for either in group]) for group in groups])


def _has_and(expression: Or) -> bool:
    return any(isinstance(part, And) for part in expression.operands)


def _joined(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    flat = [inner for part in parts for inner in (part.operands if isinstance(part, kind) else (part,))]
    return kind(tuple(flat))


def _term(atom: Expression, pill: PathText, join: str) -> Term:
    if isinstance(atom, Path):
        return Term(pill(atom), "ISNOTEMPTY", "", join)
    if isinstance(atom, Not) and isinstance(atom.operand, Path):
        return Term(pill(atom.operand), "ISEMPTY", "", join)
    if not isinstance(atom, Comparison):
        raise FlowDocumentError("a condition nests and, or and not deeper than a query can")
    left, operator, right = atom.left, atom.operator, atom.right
    if operator in ("in", "not in") and isinstance(left, Literal) and isinstance(right, Path):
        return Term(pill(right), "LIKE" if operator == "in" else "NOT LIKE", _value(left), join)
    if not isinstance(left, Path) or operator not in _OPERATORS:
        raise FlowDocumentError(f"a query has no {operator} that begins with a constant or ends with a variable")
    if isinstance(right, Path):
        return Term(pill(left), _OPERATORS[operator], pill(right), join)
    if right.value is None and operator in ("==", "!="):
        return Term(pill(left), _OPERATORS[operator], "", join)
    return Term(pill(left), _OPERATORS[operator], _value(right), join)


def _value(literal: Literal) -> str:
    value = literal.value
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    if not text or _PILL.fullmatch(text) or Literal(_scalar(text)) != literal:
        raise FlowDocumentError(f"a query cannot tell the constant {value!r} from another one")
    return text


def _scalar(text: str) -> Scalar:
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return text


def _atom(term: Term, path: PathOf) -> Expression:
    field = path(term.field.strip("{}"))
    if term.operator in ("ISEMPTY", "ISNOTEMPTY"):
        return Not(field) if term.operator == "ISEMPTY" else field
    if term.operator == "EMPTYSTRING":
        return Comparison(field, "==", Literal(""))
    if term.operator in ("LIKE", "NOT LIKE"):
        return Comparison(_operand(term.value, path), "in" if term.operator == "LIKE" else "not in", field)
    if term.operator in ("IN", "NOT IN"):
        same: Comparator = "==" if term.operator == "IN" else "!="
        parts: list[Expression] = [Comparison(field, same, _operand(v, path)) for v in term.value.split(",")]
        return _joined(Or if term.operator == "IN" else And, parts)
    if term.operator == "BETWEEN":
        low, _, high = term.value.partition("@")
        return And((Comparison(field, ">=", _operand(low, path)), Comparison(field, "<=", _operand(high, path))))
    if term.operator not in _COMPARATORS:
        raise FlowDocumentError(f"the block model has no {term.operator}")
    right = Literal(None) if not term.value else _operand(term.value, path)
    return Comparison(field, _COMPARATORS[term.operator], right)


def _operand(text: str, path: PathOf) -> Operand:
    found = _PILL.fullmatch(text)
    return path(found[1].strip()) if found else Literal(_scalar(text))


def path_of(text: str) -> Path:
    """Returns `a.b.c` as a path. Raises FlowDocumentError where the block model has no such name."""
    try:
        return Path(tuple(text.strip().split(".")))
    except FlowError:
        raise FlowDocumentError(f"{text[:60]!r} is no variable with attributes") from None
