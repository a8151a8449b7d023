"""BPMN 2.0 as XML: its namespaces, and its elements as every reader of BPMN sees them."""

from collections.abc import Iterator
from typing import Any

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
