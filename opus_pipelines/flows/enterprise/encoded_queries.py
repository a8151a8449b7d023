"""Encoded queries: `<column><operator><value>` joined by ^ (and), ^OR and ^NQ (a new query), with an optional ^EQ at
the end. A value that holds ^ or begins with a quote stands in double quotes, where "" is one quote.
"""

import re
from dataclasses import dataclass

from opus_pipelines.flows.enterprise.documents import FlowDocumentError

LONGEST = 100_000  # characters of a query
AND, OR, NEW_QUERY = "^", "^OR", "^NQ"
END = "^EQ"
WITHOUT_VALUE = frozenset({"ISEMPTY", "ISNOTEMPTY", "EMPTYSTRING", "VALCHANGES"})
OPERATORS = (
    "RELATIVEGT",
    "RELATIVEGE",
    "RELATIVELE",
    "RELATIVELT",
    "CHANGESFROM",
    "CHANGESTO",
    "VALCHANGES",
    "EMPTYSTRING",
    "ISNOTEMPTY",
    "STARTSWITH",
    "NOT LIKE",
    "ENDSWITH",
    "ISEMPTY",
    "BETWEEN",
    "NOT IN",
    "SAMEAS",
    "NOTON",
    "LIKE",
    "IN",
    "ON",
    "!=",
    ">=",
    "<=",
    "=",
    ">",
    "<",
)
_MAY_BE_EMPTY = frozenset({"=", "!="})
_TERM = re.compile(
    rf"(?P<field>\{{\{{[^{{}}^]+\}}\}}|[A-Za-z_][\w.]*?)\s*(?P<operator>{'|'.join(OPERATORS)})", re.ASCII
)
_FOREIGN = {"≠": "!=", "≤": "<=", "≥": ">=", "＝": "=", "＞": ">", "＜": "<", "=>": ">=", "=<": "<=", "<>": "!="}
_FOREIGN_TERM = re.compile(rf"[\w.{{}}]+?\s*({'|'.join(map(re.escape, _FOREIGN))})")
_TYPOGRAPHIC = "“”„«»‘’‚‹›"


class QueryError(FlowDocumentError):
    """An encoded query is not well formed. `position` counts characters from 1."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"character {position}: {message}")
        self.position = position


@dataclass(frozen=True)
class Term:
    """One condition. `join` says how it hangs on the term before it; the first term's is ^. `value` has no quotes."""

    field: str
    operator: str
    value: str = ""
    join: str = AND


@dataclass(frozen=True)
class Query:
    """The terms of a query in order, and whether it ends with ^EQ."""

    terms: tuple[Term, ...] = ()
    has_end: bool = False


def parse(text: str) -> Query:
    """Returns the query of a text; an empty text has no terms. Raises QueryError with the place of the first error."""
    if len(text) > LONGEST:
        raise QueryError(f"the query has more than {LONGEST:,} characters", LONGEST + 1)
    terms: list[Term] = []
    place, join, has_end = 0, AND, False
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None:
            raise _unknown(text, place)
        field, operator = found["field"], found["operator"]
        value, after = _value(text, found.end(), operator)
        if operator == "BETWEEN" and value.count("@") != 1:
            raise QueryError("BETWEEN needs two values with @ between them", found.end() + 1)
        terms.append(Term(field, operator, value, join))
        if after == len(text):
            break
        if text.startswith(END, after) and after + len(END) == len(text):
            has_end = True
            break
        join = next(j for j in (NEW_QUERY, OR, AND) if text.startswith(j, after))
        if re.match(r"ORDERBY|GROUPBY", text[after + 1 :]):
            raise QueryError("ORDERBY and GROUPBY are no conditions", after + 2)
        place = after + len(join)
        if place == len(text):
            raise QueryError(f"nothing follows {join}", after + 1)
    return Query(tuple(terms), has_end)


def write(query: Query) -> str:
    """Returns the query as text; `parse` reads it back as the same query."""
    parts = [
        (term.join if n else "") + term.field + term.operator + _quoted(term) for n, term in enumerate(query.terms)
    ]
    return "".join(parts) + (END if query.has_end else "")


def _value(text: str, place: int, operator: str) -> tuple[str, int]:
    """The value that begins at `place`, and where it ends."""
    start = place
    if text[place : place + 1] == '"':
        letters = []
        place += 1
        while place < len(text):
            if text.startswith('""', place):
                letters.append('"')
                place += 2
            elif text[place] == '"':
                place += 1
                break
            else:
                letters.append(text[place])
                place += 1
        else:
            raise QueryError("the quote is not closed", start + 1)
        if place < len(text) and text[place] != "^":
            raise QueryError("^ or the end must follow the closing quote", place + 1)
        value = "".join(letters)
    else:
        place = text.find("^", place)
        place = len(text) if place < 0 else place
        value = text[start:place]
        if value[:1] and value[0] in _TYPOGRAPHIC:
            raise QueryError(f'the typographic quote {value[0]} opens no value; write "', start + 1)
        if value[:1] in _FOREIGN or value[:1] in ("=", ">", "<"):
            raise QueryError(f"a second operator {value[0]!r} follows {operator}", start + 1)
    if operator in WITHOUT_VALUE and value:
        raise QueryError(f"{operator} takes no value", start + 1)
    if not value and operator not in WITHOUT_VALUE | _MAY_BE_EMPTY:
        raise QueryError(f"{operator} needs a value", start + 1)
    return value, place


def _quoted(term: Term) -> str:
    value = term.value
    if "^" in value or value.startswith('"') or value[:1] in _TYPOGRAPHIC or value[:1] in ("=", ">", "<", *_FOREIGN):
        return '"' + value.replace('"', '""') + '"' if value else ""
    return value


def _unknown(text: str, place: int) -> QueryError:
    foreign = _FOREIGN_TERM.match(text, place)
    if foreign:
        sign = foreign[1]
        return QueryError(f"the operator {sign} is not known; write {_FOREIGN[sign]}", foreign.start(1) + 1)
    end = text.find("^", place)
    shown = text[place : len(text) if end < 0 else end][:60]
    if not shown:
        return QueryError("a condition is missing", place + 1)
    return QueryError(f"{shown!r} is no column, operator and value; operators are {', '.join(OPERATORS)}", place + 1)
