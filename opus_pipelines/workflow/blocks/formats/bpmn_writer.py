"""Writes flows as BPMN 2.0 with a layout, element by element as text, so that an element can be put into a file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from opus_pipelines.core.formatting import xml_text
from opus_pipelines.workflow.blocks.drawing import (
    GAP,
    NOTE,
    Drawing,
    DrawnEdge,
    DrawnNode,
    draw,
    drawings,
    waypoints,
)
from opus_pipelines.workflow.blocks.expressions import FEEL, Expression, write_dialect
from opus_pipelines.workflow.blocks.formats.bpmn_reader import OPUS, ZEEBE
from opus_pipelines.workflow.blocks.formats.python_ir import write_condition
from opus_pipelines.workflow.blocks.model import Call, Flow, For, While
from opus_pipelines.workflow.bpmn_xml import DC, DI, DIAGRAM, MODEL

XSI = "http://www.w3.org/2001/XMLSchema-instance"
_TAGS = {
    "start": "startEvent",
    "end": "endEvent",
    "call": "task",
    "user_task": "userTask",
    "decision": "exclusiveGateway",
    "merge": "exclusiveGateway",
    "fork": "parallelGateway",
    "join": "parallelGateway",
    "loop": "subProcess",
}
_EVENTS = {"start": "Start", "end": "End"}


@dataclass(frozen=True)
class Style:
    """The prefixes of a file, whether nodes list their flows, and whether Camunda's attributes are written."""

    model: str = "bpmn:"
    diagram: str = "bpmndi:"
    bounds: str = "dc:"
    line: str = "di:"
    refs: bool = True
    camunda: bool = False


def write_bpmn(flow: Flow, names: Mapping[str, str] | None = None, camunda: bool = False) -> bytes:
    """Returns the flow as a BPMN 2.0 file with a layout; equal flows with equal ids give equal bytes.

    Every statement needs an id (`traversal.identified`). `names` as `bpmn_reader` returns them keeps the ids of a file.
    `camunda`: for Camunda 8, with its attributes (zeebe), FEEL conditions, and gateways in place of standard loops.
    """
    style = Style(camunda=camunda)
    drawing = draw(flow, names, loops_as_gateways=camunda)
    title = f" name={quoteattr(xml_text(flow.name))}" if flow.name else ""
    spaces = f'xmlns:bpmn="{MODEL}" xmlns:bpmndi="{DIAGRAM}" xmlns:dc="{DC}" xmlns:di="{DI}" xmlns:xsi="{XSI}"'
    if camunda:
        spaces += f' xmlns:zeebe="{ZEEBE}" xmlns:modeler="http://camunda.org/schema/modeler/1.0"'
        spaces += ' modeler:executionPlatform="Camunda Cloud" modeler:executionPlatformVersion="8.5.0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<bpmn:definitions {spaces} id="Definitions_1" targetNamespace="{OPUS}" exporter="opus">',
        f'  <bpmn:process id="Process_1"{title} isExecutable="{"true" if camunda else "false"}">',
        *contents(drawing, style, "    "),
        "  </bpmn:process>",
        *diagram(drawing, style, "Process_1", "  "),
        "</bpmn:definitions>",
    ]
    return ("\n".join(lines) + "\n").encode()


def contents(drawing: Drawing, style: Style, indent: str, kept: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yields the elements of a process or a sub-process: nodes, flows, then annotations. `kept`: texts that exist."""
    kept = kept or {}
    touching: defaultdict[str, list[DrawnEdge]] = defaultdict(list)
    for edge in drawing.edges:
        touching[edge.source].append(edge)
        touching[edge.target].append(edge)
    for node in drawing.nodes:
        if node.id in kept:
            yield indent + kept[node.id]
        else:
            yield from element(node, touching[node.id], style, indent, kept)
    for edge in drawing.edges:
        if edge.id in kept:
            yield indent + kept[edge.id]
        else:
            yield from sequence_flow(edge, style, indent)
    for node in drawing.nodes:
        yield from annotation(node, style, indent, kept)


def element(
    node: DrawnNode, edges: list[DrawnEdge], style: Style, indent: str, kept: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yields the lines of a node, for a loop those of its inside too; `kept` as in `contents`."""
    tag = style.model + _tag(node, style)
    yield indent + start_tag(node, edges, style)
    inner = indent + "  "
    yield from _extension(node, style, inner)
    if style.refs:
        yield from (
            f"{inner}<{style.model}incoming>{e.id}</{style.model}incoming>" for e in edges if e.target == node.id
        )
        yield from (
            f"{inner}<{style.model}outgoing>{e.id}</{style.model}outgoing>" for e in edges if e.source == node.id
        )
    if node.inner is not None:
        yield from loop(node, style, inner)
        yield from contents(node.inner, style, inner, kept)
    yield f"{indent}</{tag}>"


def _tag(node: DrawnNode, style: Style) -> str:
    return "serviceTask" if style.camunda and node.kind == "call" else _TAGS[node.kind]


def start_tag(node: DrawnNode, edges: list[DrawnEdge], style: Style) -> str:
    """Returns the opening tag of a node. A decision names the flow that is taken where its condition does not hold."""
    name = node.name or _EVENTS.get(node.kind, "")
    text = f"<{style.model}{_tag(node, style)} id={quoteattr(node.id)}"
    if name:
        text += f" name={quoteattr(xml_text(name))}"
    default = next((e.id for e in edges if e.source == node.id and e.label == "no"), None)
    return text + (f" default={quoteattr(default)}>" if default else ">")


def step_text(node: DrawnNode) -> str:
    """Returns the step of a task as an element; it holds what a name cannot: variable, arguments, odd characters."""
    return f'<opus:step xmlns:opus="{OPUS}">{escape(node.step)}</opus:step>'


def _extension(node: DrawnNode, style: Style, indent: str) -> Iterator[str]:
    if node.kind not in ("call", "user_task"):
        return
    yield f"{indent}<{style.model}extensionElements>"
    if style.camunda:
        yield from (f"{indent}  {line}" for line in _zeebe(node))
    yield f"{indent}  {step_text(node)}"
    yield f"{indent}</{style.model}extensionElements>"


def _zeebe(node: DrawnNode) -> Iterator[str]:
    step = node.statement
    if isinstance(step, Call):
        yield f"<zeebe:taskDefinition type={quoteattr(xml_text(step.activity))} />"
    else:
        yield "<zeebe:userTask />"
    yield "<zeebe:ioMapping>"
    if isinstance(step, Call):
        for name, value in step.arguments:
            yield f"  <zeebe:input source={quoteattr('=' + feel(value))} target={quoteattr(name)} />"
    variable = getattr(step, "variable", "")
    yield f'  <zeebe:output source="=result" target={quoteattr(variable)} />'
    yield "</zeebe:ioMapping>"


def feel(value: Expression) -> str:
    """Returns an expression in FEEL."""
    return write_dialect(value, FEEL)


def loop(node: DrawnNode, style: Style, indent: str) -> Iterator[str]:
    """Yields what makes a sub-process a loop: the characteristics of a for or a while."""
    header, model = node.statement, style.model
    if isinstance(header, For) and style.camunda:
        items = f"inputCollection={quoteattr('=' + feel(header.iterable))} inputElement={quoteattr(header.variable)}"
        yield f'{indent}<{model}multiInstanceLoopCharacteristics isSequential="true">'
        yield f"{indent}  <{model}extensionElements>"
        yield f"{indent}    <zeebe:loopCharacteristics {items} />"
        yield f"{indent}  </{model}extensionElements>"
        yield f"{indent}</{model}multiInstanceLoopCharacteristics>"
    elif isinstance(header, For):
        yield f'{indent}<{model}multiInstanceLoopCharacteristics isSequential="true" />'
    elif isinstance(header, While):
        yield f'{indent}<{model}standardLoopCharacteristics testBefore="true">'
        yield f"{indent}  {_formal('loopCondition', write_condition(header.condition), style)}"
        yield f"{indent}</{model}standardLoopCharacteristics>"


def _formal(name: str, text: str, style: Style) -> str:
    kind = f'xmlns:xsi="{XSI}" xsi:type="{style.model}tFormalExpression"'
    return f"<{style.model}{name} {kind}>{escape(text)}</{style.model}{name}>"


def condition_text(edge: DrawnEdge, style: Style) -> str:
    """Returns the condition of a flow as it stands in the file."""
    if edge.condition is None:
        return ""
    return "=" + feel(edge.condition) if style.camunda else write_condition(edge.condition)


def sequence_flow(edge: DrawnEdge, style: Style, indent: str) -> Iterator[str]:
    """Yields the lines of a sequence flow, with its label and condition."""
    name = f" name={quoteattr(edge.label)}" if edge.label else ""
    ends = f"sourceRef={quoteattr(edge.source)} targetRef={quoteattr(edge.target)}"
    head = f"{indent}<{style.model}sequenceFlow id={quoteattr(edge.id)}{name} {ends}"
    if edge.condition is None:
        yield head + " />"
    else:
        yield head + ">"
        yield f"{indent}  {_formal('conditionExpression', condition_text(edge, style), style)}"
        yield f"{indent}</{style.model}sequenceFlow>"


def annotation(node: DrawnNode, style: Style, indent: str, kept: Mapping[str, str]) -> Iterator[str]:
    """Yields the annotation of a loop with its header, and the association between them; `kept`: texts that exist."""
    text, link = node.note
    if node.kind != "loop" or text in kept:
        yield from (indent + kept[ident] for ident in node.note if ident in kept)
        return
    yield f"{indent}<{style.model}textAnnotation id={quoteattr(text)}>"
    yield f"{indent}  {note_text(node, style)}"
    yield f"{indent}</{style.model}textAnnotation>"
    ends = f"sourceRef={quoteattr(node.id)} targetRef={quoteattr(text)}"
    yield f"{indent}<{style.model}association id={quoteattr(link)} {ends} />"


def note_text(node: DrawnNode, style: Style) -> str:
    """Returns the header of a loop as the text of its annotation."""
    return f"<{style.model}text>{escape(xml_text(node.step))}</{style.model}text>"


def diagram(drawing: Drawing, style: Style, process: str, indent: str, declare: bool = False) -> Iterator[str]:
    """Yields the layout of a whole drawing; `declare`: with the namespaces, for a file that has none of them."""
    spaces = f' xmlns:bpmndi="{DIAGRAM}" xmlns:dc="{DC}" xmlns:di="{DI}"' if declare else ""
    yield f'{indent}<{style.diagram}BPMNDiagram id="BPMNDiagram_1"{spaces}>'
    yield f'{indent}  <{style.diagram}BPMNPlane id="BPMNPlane_1" bpmnElement={quoteattr(process)}>'
    for inner in drawings(drawing):
        for node in inner.nodes:
            yield from shape(node, style, indent + "    ")
            yield from note_shape(node, style, indent + "    ")
        places = {node.id: node for node in inner.nodes}
        for edge in inner.edges:
            yield from line(edge, waypoints(edge, places), style, indent + "    ")
    yield f"{indent}  </{style.diagram}BPMNPlane>"
    yield f"{indent}</{style.diagram}BPMNDiagram>"


def shape(node: DrawnNode, style: Style, indent: str) -> Iterator[str]:
    """Yields the shape of a node."""
    extra = ' isExpanded="true"' if node.kind == "loop" else ""
    extra += ' isMarkerVisible="true"' if node.kind in ("decision", "merge") else ""
    yield from _shape(node.id, (node.x, node.y, node.width, node.height), extra, style, indent)


def note_shape(node: DrawnNode, style: Style, indent: str) -> Iterator[str]:
    """Yields the shape of a loop's annotation and the line to it."""
    if node.kind == "loop":
        text, link = node.note
        yield from _shape(text, (node.x + GAP, node.y - 1.75 * NOTE, 200, NOTE), "", style, indent)
        ends = [(node.x + GAP, node.y), (node.x + GAP, node.y - 0.75 * NOTE)]
        yield from line(DrawnEdge(link, "", ""), ends, style, indent)


def _shape(ident: str, box: tuple[float, float, float, float], extra: str, style: Style, indent: str) -> Iterator[str]:
    names = quoteattr(f"{ident}_di"), quoteattr(ident)
    yield f"{indent}<{style.diagram}BPMNShape id={names[0]} bpmnElement={names[1]}{extra}>"
    sizes = " ".join(f'{name}="{round(value)}"' for name, value in zip(("x", "y", "width", "height"), box, strict=True))
    yield f"{indent}  <{style.bounds}Bounds {sizes} />"
    yield f"{indent}</{style.diagram}BPMNShape>"


def line(edge: DrawnEdge, points: list[tuple[float, float]], style: Style, indent: str) -> Iterator[str]:
    """Yields the line of a flow along these points."""
    yield f"{indent}<{style.diagram}BPMNEdge id={quoteattr(edge.id + '_di')} bpmnElement={quoteattr(edge.id)}>"
    yield from (f'{indent}  <{style.line}waypoint x="{round(x)}" y="{round(y)}" />' for x, y in points)
    yield f"{indent}</{style.diagram}BPMNEdge>"
