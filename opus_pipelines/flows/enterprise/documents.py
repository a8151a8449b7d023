"""Flow documents: a trigger, and components that nest by the order of their parent (2505.24189); their JSON and script.

The JSON is that of the paper's Figure 2 and that of StarFlow. A file that is no flow is an error with its place; a flow
that is not sound is read, and `validation` says why. A script is a few lines of text: one step a line, its inputs with
| between them, two blanks for each block around it.

when record_create table=incident | condition=priority=1
look_up_records table=sys_user
FOREACH items={{look_up_records.records}}
  send_email to={{foreach.item}}
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opus_pipelines.core.errors import InputError

ACTION, FLOW_LOGIC, SUBFLOW = CATEGORIES = ("action", "flowlogic", "subflow")
IF, ELSEIF, ELSE, FOREACH, DOUNTIL, PARALLEL, TRY, CATCH = LOGIC = (
    "IF",
    "ELSEIF",
    "ELSE",
    "FOREACH",
    "DOUNTIL",
    "PARALLEL",
    "TRY",
    "CATCH",
)


class FlowDocumentError(InputError):
    """A flow document cannot be read, or cannot be expressed in another form; the message names the element."""


@dataclass(frozen=True)
class Input:
    """A named value; a text may hold data pills and encoded queries."""

    name: str
    value: Any


@dataclass(frozen=True)
class Trigger:
    """What starts the flow. `annotation` is the span of the requirement that it comes from."""

    type: str
    inputs: tuple[Input, ...] = ()
    annotation: str = ""


@dataclass(frozen=True)
class Component:
    """A step: an action, a subflow or flow logic. `block` is the order of the component around it, None at the top.

    `alias` is a name of its own by which data pills may call it.
    """

    definition: str
    order: int
    category: str = ACTION
    block: int | None = None
    inputs: tuple[Input, ...] = ()
    annotation: str = ""
    scope: str = "global"
    alias: str = ""

    @property
    def name(self) -> str:
        """The definition, upper-cased where it is flow logic."""
        return self.definition.upper() if self.category == FLOW_LOGIC else self.definition

    @property
    def is_logic(self) -> bool:
        """Whether the component is flow logic, which holds other components."""
        return self.category == FLOW_LOGIC

    @property
    def element(self) -> str:
        """How messages name the component."""
        return f"component {self.order} ({self.name})"

    def input(self, name: str) -> Any:
        """Returns the value of an input, None where it is not given."""
        return next((given.value for given in self.inputs if given.name == name), None)


@dataclass(frozen=True)
class FlowDocument:
    """A flow. `triggers` has one trigger in a sound flow; a subflow has none, and `inputs` and `outputs` instead."""

    triggers: tuple[Trigger, ...] = ()
    components: tuple[Component, ...] = ()
    inputs: tuple[Mapping[str, str], ...] = ()
    outputs: tuple[Mapping[str, str], ...] = ()

    @property
    def trigger(self) -> Trigger | None:
        """The first trigger."""
        return self.triggers[0] if self.triggers else None

    @property
    def is_subflow(self) -> bool:
        """Whether the document declares inputs or outputs of its own."""
        return bool(self.inputs or self.outputs)

    def children(self) -> dict[int | None, list[Component]]:
        """Returns the components by the order of their parent, in list order."""
        by_parent: dict[int | None, list[Component]] = {}
        for component in self.components:
            by_parent.setdefault(component.block, []).append(component)
        return by_parent

    def nested(self) -> Iterator[tuple[int, Component]]:
        """Yields (depth, component) from the top in reading order; each component once, those in a circle never."""
        children, seen = self.children(), set[int]()
        stack = [(0, c) for c in reversed(children.get(None, []))]
        while stack:
            depth, component = stack.pop()
            if id(component) in seen:
                continue
            seen.add(id(component))
            yield depth, component
            inner = [] if component.order in seen else children.get(component.order, [])
            stack += [(depth + 1, c) for c in reversed(inner)]


_LARGEST = 20_000_000  # characters of a file
_MOST = 20_000  # components


def read_document(text: str) -> FlowDocument:
    """Returns the flow of a JSON text. Raises FlowDocumentError with the place or the element that is no flow."""
    if len(text) > _LARGEST:
        raise FlowDocumentError(f"the flow has more than {_LARGEST:,} characters")
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
    if len(components) > _MOST:
        raise FlowDocumentError(f"components: {len(components):,} are more than {_MOST:,}")
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


def document_text(flow: FlowDocument) -> str:
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
    inputs = []
    for given in value:
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
            raise FlowDocumentError(f"{where}: an input has no name")
        inputs.append(Input(given["name"], given.get("value")))
    return tuple(inputs)


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


_SPAN = re.compile(r"\[(?:(\d+(?:,\d+)*)\|)?([^\[\]]*)\]")


def parse_script(text: str, annotations: Sequence[str] = (), subflows: Sequence[str] = ()) -> FlowDocument:
    """Returns the flow of a script. `annotations` belong to the trigger and the steps in order.

    Raises FlowDocumentError with the line that is not well formed.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith("when "):
        raise FlowDocumentError("line 1: a flow begins with when and a trigger")
    if annotations and len(annotations) != len(lines):
        raise FlowDocumentError(f"{len(annotations)} annotations for {len(lines)} steps; the first is {lines[0]!r}")
    spans = [*annotations, *[""] * (len(lines) - len(annotations))]
    kind, given = _step(lines[0].removeprefix("when "), 1)
    components: list[Component] = []
    around: list[int] = []
    for order, line in enumerate(lines[1:], 1):
        depth = (len(line) - len(line.lstrip())) // 2
        if depth > len(around):
            raise FlowDocumentError(f"line {order + 1}: it stands deeper than a step can")
        del around[depth:]
        definition, inputs = _step(line.strip(), order + 1)
        category = FLOW_LOGIC if definition in LOGIC else SUBFLOW if definition in subflows else ACTION
        block = around[-1] if around else None
        components.append(Component(definition, order, category, block, inputs, spans[order]))
        around.append(order)
    return FlowDocument((Trigger(kind, given, spans[0]),), tuple(components))


def script_of(flow: FlowDocument) -> str:
    """Returns the flow as a script; annotations and scopes are left out."""
    trigger = flow.trigger
    lines = [f"when {trigger.type}{_shown(trigger.inputs)}"] if trigger else []
    lines += ["  " * depth + component.name + _shown(component.inputs) for depth, component in flow.nested()]
    return "\n".join(lines) + "\n"


def marked(text: str) -> tuple[str, list[str]]:
    """Returns a text without its brackets, and the spans that stood in them in the order of the steps."""
    spans: dict[int, str] = {}
    for numbers, span in _SPAN.findall(text):
        for number in numbers.split(",") if numbers else [str(len(spans))]:
            spans[int(number)] = span
    return _SPAN.sub(r"\2", text), [spans[n] for n in sorted(spans)]


def _step(text: str, line: int) -> tuple[str, tuple[Input, ...]]:
    definition, _, rest = text.partition(" ")
    pairs = [part.partition("=") for part in rest.split(" | ")] if rest else []
    if any(not equals for _, equals, _ in pairs):
        raise FlowDocumentError(f"line {line}: an input has no value; write name=value")
    return definition, tuple(Input(name.strip(), value) for name, _, value in pairs)


def _shown(inputs: Sequence[Input]) -> str:
    text = " | ".join(f"{given.name}={given.value}" for given in inputs)
    return f" {text}" if text else ""
