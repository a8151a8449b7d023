"""The values of inputs: encoded queries, and data pills.

An encoded query is `<column><operator><value>` joined by ^ (and), ^OR and ^NQ (a new query), with an optional ^EQ at
the end. A value that holds ^ or begins with a quote stands in double quotes, where "" is one quote.

A pill `{{step.output.column}}` stands for an output of an earlier step that is in scope. A step is named by the type of
the trigger, or by its definition in lower case: the nearest earlier one in scope; `definition_3` is the one of order 3.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.enterprise.catalogue import Catalogue, Slot, Step
from opus_pipelines.flows.enterprise.documents import FOREACH, Component, FlowDocument, FlowDocumentError

_LONGEST_QUERY = 100_000  # characters of a query
AND, OR, NEW_QUERY = "^", "^OR", "^NQ"
_END = "^EQ"
WITHOUT_VALUE = frozenset({"ISEMPTY", "ISNOTEMPTY", "EMPTYSTRING", "VALCHANGES"})
QUERY_OPERATORS = (
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
    rf"(?P<field>\{{\{{[^{{}}^]+\}}\}}|[A-Za-z_][\w.]*?)\s*(?P<operator>{'|'.join(QUERY_OPERATORS)})", re.ASCII
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
class EncodedQuery:
    """The terms of a query in order, and whether it ends with ^EQ."""

    terms: tuple[Term, ...] = ()
    has_end: bool = False


def parse_query(text: str) -> EncodedQuery:
    """Returns the query of a text; an empty text has no terms. Raises QueryError with the place of the first error."""
    if len(text) > _LONGEST_QUERY:
        raise QueryError(f"the query has more than {_LONGEST_QUERY:,} characters", _LONGEST_QUERY + 1)
    terms: list[Term] = []
    place, join, has_end = 0, AND, False
    while place < len(text):
        term = _TERM.match(text, place)
        if term is None:
            raise _unknown(text, place)
        field, operator = term["field"], term["operator"]
        value, after = _value(text, term.end(), operator)
        if operator == "BETWEEN" and value.count("@") != 1:
            raise QueryError("BETWEEN needs two values with @ between them", term.end() + 1)
        terms.append(Term(field, operator, value, join))
        if after == len(text):
            break
        if text.startswith(_END, after) and after + len(_END) == len(text):
            has_end = True
            break
        join = next(j for j in (NEW_QUERY, OR, AND) if text.startswith(j, after))
        if re.match(r"ORDERBY|GROUPBY", text[after + 1 :]):
            raise QueryError("ORDERBY and GROUPBY are no conditions", after + 2)
        place = after + len(join)
        if place == len(text):
            raise QueryError(f"nothing follows {join}", after + 1)
    return EncodedQuery(tuple(terms), has_end)


def query_text(query: EncodedQuery) -> str:
    """Returns the query as text; `parse` reads it back as the same query."""
    parts = [
        (term.join if n else "") + term.field + term.operator + _quoted(term) for n, term in enumerate(query.terms)
    ]
    return "".join(parts) + (_END if query.has_end else "")


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
    return QueryError(
        f"{shown!r} is no column, operator and value; operators are {', '.join(QUERY_OPERATORS)}", place + 1
    )


PILL = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
MOST_DEPTH = 100


@dataclass(frozen=True)
class PillValue:
    """What a pill stands for: a type of the catalogue, and the table of a record or of records."""

    type: str
    table: str = ""


@dataclass(frozen=True)
class PillError:
    """Why a pill stands for nothing."""

    code: str
    message: str


def pills_of(text: str) -> list[str]:
    """Returns the paths of the pills in a text."""
    return PILL.findall(text)


def single_pill(value: object) -> str | None:
    """Returns the path where the value is one pill and nothing else."""
    match = PILL.fullmatch(value.strip()) if isinstance(value, str) else None
    return match[1] if match else None


def column_pill(record: str, path: str) -> str:
    """Returns the pill of a column of the record that a pill stands for."""
    return record.removesuffix("}}") + "." + path + "}}"


class Scopes:
    """Which steps of a flow a component can see, and what their outputs are."""

    def __init__(self, flow: FlowDocument, catalogue: Catalogue) -> None:
        self._flow, self._catalogue = flow, catalogue
        self._parents = {c.order: c.block for c in flow.components}
        self._places = {id(c): n for n, c in enumerate(flow.components)}
        self._named: dict[str, list[Component]] = {}
        for component in flow.components:
            self._named.setdefault(component.definition.lower(), []).append(component)
            self._named.setdefault(f"{component.definition.lower()}_{component.order}", []).append(component)
            if component.alias:
                self._named.setdefault(component.alias.lower(), []).append(component)
        self._tables: dict[int, str] = {}
        for component in flow.components:  # in list order, so that a long chain of records needs no recursion
            self.table_of(component)

    def resolve(self, path: str, component: Component | None) -> PillValue | PillError:
        """Returns what a pill stands for in a component (None: in the trigger), or why it stands for nothing."""
        if not _PATH.fullmatch(path):
            return PillError("pill_unknown_step", f"{path[:60]!r} is no step with an output")
        step, output, *columns = path.split(".")
        trigger = self._flow.trigger
        if trigger is not None and step.lower() in (trigger.type, "trigger"):
            if component is None:
                return PillError("pill_later", "the trigger cannot use its own outputs")
            entry = self._catalogue.triggers.get(trigger.type)
            table = next((str(i.value) for i in trigger.inputs if i.name == "table"), "")
            return self._output(path, entry, table, [output, *columns])
        if step.lower() in ("inputs", "subflow_inputs") and self._flow.is_subflow:
            names = {item["name"] for item in self._flow.inputs}
            return PillValue("text") if output in names else PillError("pill_unknown_output", f"no input {output!r}")
        named = self._named.get(step.lower(), [])
        if component is not None:
            earlier = self._earlier(step, component)
            source = self.source(step, component)
            if source is not None:
                entry = self._catalogue.step(source)
                return self._output(path, entry, self.table_of(source), [output, *columns])
            if earlier:
                return PillError("pill_out_of_scope", f"{earlier[-1].element} is in a block that this one is not in")
        if named:
            return PillError("pill_later", f"{named[0].element} does not come before it")
        return PillError("pill_unknown_step", f"no step is called {step!r}")

    def source(self, name: str, component: Component) -> Component | None:
        """Returns the nearest earlier step of this name that a component sees, None where there is none."""
        return next((c for c in reversed(self._earlier(name, component)) if self.sees(component, c)), None)

    def _earlier(self, name: str, component: Component) -> list[Component]:
        named = self._named.get(name.lower(), [])
        return named[: bisect_left(named, self._places[id(component)], key=lambda c: self._places[id(c)])]

    def sees(self, component: Component, source: Component) -> bool:
        """Returns whether the block of `source` holds `component`; the item of a loop is seen inside the loop only."""
        blocks = self._blocks(component)
        return source.order in blocks if source.name == FOREACH and source.is_logic else source.block in blocks

    def _blocks(self, component: Component) -> list[int | None]:
        blocks: list[int | None] = [component.block]
        while blocks[-1] is not None and len(blocks) < MOST_DEPTH:
            blocks.append(self._parents.get(blocks[-1]))
        return blocks

    def table_of(self, source: Component) -> str:
        """Returns the table of a step's record outputs: its input `table`, its record's, or that of its items."""
        if id(source) not in self._tables:
            self._tables[id(source)] = ""
            self._tables[id(source)] = self._table_of(source)
        return self._tables[id(source)]

    def _table_of(self, source: Component) -> str:
        if isinstance(table := source.input("table"), str):
            return table
        for name in ("items", "record"):
            path = single_pill(source.input(name))
            if path is not None:
                value = self.resolve(path, source)
                return value.table if isinstance(value, PillValue) else ""
        return ""

    def _output(self, path: str, entry: Step | None, table: str, names: Sequence[str]) -> PillValue | PillError:
        if entry is None:
            return PillError("pill_unknown_step", f"the step of {path!r} is not in the catalogue")
        slot: Slot | None = entry.outputs.get(names[0])
        if slot is None:
            outputs = ", ".join(entry.outputs) or "none"
            return PillError("pill_unknown_output", f"{entry.name} has no output {names[0]!r}; it has {outputs}")
        value = PillValue(slot.type, slot.table or table)
        if len(names) == 1:
            return value
        if value.type != "record":
            return PillError("pill_unknown_output", f"{names[0]} of {entry.name} has no columns")
        column = self._catalogue.column(value.table, ".".join(names[1:]))
        if column is None:
            return PillError("unknown_column", f"{value.table or 'the record'} has no column {'.'.join(names[1:])!r}")
        if column.reference:
            return PillValue("record", column.reference)
        return PillValue(column.type)
