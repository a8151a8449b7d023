"""Our own figures in BPMN's extensionElements: a record of `workflow.files` as an XML element and back, to the last bit.

Single values are attributes; lists are an element an item, tables an element an entry, records in records an element each.
"""

from typing import Any

from lxml import etree

from opus_pipelines.safe_text import xml_text
from opus_pipelines.settings import Section

OPUS = "urn:opus-pipelines:workflow:1"
_LISTS = frozenset({"instructions", "inputs", "outputs"})
_TABLES = frozenset({"consumes", "holds", "usd_per_unit", "usd_per_held"})
_RECORDS = frozenset({"scores", "weights"})


def own(name: str) -> str:
    """An element name of our namespace."""
    return f"{{{OPUS}}}{name}"


def to_xml(name: str, record: Section) -> Any:
    """The record as an element; what equals its default is left out."""
    return _element(name, record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))


def from_xml(element: Any) -> dict[str, Any]:
    """What `to_xml` was given, as the record's own validation takes it."""
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
    """An element with the values that are known as attributes."""
    return _element(name, {key: value for key, value in values.items() if value is not None})


def _element(name: str, data: dict[str, Any]) -> Any:
    made = etree.Element(own(name), nsmap={"opus": OPUS})
    for key, value in data.items():
        if key in _LISTS:
            for item in value:
                etree.SubElement(made, own(key)).text = xml_text(item)
        elif key in _TABLES:
            for entry, amount in value.items():
                etree.SubElement(made, own(key), name=xml_text(entry)).text = repr(amount)
        elif key in _RECORDS:
            made.append(_element(key, value))
        else:
            made.set(key, xml_text(value) if isinstance(value, str) else repr(value))
    return made
