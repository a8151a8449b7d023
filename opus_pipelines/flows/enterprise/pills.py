"""Data pills: `{{step.output.column}}` stands for an output of an earlier step that is in scope.

A step is named by the type of the trigger, or by its definition in lower case: the nearest earlier one in scope.
`definition_3` names the one of order 3.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.enterprise.catalogue import Catalogue, Slot, Step
from opus_pipelines.flows.enterprise.documents import FOREACH, Component, FlowDocument

PILL = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
MOST_DEPTH = 100


@dataclass(frozen=True)
class Value:
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
    found = PILL.fullmatch(value.strip()) if isinstance(value, str) else None
    return found[1] if found else None


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

    def resolve(self, path: str, component: Component | None) -> Value | PillError:
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
            known = {item["name"] for item in self._flow.inputs}
            return Value("text") if output in known else PillError("pill_unknown_output", f"no input {output!r}")
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
                return value.table if isinstance(value, Value) else ""
        return ""

    def _output(self, path: str, entry: Step | None, table: str, names: Sequence[str]) -> Value | PillError:
        if entry is None:
            return PillError("pill_unknown_step", f"the step of {path!r} is not in the catalogue")
        slot: Slot | None = entry.outputs.get(names[0])
        if slot is None:
            known = ", ".join(entry.outputs) or "none"
            return PillError("pill_unknown_output", f"{entry.name} has no output {names[0]!r}; it has {known}")
        value = Value(slot.type, slot.table or table)
        if len(names) == 1:
            return value
        if value.type != "record":
            return PillError("pill_unknown_output", f"{names[0]} of {entry.name} has no columns")
        column = self._catalogue.column(value.table, ".".join(names[1:]))
        if column is None:
            return PillError("unknown_column", f"{value.table or 'the record'} has no column {'.'.join(names[1:])!r}")
        if column.reference:
            return Value("record", column.reference)
        return Value(column.type)
