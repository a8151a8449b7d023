"""Writes a record of `workflow.files` into BPMN's extensionElements and reads it back without a loss.

Single values are attributes. Each item of a list, each entry of a table and each record in a record is an element.

The module also holds BPMN's namespaces, and the names of data elements in a file of this package.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from opus_pipelines.core.safe_text import xml_text
from opus_pipelines.core.settings import Section
from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow

OPUS = "urn:opus-pipelines:workflow:1"
_LISTS = frozenset({"instructions", "inputs", "outputs"})
_TABLES = frozenset({"consumes", "holds", "usd_per_unit", "usd_per_held"})
_RECORDS = frozenset({"scores", "weights"})


def own(name: str) -> str:
    """Returns an element name in the namespace of this package."""
    return f"{{{OPUS}}}{name}"


def to_xml(name: str, record: Section) -> Any:
    """Returns the record as an element; a value that equals its default is left out."""
    return _element(name, record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))


def from_xml(element: Any) -> dict[str, Any]:
    """Returns the values that `to_xml` was given, as the record's own validation takes them."""
    data: dict[str, Any] = dict(element.attrib)
    for child in element:
        name = etree.QName(child).localname if isinstance(child.tag, str) else ""
        if name in _LISTS:
            data.setdefault(name, []).append(child.text or "")
        elif name in _TABLES:
            data.setdefault(name, {})[child.get("name", "")] = child.text or ""
        elif name in _RECORDS:
            data[name] = from_xml(child)
    return data


def figures(name: str, values: dict[str, Any]) -> Any:
    """Returns an element with the known values as attributes."""
    return _element(name, {key: value for key, value in values.items() if value is not None})


def _element(name: str, data: dict[str, Any]) -> Any:
    element = etree.Element(own(name), nsmap={"opus": OPUS})
    for key, value in data.items():
        if key in _LISTS:
            for item in value:
                etree.SubElement(element, own(key)).text = xml_text(item)
        elif key in _TABLES:
            for entry, amount in value.items():
                etree.SubElement(element, own(key), name=xml_text(entry)).text = repr(amount)
        elif key in _RECORDS:
            element.append(_element(key, value))
        else:
            element.set(key, xml_text(value) if isinstance(value, str) else repr(value))
    return element


MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
DIAGRAM = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"


@dataclass(frozen=True)
class DataUse:
    """A task that reads or writes some data.

    Every use is drawn next to its node, so that no line crosses the whole picture.
    """

    node: str
    name: str
    is_input: bool
    object: str
    number: int

    @property
    def reference(self) -> str:
        """The id of the drawn data object."""
        return f"data_{self.number}"

    @property
    def end(self) -> str:
        """The id of the data inside the task."""
        return f"data_{self.number}_end"

    @property
    def association(self) -> str:
        """The id of the line between the two."""
        return f"data_{self.number}_line"


def bpmn(name: str) -> str:
    """Returns an element name in BPMN's model namespace."""
    return f"{{{MODEL}}}{name}"


def data_uses(described: AnnotatedWorkflow) -> list[DataUse]:
    """Returns every use of data, by node in the order of the flow; data of one name are one object."""
    objects: dict[str, str] = {}
    uses: list[DataUse] = []
    for node, name, is_input in _named(described):
        ident = objects.setdefault(name, f"object_{len(objects) + 1}")
        uses.append(DataUse(node, name, is_input, ident, len(uses) + 1))
    return uses


def _named(described: AnnotatedWorkflow) -> Iterator[tuple[str, str, bool]]:
    for node in described.workflow.topological():
        if task := described.tasks.get(node):
            yield from ((node, name, True) for name in dict.fromkeys(task.inputs))
            yield from ((node, name, False) for name in dict.fromkeys(task.outputs))
