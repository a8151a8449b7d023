"""Reads and writes the JSON of flows: the form of the paper's Figure 2 (2505.24189) and that of StarFlow.

A file that is no flow is an error with its place; a flow that is not sound is read, and `validation` says why.
"""

import json
from collections.abc import Mapping
from typing import Any

from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    CATEGORIES,
    FLOW_LOGIC,
    LOGIC,
    Component,
    FlowDocument,
    FlowDocumentError,
    Input,
    Trigger,
)

LARGEST = 20_000_000  # characters of a file
MOST = 20_000  # components


def read(text: str) -> FlowDocument:
    """Returns the flow of a JSON text. Raises FlowDocumentError with the place or the element that is no flow."""
    if len(text) > LARGEST:
        raise FlowDocumentError(f"the flow has more than {LARGEST:,} characters")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise FlowDocumentError(f"line {error.lineno}, column {error.colno}: no JSON ({error.msg})") from None
    except RecursionError:
        raise FlowDocumentError("the JSON is nested too deeply") from None
    return document_of(value)


def document_of(value: Any) -> FlowDocument:
    """Returns the flow of a JSON value; raises FlowDocumentError with the element that is no flow."""
    if not isinstance(value, Mapping):
        raise FlowDocumentError("a flow is a JSON object with a trigger and components")
    if strange := sorted(set(map(str, value)) - {"trigger", "components", "inputs", "outputs", "name", "description"}):
        raise FlowDocumentError(f"a flow has no key {strange[0]!r}; known are trigger, components, inputs and outputs")
    given = value.get("trigger")
    triggers = [] if given is None else given if isinstance(given, list) else [given]
    components = [] if value.get("components") is None else value["components"]
    if not isinstance(components, list):
        raise FlowDocumentError("components: a list is expected")
    if len(components) > MOST:
        raise FlowDocumentError(f"components: {len(components):,} are more than {MOST:,}")
    return FlowDocument(
        tuple(_trigger(each) for each in triggers),
        tuple(_component(each, n) for n, each in enumerate(components, 1)),
        _items(value.get("inputs"), "inputs"),
        _items(value.get("outputs"), "outputs"),
    )


def json_of(flow: FlowDocument) -> dict[str, Any]:
    """Returns the flow as a JSON value of StarFlow's form; what is empty is left out."""
    triggers = [
        _filled(annotation=t.annotation, type=t.type, inputs=[{"name": i.name, "value": i.value} for i in t.inputs])
        for t in flow.triggers
    ]
    components = [
        _filled(
            annotation=c.annotation,
            category=c.category,
            definition=c.definition,
            name=c.alias,
            scope=c.scope,
            order=c.order,
            block=c.block,
            inputs=[{"name": i.name, "value": i.value} for i in c.inputs],
        )
        for c in flow.components
    ]
    document: dict[str, Any] = {"trigger": triggers[0] if len(triggers) == 1 else triggers or None}
    for part, items in (("inputs", flow.inputs), ("outputs", flow.outputs)):
        if items:
            document[part] = {"items": [dict(item) for item in items]}
    return {**document, "components": components}


def write(flow: FlowDocument) -> str:
    """Returns the flow as JSON text with a line break at its end; equal flows give equal texts."""
    return json.dumps(json_of(flow), indent=1, ensure_ascii=False) + "\n"


def _filled(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a second trigger or a second list of components must not hide the first."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice == "trigger":
        triggers = [value for name, value in pairs if name == "trigger"]
        return {**dict(pairs), "trigger": triggers}
    if twice is not None:
        raise FlowDocumentError(f"an object has the key {twice!r} twice")
    return dict(pairs)


def _constant(text: str) -> None:
    raise FlowDocumentError(f"{text} is no JSON number")


def _trigger(value: Any) -> Trigger:
    if not isinstance(value, Mapping):
        raise FlowDocumentError("trigger: an object with a type is expected")
    kind = value.get("type")
    if not isinstance(kind, str) or not kind:
        raise FlowDocumentError("trigger: it has no type")
    return Trigger(kind, _inputs(value.get("inputs"), "trigger"), _text(value.get("annotation"), "trigger"))


def _component(value: Any, place: int) -> Component:
    where = f"component number {place}"
    if not isinstance(value, Mapping):
        raise FlowDocumentError(f"{where}: an object is expected")
    step = value.get("step")
    definition = value.get("definition") or (step if isinstance(step, str) else None) or value.get("name")
    if not isinstance(definition, str) or not definition:
        raise FlowDocumentError(f"{where}: it has no definition")
    alias = value.get("name") if value.get("definition") or isinstance(step, str) else None
    order = value.get("order", step if isinstance(step, int) else place)
    usual = FLOW_LOGIC if definition.upper() in LOGIC else ACTION
    category = value.get("category") or usual
    if category not in CATEGORIES:
        raise FlowDocumentError(f"{where}: the category {category!r} is none of {', '.join(CATEGORIES)}")
    return Component(
        definition,
        _whole(order, f"{where}: order"),
        category,
        None if value.get("block") is None else _whole(value["block"], f"{where}: block"),
        _inputs(value.get("inputs"), where),
        _text(value.get("annotation"), where),
        _text(value.get("scope"), where) or "global",
        _text(alias, where),
    )


def _inputs(value: Any, where: str) -> tuple[Input, ...]:
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = [{"name": name, "value": given} for name, given in value.items()]
    if not isinstance(value, list):
        raise FlowDocumentError(f"{where}: inputs are a list of objects with name and value")
    found = []
    for given in value:
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
            raise FlowDocumentError(f"{where}: an input has no name")
        found.append(Input(given["name"], given.get("value")))
    return tuple(found)


def _items(value: Any, part: str) -> tuple[Mapping[str, str], ...]:
    items = value.get("items") if isinstance(value, Mapping) else value
    if items is None:
        return ()
    if not isinstance(items, list) or not all(isinstance(i, Mapping) and isinstance(i.get("name"), str) for i in items):
        raise FlowDocumentError(f"{part}: a list of objects with name and type is expected")
    return tuple({str(k): str(v) for k, v in item.items() if v is not None} for item in items)


def _whole(value: Any, where: str) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) < value < 2**31:
        raise FlowDocumentError(f"{where}: {str(value)[:40]!r} is no whole number")
    return value


def _text(value: Any, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FlowDocumentError(f"{where}: {str(value)[:40]!r} is no text")
    return value
