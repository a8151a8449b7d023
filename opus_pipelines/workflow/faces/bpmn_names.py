"""BPMN's namespaces, and the names under which data stand in one of our files."""

from collections.abc import Iterator
from dataclasses import dataclass

from opus_pipelines.workflow.faces.described import Described

MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
DIAGRAM = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"


@dataclass(frozen=True)
class DataUse:
    """A task reads or writes some data. Every use is drawn beside its node, so that no line crosses the picture for it."""

    node: str
    name: str
    is_input: bool
    object: str
    number: int

    @property
    def reference(self) -> str:
        """Id of what is drawn."""
        return f"data_{self.number}"

    @property
    def end(self) -> str:
        """Id of the data inside the task."""
        return f"data_{self.number}_end"

    @property
    def association(self) -> str:
        """Id of the line between the two."""
        return f"data_{self.number}_line"


def bpmn(name: str) -> str:
    """An element name of BPMN's model."""
    return f"{{{MODEL}}}{name}"


def data_uses(described: Described) -> list[DataUse]:
    """Every use, by node in the order of the flow; data of one name are one object."""
    objects: dict[str, str] = {}
    found: list[DataUse] = []
    for node, name, is_input in _named(described):
        ident = objects.setdefault(name, f"object_{len(objects) + 1}")
        found.append(DataUse(node, name, is_input, ident, len(found) + 1))
    return found


def _named(described: Described) -> Iterator[tuple[str, str, bool]]:
    for node in described.workflow.topological():
        if task := described.tasks.get(node):
            yield from ((node, name, True) for name in dict.fromkeys(task.inputs))
            yield from ((node, name, False) for name in dict.fromkeys(task.outputs))
