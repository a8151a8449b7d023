"""The parts of a BPMN file, one element at a time: which names are work, and what an element says of itself."""

from collections.abc import Iterator
from typing import Any

from lxml import etree

ACTOR_KINDS = {
    "task": None, "receiveTask": None, "callActivity": None,
    "userTask": "human", "manualTask": "human",
    "serviceTask": "code", "scriptTask": "code", "businessRuleTask": "code", "sendTask": "code",
}
SUB_PROCESSES = frozenset({"subProcess", "transaction", "adHocSubProcess"})
FOLDED = frozenset({
    "startEvent", "endEvent", "intermediateCatchEvent", "intermediateThrowEvent", "intermediateEvent", "boundaryEvent",
    "exclusiveGateway", "inclusiveGateway", "parallelGateway", "eventBasedGateway", "complexGateway",
})


def local(element: Any) -> str:
    """An element's name, where it is of BPMN's namespace or of none; extensions may use the same names for other things."""
    tag = element.tag
    space, _, name = tag.rpartition("}") if isinstance(tag, str) else ("-", "", "")
    return name if not space or space.endswith("/MODEL") else ""


def children(element: Any, *names: str) -> Iterator[Any]:
    """The element's own children of these names."""
    return (child for child in element if local(child) in names)


def plain(text: str | None) -> str:
    """A name on one line; some tools wrap it in quotes."""
    words = " ".join((text or "").split())
    return words[1:-1].strip() if len(words) > 2 and words[0] == words[-1] == "'" else words


def documentation(element: Any) -> str:
    """What is written in the element's own documentation."""
    return "\n".join(text for d in children(element, "documentation") if (text := "".join(d.itertext()).strip()))


def lanes_of(process: Any) -> dict[str, str]:
    """Element id → name of the innermost lane that it lies in: a lane's own lanes follow it in the file."""
    lanes = [(plain(e.get("name")), e) for e in process.iter() if local(e) == "lane"]
    return {(ref.text or "").strip(): name for name, lane in lanes if name for ref in children(lane, "flowNodeRef")}


def assignee_of(element: Any) -> str | None:
    """Who a task is given to, by Camunda's extension; an expression names nobody."""
    stated = next((v for k, v in element.attrib.items() if etree.QName(k).localname in ("assignee", "candidateGroups")), "")
    return stated if stated and not stated.startswith(("$", "#", "=")) else None


def loop_of(element: Any) -> str:
    """How often an activity is carried out, by its own marker."""
    for marker in children(element, "standardLoopCharacteristics", "multiInstanceLoopCharacteristics"):
        said = next(("".join(c.itertext()).strip() for c in children(marker, "loopCondition", "loopCardinality")), "")
        if local(marker) == "standardLoopCharacteristics":
            form = "repeated"
        else:
            form = "for each, one by one" if marker.get("isSequential") == "true" else "for each, at once"
        return f"{form}: {said}" if said else form
    return ""
