"""Reads a BPMN file that this package wrote, and returns its workflow.

BPMN files of other programs are history; `history/formats/bpmn.py` reads them.
"""

from collections import defaultdict
from typing import Any

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import SAFE_XML, clean
from opus_pipelines.core.settings import parse
from opus_pipelines.workflow.files import WorkflowFile
from opus_pipelines.workflow.formats.bpmn import bpmn, from_xml, own

_LARGEST_BYTES = 1 << 24
_ACTORS = {  # who does a step that a person drew, where its kind of BPMN task tells
    **dict.fromkeys(("task", "serviceTask", "sendTask", "receiveTask", "callActivity", "subProcess")),
    "userTask": "human",
    "manualTask": "human",
    "scriptTask": "code",
    "businessRuleTask": "code",
}
_KINDS = {"input": "inputs", "task": "tasks", "output": "outputs"}


def read_bpmn(content: bytes, name: str) -> WorkflowFile:
    """Reads the workflow of a BPMN file, with the tasks that a person added or renamed in it.

    Flows become edges again. `name` is the name of the file in error messages. Raises InputError or SettingsError.
    """
    root = _root(content, name)
    process = root.find(bpmn("process"))
    head = None if process is None else process.find(f"{bpmn('extensionElements')}/{own('workflow')}")
    if process is None or head is None:
        raise InputError(
            f"{name}: no workflow that `opus export` wrote; other BPMN is history, which `opus rebuild` reads"
        )
    data: dict[str, Any] = from_xml(head)
    nodes: dict[str, str] = {}
    for element in process:
        for kind, table in _KINDS.items():
            entry = element.find(f"{bpmn('extensionElements')}/{own(kind)}")
            if entry is not None:
                record = from_xml(entry)
                data.setdefault(table, []).append(_renamed(record, element) if kind == "task" else record)
                nodes[element.get("id", "")] = entry.get("id", "")
        if element.get("id", "") not in nodes and _is_activity(element):
            data.setdefault("tasks", []).append(_drawn(element))
            nodes[element.get("id", "")] = element.get("id", "")
    data["edges"] = _edges(process, nodes)
    return parse(WorkflowFile, data, name)


def _is_activity(element: Any) -> bool:
    return isinstance(element.tag, str) and etree.QName(element).localname in _ACTORS


def _drawn(element: Any) -> dict[str, Any]:
    """Returns a task that a person drew: it has a title, its element kind gives the actor, and all else is unknown."""
    ident, actor = element.get("id", ""), _ACTORS[etree.QName(element).localname]
    return {"id": ident, "title": element.get("name") or ident} | ({"actor_kind": actor} if actor else {})


def _renamed(record: dict[str, Any], element: Any) -> dict[str, Any]:
    """Returns the record of a renamed task: it is another task, so the fields of the old one are dropped."""
    name, title = element.get("name"), record.get("title") or record.get("id", "")
    if name is None or clean(name) == clean(title) or record.get("kind") == "review":
        return record
    return {"id": record.get("id", ""), "title": name}


def _edges(process: Any, nodes: dict[str, str]) -> list[tuple[str, str]]:
    """Returns edges from each node to the next nodes; gateways and events without a node are skipped."""
    after = defaultdict(list)
    for flow in process.iter(bpmn("sequenceFlow")):
        after[flow.get("sourceRef")].append(flow.get("targetRef"))
    edges = set()
    for element, node in nodes.items():
        seen, waiting = set(), list(after[element])
        while waiting:
            here = waiting.pop()
            if here in nodes:
                edges.add((node, nodes[here]))
            elif here not in seen:
                seen.add(here)
                waiting += after[here]
    return sorted(edges)


def _root(content: bytes, name: str) -> Any:
    if len(content) > _LARGEST_BYTES:
        raise InputError(f"{name}: it has more than {_LARGEST_BYTES >> 20} MiB, more than a BPMN file may")
    parser = etree.XMLParser(**SAFE_XML)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise InputError(f"{name}: the XML is broken: {' '.join(str(error).split())}") from None
    info: Any = root.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise InputError(f"{name}: it declares a document type, which no BPMN file needs; remove the <!DOCTYPE ...>")
    return root
