"""Short ways to write flows in tests."""

from typing import Any

from opus_pipelines.flows.enterprise.documents import LOGIC, Component, FlowDocument, Input, Trigger


def inputs(**values: Any) -> tuple[Input, ...]:
    return tuple(Input(name, value) for name, value in values.items())


def step(definition: str, order: int, block: int | None = None, **values: Any) -> Component:
    category = "flowlogic" if definition in LOGIC else "action"
    return Component(definition, order, category, block, inputs(**values))


def flow(*components: Component, trigger: Trigger | None = None) -> FlowDocument:
    usual = Trigger("record_update", inputs(table="incident"))
    return FlowDocument((trigger or usual,), components)
