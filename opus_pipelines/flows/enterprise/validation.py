"""The errors of a flow's structure (the paper names ELSE without IF; the rest follow from its rules), each with the
element that it is in. `structure_errors` lists all of them; a flow without one is sound for its catalogue.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from opus_pipelines.core.formatting import clean
from opus_pipelines.flows.enterprise.catalogue import Catalogue, Slot, Step
from opus_pipelines.flows.enterprise.documents import (
    CATCH,
    DOUNTIL,
    ELSE,
    ELSEIF,
    FLOW_LOGIC,
    FOREACH,
    IF,
    PARALLEL,
    TRY,
    Component,
    FlowDocument,
    Input,
)
from opus_pipelines.flows.enterprise.values import (
    MOST_DEPTH,
    EncodedQuery,
    PillError,
    PillValue,
    QueryError,
    Scopes,
    parse_query,
    pills_of,
    single_pill,
)

MOST_ERRORS = 1_000
_WHOLE = re.compile(r"-?\d+")
_DURATION = re.compile(r"\d+ (?:second|minute|hour|day|week)s?")
_NUMERIC = ("integer", "boolean", "choice", "date")


@dataclass(frozen=True)
class StructureError:
    """What is wrong (`code`), where (`element`), and the reason."""

    code: str
    element: str
    message: str


def structure_errors(flow: FlowDocument, catalogue: Catalogue) -> list[StructureError]:
    """Returns all errors of a flow in reading order, at most 1,000; none means that it is sound."""
    errors: list[StructureError] = []
    for error in _all(flow, catalogue):
        errors.append(error)
        if len(errors) == MOST_ERRORS:
            break
    return errors


def _all(flow: FlowDocument, catalogue: Catalogue) -> Iterator[StructureError]:
    yield from _trigger_errors(flow, catalogue)
    yield from _order_errors(flow)
    yield from _block_errors(flow)
    inputs = _Inputs(flow, catalogue)
    if flow.trigger is not None and flow.trigger.type in catalogue.triggers:
        yield from inputs.errors(catalogue.triggers[flow.trigger.type], flow.trigger.inputs, None)
    for component in flow.components:
        step = catalogue.step(component)
        if step is None:
            yield _error("unknown_step", component.element, f"{component.definition} is not in the catalogue")
        else:
            yield from inputs.errors(step, component.inputs, component)


def _error(code: str, element: str, message: str) -> StructureError:
    return StructureError(code, clean(element)[:200], clean(message)[:400])


def _trigger_errors(flow: FlowDocument, catalogue: Catalogue) -> Iterator[StructureError]:
    if not flow.triggers and not flow.is_subflow:
        yield _error("trigger_missing", "trigger", "the flow has no trigger")
    if len(flow.triggers) > 1:
        yield _error("trigger_duplicate", "trigger", f"the flow has {len(flow.triggers)} triggers")
    for trigger in flow.triggers:
        if trigger.type not in catalogue.triggers:
            yield _error("unknown_trigger", "trigger", f"{trigger.type} is no trigger of the catalogue")


def _order_errors(flow: FlowDocument) -> Iterator[StructureError]:
    seen: set[int] = set()
    last = None
    for component in flow.components:
        if component.order in seen:
            yield _error("order_duplicate", component.element, "another component has this order")
        elif last is not None and component.order <= last:
            yield _error("order_not_increasing", component.element, f"it comes after order {last}")
        seen.add(component.order)
        last = component.order


def _block_errors(flow: FlowDocument) -> Iterator[StructureError]:
    places = {c.order: (n, c) for n, c in reversed(list(enumerate(flow.components)))}
    children = flow.children()
    following = {id(a): b for siblings in children.values() for a, b in pairwise(siblings)}
    before: dict[int | None, Component] = {}
    depth: dict[int | None, int] = {None: 0}
    for n, component in enumerate(flow.components):
        if component.block is not None:
            if component.block not in places:
                yield _error("block_missing", component.element, f"no component has the order {component.block}")
            elif places[component.block][0] >= n:
                yield _error("block_later", component.element, f"its block {component.block} does not come before it")
            elif not places[component.block][1].is_logic:
                named = places[component.block][1].element
                yield _error("block_not_container", component.element, f"{named} holds no steps")
        depth.setdefault(component.order, depth.get(component.block, 0) + 1)
        if depth[component.order] > MOST_DEPTH:
            yield _error("nested_too_deeply", component.element, f"more than {MOST_DEPTH} components stand around it")
        if component.is_logic:
            yield from _logic_errors(component, before.get(component.block), len(children.get(component.order, ())))
            if component.name == TRY:
                after = following.get(id(component))
                if after is None or not after.is_logic or after.name != CATCH:
                    yield _error("try_without_catch", component.element, "CATCH must follow in the same block")
        before[component.block] = component


def _logic_errors(component: Component, before: Component | None, size: int) -> Iterator[StructureError]:
    last = before.name if before is not None and before.category == FLOW_LOGIC else ""
    if component.name in (ELSE, ELSEIF) and last not in (IF, ELSEIF):
        code = "else_without_if"
        yield _error(code, component.element, f"{component.name} must follow IF or ELSEIF in the same block")
    if component.name == CATCH and last != TRY:
        yield _error("catch_without_try", component.element, "CATCH must follow TRY in the same block")
    if component.name == PARALLEL and size < 2:
        yield _error("parallel_few_branches", component.element, f"it has {size} branches; it needs two or more")
    elif component.name in (IF, ELSEIF, FOREACH, DOUNTIL, TRY) and size == 0:
        yield _error("empty_body", component.element, "it holds no step")


class _Inputs:
    """The errors in the inputs of a flow's steps."""

    def __init__(self, flow: FlowDocument, catalogue: Catalogue) -> None:
        self._catalogue, self._scopes = catalogue, Scopes(flow, catalogue)

    def errors(self, step: Step, given: tuple[Input, ...], component: Component | None) -> Iterator[StructureError]:
        """Yields the errors of one step; `component` is None for the trigger."""
        owner = "trigger" if component is None else component.element
        values = {i.name: i.value for i in given}
        for slot in step.inputs.values():
            if slot.is_mandatory and values.get(slot.name) in (None, ""):
                yield _error("missing_input", owner, f"the mandatory input {slot.name} is not given")
        table = values.get("table")
        if table is None and component is not None:
            table = self._scopes.table_of(component)
        for name, value in values.items():
            element = f"{owner}, input {name}"
            slot_ = step.inputs.get(name)
            if slot_ is None:
                names = ", ".join(step.inputs) or "none"
                yield _error("unknown_input", element, f"{step.name} has no such input; it has {names}")
                continue
            texts = [value] if isinstance(value, str) else []
            wrong = [self._scopes.resolve(path, component) for text in texts for path in pills_of(text)]
            yield from (_error(w.code, element, w.message) for w in wrong if isinstance(w, PillError))
            if value not in (None, "") and not any(isinstance(w, PillError) for w in wrong):
                is_logic = step.category == FLOW_LOGIC
                yield from self._value_errors(slot_, value, element, (component, "" if is_logic else str(table or "")))

    def _value_errors(
        self, slot: Slot, value: object, element: str, context: tuple[Component | None, str]
    ) -> Iterator[StructureError]:
        component, table = context
        path = single_pill(value)
        resolved = self._scopes.resolve(path, component) if path is not None else None
        if slot.type == "table":
            if value not in self._catalogue.tables:
                yield _error("unknown_table", element, f"{value} is no table of the catalogue")
        elif slot.type == "records":
            if not isinstance(resolved, PillValue) or resolved.type != "records":
                code = "foreach_not_list" if slot.name == "items" else "wrong_type"
                yield _error(code, element, "a list output of an earlier step is expected")
        elif slot.type == "record":
            if not isinstance(resolved, PillValue) or resolved.type != "record":
                yield _error("wrong_type", element, "a record output of an earlier step is expected")
        elif slot.type in ("query", "fields"):
            if not isinstance(value, str):
                yield _error("wrong_type", element, "an encoded query is a text")
            elif resolved is None:
                yield from self._query_errors(value, element, (table, slot.type))
        elif not _fits(slot.type, value, resolved):
            yield _error("wrong_type", element, f"{str(value)[:60]!r} is no {slot.type}")

    def _query_errors(self, text: str, element: str, context: tuple[str, str]) -> Iterator[StructureError]:
        table, kind = context
        try:
            query: EncodedQuery = parse_query(text)
        except QueryError as error:
            yield _error("query_unparsable", element, str(error))
            return
        for term in query.terms:
            if kind == "fields" and (term.operator != "=" or term.join != "^"):
                yield _error("query_unparsable", element, f"a value is set with =, not with {term.join}{term.operator}")
            path = single_pill(term.field)
            if path is not None:
                continue  # its columns were checked with the pills
            if not table:
                yield _error("unknown_column", element, f"{term.field}: the table is not known; name a pill")
                continue
            if table not in self._catalogue.tables:
                continue  # reported with the input `table`
            column = self._catalogue.column(table, term.field)
            if column is None:
                yield _error("unknown_column", element, f"{table} has no column {term.field}")
                continue
            checked = term.operator in ("=", "!=", "IN", "NOT IN", "CHANGESTO", "CHANGESFROM")
            values = term.value.split(",") if "IN" in term.operator else [term.value]
            for value in values if checked else ():
                if not _allowed(column.type, column.choices, value):
                    yield _error("unknown_value", element, f"{value!r} is no value of {table}.{term.field}")


def _allowed(kind: str, choices: object, value: str) -> bool:
    if not value or pills_of(value):
        return True
    if kind == "choice":
        return value in choices  # type: ignore[operator]
    if kind == "boolean":
        return value in ("true", "false")
    return kind != "integer" or bool(_WHOLE.fullmatch(value))


_FITS: dict[str, Callable[[object], bool]] = {
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool)) or bool(_WHOLE.fullmatch(str(v))),
    "boolean": lambda v: isinstance(v, bool) or v in ("true", "false"),
    "duration": lambda v: isinstance(v, str) and bool(_DURATION.fullmatch(v)),
}


def _fits(kind: str, value: object, resolved: PillValue | PillError | None) -> bool:
    if isinstance(resolved, PillValue):
        return resolved.type not in ("record", "records") or kind == "text"
    return _FITS[kind](value) if kind in _FITS else not isinstance(value, list | dict)
