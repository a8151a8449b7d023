"""The records of a flow document: a trigger, and components that nest by the order of their parent (2505.24189)."""

from collections.abc import Iterator, Mapping
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
        found: dict[int | None, list[Component]] = {}
        for component in self.components:
            found.setdefault(component.block, []).append(component)
        return found

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
