"""Reads block-structured BPMN 2.0: the files of bpmn-js and of the Camunda Modeler, with any namespace prefix.

The rules are those of Flow-Bench's gold files (arXiv 2505.11646): a task is named after its activity, a decision
"Decision: <condition>", a loop is a sub-process with an annotation "for x in xs". What stands on the flows (names,
conditions, a default) wins over their order.
"""

from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.core.formatting import xml_text
from opus_pipelines.workflow.blocks.drawing import step_name
from opus_pipelines.workflow.blocks.expressions import FEEL, Expression, FlowError, Literal, read_dialect
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, parse_ir, parse_step
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, For, UserTask, While, identified
from opus_pipelines.workflow.blocks.recovery import EXIT, UNNAMED, Recovery, RecoveryPoint, Way, with_invented_variables
from opus_pipelines.workflow.bpmn_xml import MODEL, children, local, parsed

ZEEBE = "http://camunda.org/schema/zeebe/1.0"
OPUS = "urn:opus-pipelines:flow:1"
_DEEPEST = 30
CALLS = frozenset(("task", "serviceTask", "sendTask", "receiveTask", "scriptTask", "businessRuleTask", "callActivity"))
PEOPLE = frozenset(("userTask", "manualTask"))
_STRUCTURE = frozenset(("startEvent", "endEvent", "exclusiveGateway", "parallelGateway", "subProcess", *CALLS, *PEOPLE))
_IGNORED = frozenset(
    (
        *("sequenceFlow", "textAnnotation", "association", "extensionElements", "documentation", "laneSet", "group"),
        *("dataObject", "dataObjectReference", "dataStoreReference", "incoming", "outgoing", "ioSpecification"),
        *("multiInstanceLoopCharacteristics", "standardLoopCharacteristics", "property"),
    )
)


@dataclass
class BpmnFlow:
    """A flow that was read. `names`: the element of each key of `drawing`, so that ids stay when it is written."""

    flow: Flow
    names: dict[str, str] = field(default_factory=dict)


def read_bpmn(content: bytes, name: str = "", duplicate: bool = False) -> BpmnFlow:
    """Returns the flow of a BPMN file; ids of statements are those of its elements.

    `duplicate`: steps that several ways share are written once for each. Raises FlowError that names the elements, with
    the line, where the XML is broken, an element has no counterpart in a flow, or the graph has no block structure.
    """
    return flow_of_bpmn(root_of(content), name, duplicate)


def flow_of_bpmn(root: Any, name: str = "", duplicate: bool = False) -> BpmnFlow:
    """Returns the flow of a BPMN file whose XML is parsed, as `read_bpmn` does."""
    processes = [p for p in root.iter(f"{{{MODEL}}}process") if any(local(e) in _STRUCTURE for e in p)]
    if len(processes) != 1:
        raise FlowError(
            f"the file has {len(processes)} processes with elements; a flow is one process", root.sourceline
        )
    reader = _Reader(root, duplicate)
    title = next((p.get("name") for p in processes if p.get("name")), name)
    flow = identified(Flow(reader.container(processes[0], "", 1), title))
    return BpmnFlow(with_invented_variables(flow), reader.names)


def root_of(content: bytes) -> Any:
    """Returns the root of a BPMN file; raises FlowError where the XML is broken, or no BPMN 2.0 model."""
    try:
        root = parsed(content)
    except ValueError as error:
        raise FlowError(str(error), *getattr(error.__context__, "position", (1,))) from None
    if local(root) != "definitions" or not root.tag.startswith(f"{{{MODEL}}}"):
        raise FlowError("the XML is no BPMN 2.0 model", root.sourceline)
    return root


def _label(element: Any) -> str:
    return " ".join((element.get("name") or local(element)).split())


class _Reader:
    def __init__(self, root: Any, duplicate: bool) -> None:
        self._duplicate = duplicate
        self.names: dict[str, str] = {}
        texts = {
            e.get("id"): "".join(t.text or "" for t in children(e, "text")) for e in self._all(root, "textAnnotation")
        }
        self._notes: dict[str, tuple[str, str, str]] = {}
        for link in self._all(root, "association"):
            ends = link.get("sourceRef", ""), link.get("targetRef", "")
            for note, about in (ends, ends[::-1]):
                if note in texts and about not in texts:
                    self._notes.setdefault(about, (texts[note], note, link.get("id", "")))

    def _all(self, root: Any, name: str) -> list[Any]:
        return list(root.iter(f"{{{MODEL}}}{name}"))

    def container(self, process: Any, key: str, level: int) -> Block:
        """Returns the block of a process or a sub-process, and notes the names of its elements."""
        if level > _DEEPEST:
            raise FlowError(f"more than {_DEEPEST} sub-processes stand inside one another", process.sourceline)
        elements = {e.get("id", ""): e for e in process if local(e) in _STRUCTURE}
        for element in process:
            name = local(element)
            if name and name not in _IGNORED and name not in _STRUCTURE:
                raise FlowError(f"a flow has no {name} ({_label(element)}, {element.get('id')})", element.sourceline)
        starts = [i for i, e in elements.items() if local(e) == "startEvent"]
        if len(starts) != 1:
            raise FlowError(f"{process.get('id')} has {len(starts)} start events; it needs one", process.sourceline)
        points = {i: self._point(e, level) for i, e in elements.items()}
        self._flows(process, elements, points)
        recovery = Recovery(points, starts[0], self._duplicate)
        block = recovery.whole()
        self._note_names(key, starts[0], elements, points, recovery.meetings)
        return block

    def _note_names(
        self, key: str, start: str, elements: dict[str, Any], points: dict[str, RecoveryPoint], meetings: dict[str, str]
    ) -> None:
        prefix = f"{key}." if key else ""
        ends = [i for i, e in elements.items() if local(e) == "endEvent"]
        self.names[f"{prefix}start"] = start
        if len(ends) == 1:
            self.names[f"{prefix}end"] = ends[0]
        claimed = set[str]()
        for split, meeting in meetings.items():
            if meeting != EXIT and points[meeting].kind == "pass" and meeting not in claimed and meeting not in ends:
                claimed.add(meeting)
                self.names[f"{split}.{'join' if points[split].kind == 'fork' else 'merge'}"] = meeting

    def _flows(self, process: Any, elements: dict[str, Any], points: dict[str, RecoveryPoint]) -> None:
        for flow in children(process, "sequenceFlow"):
            source, target = flow.get("sourceRef", ""), flow.get("targetRef", "")
            if source not in points or target not in points:
                missing = source if source not in points else target
                raise FlowError(
                    f"the flow {flow.get('id')} leads to {missing!r}, which is not in its process", flow.sourceline
                )
            way = Way(target)
            told = (flow.get("name") or "").strip().casefold()
            if told in ("yes", "true", "no", "false"):
                way.holds = told in ("yes", "true")
            for condition in children(flow, "conditionExpression"):
                way.condition, way.holds = self._condition("".join(condition.itertext()), flow), True
            if elements[source].get("default") == flow.get("id"):
                way.condition, way.holds = None, False
            points[source].ways.append(way)
        for ident, point in points.items():
            gateway = local(elements[ident])
            if len(point.ways) > 1 and gateway == "exclusiveGateway":
                point.kind = "decision"
                if point.condition is not None and len(point.ways) == 2:
                    for way in point.ways:
                        way.condition = None
            elif len(point.ways) > 1:
                point.kind = "fork" if not point.statements or gateway == "parallelGateway" else point.kind

    def _point(self, element: Any, level: int) -> RecoveryPoint:
        kind, ident = local(element), element.get("id", "")
        point = RecoveryPoint(ident, "pass", label=_label(element), line=element.sourceline)
        self.names[ident] = ident
        if kind in CALLS or kind in PEOPLE:
            point.kind, point.statements = "step", (self._step(element),)
        elif kind == "subProcess":
            point.kind, point.statements = "step", self._loop(element, level)
        elif kind == "exclusiveGateway":
            text = " ".join((element.get("name") or "").split())
            if text.startswith("Decision:"):
                point.condition = self._condition((element.get("name") or "").partition(":")[2], element)
            elif len(text) > 1:
                point.condition = self._maybe(text)
        return point

    def _maybe(self, text: str) -> Expression | None:
        try:
            return parse_condition(text)
        except FlowError:
            return None  # a name for people; the flows state the conditions

    def _condition(self, text: str, element: Any) -> Expression:
        text = text.strip()
        try:
            if text.startswith("="):
                return read_dialect(text[1:], FEEL)
            return parse_condition(text[2:-1] if text.startswith("${") and text.endswith("}") else text)
        except FlowError as error:
            raise FlowError(
                f"the condition of {_label(element)} ({element.get('id')}): {error}", element.sourceline
            ) from None

    def _step(self, element: Any) -> Call | UserTask:
        ident, person = element.get("id", ""), local(element) in PEOPLE
        name = element.get("name") or ""
        stated = element.find(f"{{{MODEL}}}extensionElements/{{{OPUS}}}step")
        variable = UNNAMED
        if stated is not None:
            try:
                step = parse_step(stated.text or "")
            except FlowError as error:
                raise FlowError(f"the step of {_label(element)} ({ident}): {error}", element.sourceline) from None
            if xml_text(step_name(step)) == name and isinstance(step, UserTask) == person:
                return _with_id(step, ident)
            variable = step.variable
        if person:
            bare = name.strip()
            quoted = len(bare) > 1 and bare[0] == bare[-1] == "'"
            return UserTask(bare[1:-1] if quoted else bare, variable, id=ident)
        return self._call(element, name, variable)

    def _call(self, element: Any, name: str, variable: str) -> Call:
        extension = element.find(f"{{{MODEL}}}extensionElements")
        arguments: list[tuple[str, Any]] = []
        if extension is not None and variable == UNNAMED:
            for definition in extension.iter(f"{{{ZEEBE}}}taskDefinition"):
                name = definition.get("type") or name
            for given in extension.iter(f"{{{ZEEBE}}}input"):
                value = (
                    self._condition(given.get("source", ""), element)
                    if given.get("source", "").startswith("=")
                    else None
                )
                arguments.append(
                    (given.get("target", ""), Literal(given.get("source", "")) if value is None else value)
                )
            for result in extension.iter(f"{{{ZEEBE}}}output"):
                variable = result.get("target") or variable
        if not name:
            raise FlowError(f"the task {element.get('id')} has no name", element.sourceline)
        return Call(" ".join(name.split()), variable, tuple(arguments), id=element.get("id", ""))

    def _loop(self, element: Any, level: int) -> Block:
        ident = element.get("id", "")
        many = list(children(element, "multiInstanceLoopCharacteristics"))
        rounds = list(children(element, "standardLoopCharacteristics"))
        body = self.container(element, ident, level + 1)
        if not many and not rounds:
            return body
        text, note, link = self._notes.get(ident, ("", "", ""))
        if note:
            self.names |= {f"{ident}.text": note, f"{ident}.link": link}
        return (self._header(element, text, many, body),)

    def _header(self, element: Any, text: str, many: list[Any], body: Block) -> For | While:
        ident = element.get("id", "")
        if not body:
            raise FlowError(f"the loop {_label(element)} ({ident}) has no step", element.sourceline)
        if not text.strip() and many:
            for found in many[0].iter(f"{{{ZEEBE}}}loopCharacteristics"):
                iterable = self._condition(found.get("inputCollection", ""), element)
                return For(found.get("inputElement", "item"), iterable, body, id=ident)
        if not text.strip():
            text = "while " + "".join(element.xpath("string(.//*[local-name()='loopCondition'])"))
        try:
            (header,) = parse_ir(" ".join(text.split()).rstrip(":") + ":\n  x = A()").body
        except FlowError as error:
            raise FlowError(
                f"the loop {_label(element)} ({ident}) has no header such as 'for x in xs': {error}", element.sourceline
            ) from None
        if isinstance(header, For) and many:
            return For(header.variable, header.iterable, body, id=ident)
        if isinstance(header, While) and not many:
            return While(header.condition, body, id=ident)
        raise FlowError(
            f"the loop {_label(element)} ({ident}) says {text!r}, which is another kind of loop", element.sourceline
        )


def _with_id(step: Call | UserTask, ident: str) -> Call | UserTask:
    if isinstance(step, Call):
        return Call(step.activity, step.variable, step.arguments, id=ident)
    return UserTask(step.text, step.variable, id=ident)
