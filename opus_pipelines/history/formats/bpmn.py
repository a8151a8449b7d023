"""Reads BPMN 2.0 models: each process is one record and one case, of kind `model`.

An empty pool has no tasks and gives no record. Tasks become raw records, and sub-processes are expanded in place.
Events and gateways are folded: the predecessors of a task are the tasks from which a flow leads to it without passing
another task.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.formats.drawn_flows import CONNECTIONS_LOST, ModelMap
from opus_pipelines.history.formats.whole_file import read_xml
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError
from opus_pipelines.workflow.bpmn_xml import children, local

TASK_KINDS = {
    **dict.fromkeys(("task", "receiveTask", "callActivity"), None),
    **dict.fromkeys(("userTask", "manualTask"), "human"),
    **dict.fromkeys(("serviceTask", "scriptTask", "businessRuleTask", "sendTask"), "code"),
}
SUB_PROCESSES = frozenset({"subProcess", "transaction", "adHocSubProcess"})
_STEPS = SUB_PROCESSES | TASK_KINDS.keys()  # the innermost of them: a sub-process without any of them is one step
FOLDED = frozenset(
    (
        "startEvent endEvent intermediateCatchEvent intermediateThrowEvent intermediateEvent boundaryEvent "
        "exclusiveGateway inclusiveGateway parallelGateway eventBasedGateway complexGateway"
    ).split()
)


def plain(text: str | None) -> str:
    """Returns a name on one line, without the quotes in which some tools wrap it."""
    words = " ".join((text or "").split())
    return words[1:-1].strip() if len(words) > 2 and words[0] == words[-1] == "'" else words


def referred(reference: str | None, known: Container[str]) -> str:
    """Returns the id that a reference names: as it is written, else without the prefix of the target namespace."""
    ident = (reference or "").strip()
    return ident if ident in known else ident.rpartition(":")[2]


def documentation(element: Any) -> str:
    """Returns the text of the element's own documentation."""
    return "\n".join(text for d in children(element, "documentation") if (text := "".join(d.itertext()).strip()))


def lanes_of(process: Any) -> dict[str, str]:
    """Returns the name of the innermost lane of each element, by element id.

    Inner lanes follow outer ones in the file.
    """
    lanes = [(plain(e.get("name")), e) for e in process.iter() if local(e) == "lane"]
    ids = {e.get("id", "") for e in process.iter()}
    return {referred(ref.text, ids): name for name, lane in lanes if name for ref in children(lane, "flowNodeRef")}


def assignee_of(element: Any) -> str | None:
    """Returns the assignee of a task by Camunda's extension, or None if it is an expression."""
    stated = next(
        (v for k, v in element.attrib.items() if etree.QName(k).localname in ("assignee", "candidateGroups")), ""
    )
    return stated if stated and not stated.startswith(("$", "#", "=")) else None


def loop_of(element: Any) -> str:
    """Returns how often an activity is carried out, by its loop marker."""
    for marker in children(element, "standardLoopCharacteristics", "multiInstanceLoopCharacteristics"):
        condition = next(
            ("".join(c.itertext()).strip() for c in children(marker, "loopCondition", "loopCardinality")), ""
        )
        if local(marker) == "standardLoopCharacteristics":
            form = "repeated"
        else:
            form = "for each, one by one" if marker.get("isSequential") == "true" else "for each, at once"
        return f"{form}: {condition}" if condition else form
    return ""


Raw = dict[str, Any]


@dataclass
class _Scope:
    """A process or a sub-process: its entry and exit node, and those of its direct parts."""

    entry: int
    exit: int
    parts: list[tuple[int, int]] = field(default_factory=list)


class ProcessFlow:
    """The nodes and links of one process.

    `notes` has the text annotations by element id. Those of tasks are used here.
    """

    def __init__(self, process: Any, notes: Mapping[str, list[str]]) -> None:
        self.nodes: list[Raw | None] = []
        self.links: list[tuple[int, int]] = []
        self.noted: set[str] = set()
        self.lost = 0  # flows that lead from or to nothing
        self._notes = notes
        self._ends: dict[str, tuple[int, int]] = {}
        self._lanes = lanes_of(process)
        self._data = {
            e.get("id"): plain(e.get("name"))
            for e in process.iter()
            if local(e).startswith(("dataObject", "dataStore"))
        }
        self._scopes: list[_Scope] = []
        # entered by no flow of their scope: boundary events, event sub-processes, compensation
        self._detached: set[int] = set()
        self._add_scope(process, {})
        self._link(process)

    def _node(self, raw: Raw | None = None) -> int:
        self.nodes.append(raw)
        return len(self.nodes) - 1

    def _add_scope(self, element: Any, inherited: Raw) -> tuple[int, int]:
        scope = _Scope(self._node(), 0)
        self._scopes.append(scope)
        for child in element:
            kind = local(child)
            if kind in SUB_PROCESSES and any(local(e) in _STEPS for e in child.iterdescendants()):
                ends = self._add_scope(child, self._inherited(child, inherited))
            elif kind in TASK_KINDS or kind in SUB_PROCESSES:
                ends = (self._node(self._task(child, kind, inherited)),) * 2
            elif kind in FOLDED:
                ends = (self._node(),) * 2
            else:
                continue
            scope.parts.append(ends)
            if (
                kind == "boundaryEvent"
                or child.get("isForCompensation") == "true"
                or child.get("triggeredByEvent") == "true"
            ):
                self._detached.add(ends[0])
            self._ends.setdefault(child.get("id", ""), ends)
        scope.exit = self._node()
        return scope.entry, scope.exit

    def _inherited(self, element: Any, outer: Raw) -> Raw:
        """Returns the values that a sub-process gives to every task in it."""
        name, ident = plain(element.get("name")), element.get("id", "")
        lane = self._lanes.get(ident)
        own = {"sub_process": " / ".join(filter(None, (outer.get("sub_process"), name))), "actor": lane, "lane": lane}
        if loop := loop_of(element):
            note = "; ".join(self._notes.get(ident, ()))
            self.noted.add(ident)
            own["loop"] = "; ".join(filter(None, (outer.get("loop"), f"{loop}: {note}" if note else loop)))
        return outer | {k: v for k, v in own.items() if v}

    def _task(self, element: Any, kind: str, inherited: Raw) -> Raw:
        ident, name = element.get("id", ""), plain(element.get("name"))
        lane = self._lanes.get(ident)
        texts = [documentation(element), *self._notes.get(ident, ())]
        self.noted.add(ident)
        own = {
            "id": ident,
            "name": name or ident,
            "type": kind,
            "actor_kind": TASK_KINDS.get(kind),
            "actor": assignee_of(element) or lane,
            "lane": lane,
            "documentation": "\n".join(filter(None, texts)),
            "calls": element.get("calledElement"),
            "loop": "; ".join(filter(None, (inherited.get("loop"), loop_of(element)))),
            "inputs": self._named(element, "dataInputAssociation", "sourceRef"),
            "outputs": self._named(element, "dataOutputAssociation", "targetRef"),
        }
        return inherited | {k: v for k, v in own.items() if v}

    def _named(self, element: Any, association: str, end: str) -> list[str]:
        refs = (referred(ref.text, self._data) for a in children(element, association) for ref in children(a, end))
        return list(dict.fromkeys(name for ref in refs if (name := self._data.get(ref))))

    def _end_of(self, reference: str | None) -> tuple[int, int] | None:
        return self._ends.get(referred(reference, self._ends))

    def _add_events_of_steps(self, process: Any) -> None:
        """Adds the boundary events that a tool places inside of the step that they belong to."""
        for element in process.iter():
            if local(element) == "boundaryEvent" and (ident := element.get("id", "")) not in self._ends:
                self._ends[ident] = (self._node(),) * 2

    def _link(self, process: Any) -> None:
        """Adds the links of sequence flows and boundary events, and the links of each scope.

        The entry of a scope leads to its parts without an incoming link, and its parts without an outgoing link lead to
        its exit.
        """
        thrown: list[tuple[str | None, int]] = []
        caught: dict[str | None, int] = {}
        self._add_events_of_steps(process)
        ids = {e.get("id", "") for e in process.iter()}
        for element in process.iter():
            kind = local(element)
            if kind == "sequenceFlow":
                src, dst = self._end_of(element.get("sourceRef")), self._end_of(element.get("targetRef"))
                self.links += [(src[1], dst[0])] if src and dst else []
                self.lost += any(referred(element.get(end), ids) not in ids for end in ("sourceRef", "targetRef"))
            elif kind == "boundaryEvent" and (own := self._ends.get(element.get("id", ""))):
                host = self._end_of(element.get("attachedToRef")) or self._end_of(element.getparent().get("id"))
                self.links += [(host[1], own[0])] if host else []
            elif kind == "linkEventDefinition" and (at := self._ends.get(element.getparent().get("id", ""))):
                if local(element.getparent()) == "intermediateThrowEvent":
                    thrown.append((element.get("name"), at[0]))
                else:
                    caught.setdefault(element.get("name"), at[0])
        self.links += [(src, caught[name]) for name, src in thrown if name in caught]
        entered, left = {dst for _, dst in self.links}, {src for src, _ in self.links}
        for scope in self._scopes:
            self.links += [
                (scope.entry, first) for first, _ in scope.parts if first not in entered and first not in self._detached
            ]
            self.links += [
                (last, scope.exit) for first, last in scope.parts if last not in left and first not in self._detached
            ]


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every process into `sink`. Raises InputError if the XML is malformed or no model."""
    root = read_xml(open_file, "definitions", "split it, a process to a file")
    processes = [] if root is None else list(children(root, "process"))
    if not processes:
        raise InputError("it is no BPMN model: the XML has no <process> in <definitions>")
    reader = _BpmnReader(root, settings, sink)
    for position, process in enumerate(processes, start=1):
        reader.process(process, position)


class _BpmnReader:
    def __init__(self, root: Any, settings: SourceSettings, sink: Assembler) -> None:
        pools = [p for c in children(root, "collaboration") for p in children(c, "participant")]
        ids = {p.get("id", "") for p in children(root, "process")}
        self._pools = {referred(p.get("processRef"), ids): plain(p.get("name")) for p in pools}
        self._texts, self._notes = _annotations(root)
        # texts that belong to every process
        self._free = self._free_texts(e for c in children(root, "collaboration") for e in c)
        self._model = ModelMap(settings, sink.money)
        self._sink = sink

    def process(self, process: Any, position: int) -> None:
        """Reads one process into the assembler, or rejects it."""
        ident, pool = process.get("id", ""), self._pools.get(process.get("id", ""))
        flow = ProcessFlow(process, self._notes)
        texts = [documentation(process), *self._free_texts(process.iter()), *self._free]
        tasks = {node.get("id") for node in flow.nodes if node}
        parts = (e for e in process.iter() if local(e) in SUB_PROCESSES and e.get("id") not in tasks)
        texts += [f"{plain(e.get('name'))}: {text}" for e in parts if (text := documentation(e))]
        texts += [
            text
            for e in process.iter()
            if e.get("id") not in flow.noted
            for text in self._notes.get(e.get("id", ""), ())
        ]
        own = {
            "id": ident,
            "name": plain(process.get("name")) or pool,
            "participant": pool,
            "documentation": "\n".join(filter(None, texts)),
            CONNECTIONS_LOST: flow.lost,
        }
        raw = self._sink.redactor.flat({k: v for k, v in own.items() if v})
        case_id = f"{self._sink.path}#{ident or position}"
        try:
            if not any(flow.nodes):
                raise BadValueError(
                    "no_tasks", "the process has no task: it is an empty pool, or holds events and gateways only"
                )
            if self._sink.known(case_id):
                raise BadValueError("duplicate_case", f"a process {ident} was read before")
            case = self._model.case(case_id, raw, [self._step(node) for node in flow.nodes], flow.links)
        except BadValueError as error:
            self._sink.reject(position, error.code, error.reason, canonical(raw))
        else:
            self._sink.case(case)

    def _step(self, node: Raw | None) -> Raw | None:
        if node is None:
            return None
        return self._sink.redactor.flat(node | {"key": self._sink.unique_key(node.get("id", ""), node.get("name", ""))})

    def _free_texts(self, elements: Iterable[Any]) -> list[str]:
        """Returns the texts of those annotations among the elements that are attached to nothing."""
        return [
            self._texts[e.get("id", "")]
            for e in elements
            if local(e) == "textAnnotation" and e.get("id", "") in self._texts
        ]


def _annotations(root: Any) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Returns the texts that are attached to nothing, by their own id, and the others, by the id of their element."""
    texts = {e.get("id", ""): plain("".join(e.itertext())) for e in root.iter() if local(e) == "textAnnotation"}
    texts = {ident: text for ident, text in texts.items() if text}
    notes: defaultdict[str, list[str]] = defaultdict(list)
    tied, ids = set(), {e.get("id", "") for e in root.iter()}
    for association in (e for e in root.iter() if local(e) == "association"):
        ends = referred(association.get("sourceRef"), ids), referred(association.get("targetRef"), ids)
        for note, about in (ends, ends[::-1]):
            if note in texts and about not in texts:
                notes[about].append(texts[note])
                tied.add(note)
    return {ident: text for ident, text in texts.items() if ident not in tied}, notes
