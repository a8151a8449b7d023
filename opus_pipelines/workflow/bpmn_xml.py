"""BPMN 2.0 as XML: its namespaces, its elements as every reader of BPMN sees them, and as every writer makes them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lxml import etree

from opus_pipelines.core.formatting import SAFE_XML

MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
DIAGRAM = "http://www.omg.org/spec/BPMN/20100524/DI"
DC = "http://www.omg.org/spec/DD/20100524/DC"
DI = "http://www.omg.org/spec/DD/20100524/DI"
LARGEST_BYTES = 1 << 24  # of a file


def local(element: Any) -> str:
    """Returns the local name of an element of BPMN's namespace or of none, else "".

    Extensions may use the same names for other things.
    """
    tag = element.tag
    space, _, name = tag.rpartition("}") if isinstance(tag, str) else ("-", "", "")
    return str(name) if not space or space.endswith("/MODEL") else ""


def children(element: Any, *names: str) -> Iterator[Any]:
    """Returns the element's own children with these names."""
    return (child for child in element if local(child) in names)


def parsed(content: bytes) -> Any:
    """Returns the root of a file. Raises ValueError where it is too large, broken, or declares a document type."""
    if len(content) > LARGEST_BYTES:
        raise ValueError(f"it has more than {LARGEST_BYTES >> 20} MiB, more than a BPMN file may")
    try:
        root: Any = etree.fromstring(content, etree.XMLParser(**SAFE_XML))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ValueError(f"the XML is broken: {' '.join(str(error).split())}") from None
    info = root.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise ValueError("it declares a document type, which no BPMN file needs; remove the <!DOCTYPE ...>")
    return root


def model(name: str) -> str:
    """Returns the name of an element in BPMN's model."""
    return f"{{{MODEL}}}{name}"


def child(parent: Any, name: str, /, **attributes: str) -> Any:
    """Adds an element of BPMN's model to another one, and returns it."""
    return etree.SubElement(parent, model(name), attributes)


def bounds(box: Iterable[float]) -> dict[str, str]:
    """Returns left, top, width and height as the attributes of a shape's bounds."""
    return dict(zip(("x", "y", "width", "height"), map(_number, box), strict=True))


def shape(plane: Any, ident: str, box: Iterable[float], more: Mapping[str, str] | None = None) -> Any:
    """Draws an element as a box, and returns its shape; `more`: further attributes."""
    names = {"id": f"{ident}_di", "bpmnElement": ident} | dict(more or {})
    drawn = etree.SubElement(plane, f"{{{DIAGRAM}}}BPMNShape", names)
    etree.SubElement(drawn, f"{{{DC}}}Bounds", bounds(box))
    return drawn


def line(plane: Any, ident: str, points: Iterable[tuple[float, float]]) -> None:
    """Draws an element as a line along these points."""
    drawn = etree.SubElement(plane, f"{{{DIAGRAM}}}BPMNEdge", id=f"{ident}_di", bpmnElement=ident)
    for x, y in points:
        etree.SubElement(drawn, f"{{{DI}}}waypoint", x=_number(x), y=_number(y))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
