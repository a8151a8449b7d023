"""The page about one flow: its picture, the flow before it, what changed, what was retrieved, and both as text.

Page and pictures (SVG) have no script and nothing external; the page's policy forbids whatever is not in the file, and
every text is escaped. Colours show what an edit changed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import shorten, wrap
from xml.sax.saxutils import quoteattr

from opus_pipelines.core.formatting import clean
from opus_pipelines.reporting.graphs.svg import svg_text
from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.drawing import NOTE, Drawing, DrawnNode, draw, drawings, waypoints
from opus_pipelines.workflow.blocks.edits import applied
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import loop_header, write_condition, write_step, write_steps
from opus_pipelines.workflow.blocks.formats.tree_files import json_data, write_yaml
from opus_pipelines.workflow.blocks.model import Call, Flow, For, If, UserTask, While, identified, walk

ADDED, REMOVED, CHANGED, SAME = "added", "removed", "changed", "same"
_COLOURS = {ADDED: "#1a7f37", REMOVED: "#b42318", CHANGED: "#9a6700", SAME: "#344054"}
_FILLS = {ADDED: "#dcfae6", REMOVED: "#fee4e2", CHANGED: "#fef0c7", SAME: "#ffffff"}
_MARGIN, _TITLE, _LINE, _BETWEEN = 20.0, 40.0, 12.0, 60.0
_HEAD = '<svg xmlns="http://www.w3.org/2000/svg" role="img" font-family="sans-serif" font-size="10"'


@dataclass(frozen=True)
class Marks:
    """Two flows with what changed between them: each id of a step, branch or loop with its mark."""

    before: Flow
    after: Flow
    old: Mapping[str, str]
    new: Mapping[str, str]


def marked(before: Flow, after: Flow) -> Marks:
    """Returns what an edit from one flow to the other adds, removes and changes."""
    before = identified(before)
    after = Flow(applied(before, difference(before, after)).body, after.name)
    old, new = _texts(before), _texts(after)
    kept = {ident: CHANGED for ident in old.keys() & new.keys() if old[ident] != new[ident]}
    return Marks(
        before,
        after,
        kept | dict.fromkeys(old.keys() - new.keys(), REMOVED),
        kept | dict.fromkeys(new.keys() - old.keys(), ADDED),
    )


def _texts(flow: Flow) -> dict[str, str]:
    """What each step and each header says."""
    found: dict[str, str] = {}
    for statement in walk(flow.body):
        if isinstance(statement, If):
            found |= {branch.id: write_condition(branch.condition) for branch in statement.branches}
        elif isinstance(statement, For | While):
            found[statement.id] = loop_header(statement)
        else:
            found[statement.id] = write_step(statement) if isinstance(statement, Call | UserTask) else "parallel"
    return found


def flow_svg(flow: Flow, marks: Mapping[str, str] | None = None) -> str:
    """Returns the picture of a flow; equal flows give equal texts. `marks`: the mark of a step by its id."""
    part = _Part(identified(flow), marks or {})
    return _document([part], part.width, part.height, f"Flow {flow.name}".strip())


def difference_svg(before: Flow, after: Flow) -> str:
    """Returns both flows side by side: what goes is red on the left, what comes green on the right, changes amber."""
    found = marked(before, after)
    left, right = _Part(found.before, found.old, "before"), _Part(found.after, found.new, "after")
    right.x = left.width + _BETWEEN
    return _document([left, right], right.x + right.width, max(left.height, right.height), "Two flows side by side")


class _Part:
    """One flow of a picture with its place."""

    def __init__(self, flow: Flow, marks: Mapping[str, str], title: str = "") -> None:
        self.drawing, self.marks, self.title, self.x = draw(flow), marks, title, 0.0
        nodes = [node for drawing in drawings(self.drawing) for node in drawing.nodes]
        corners = [
            corner
            for drawing in drawings(self.drawing)
            for edge in drawing.edges
            for corner in waypoints(edge, {node.id: node for node in drawing.nodes})
        ]
        self.left = min(node.x for node in nodes) - _MARGIN
        self.top = min(node.y - (2 * NOTE if node.kind == "loop" else 0.0) for node in nodes) - _MARGIN
        self.width = max([n.x + n.width for n in nodes] + [x for x, _ in corners]) - self.left + _MARGIN
        self.height = max([n.y + n.height for n in nodes] + [y for _, y in corners]) - self.top + _MARGIN + _TITLE

    def lines(self) -> Iterator[str]:
        """Yields its elements."""
        yield f'<g transform="translate({round(self.x - self.left)},{round(_TITLE - self.top)})">'
        if self.title:
            place = f'x="{round(self.left + _MARGIN)}" y="{round(self.top - 14)}"'
            yield f'<text {place} font-size="14" font-weight="bold">{svg_text(self.title)}</text>'
        for drawing in drawings(self.drawing):
            yield from self._drawing(drawing)
        yield "</g>"

    def _drawing(self, drawing: Drawing) -> Iterator[str]:
        places = {node.id: node for node in drawing.nodes}
        for node in drawing.nodes:
            yield from self._node(node)
        for edge in drawing.edges:
            corners = waypoints(edge, places)
            points = " ".join(f"{round(x)},{round(y)}" for x, y in corners)
            yield f'<polyline points="{points}" fill="none" stroke="#667085" marker-end="url(#arrow)"/>'
            if edge.label:
                x, y = corners[0] if corners[0][1] == corners[1][1] else corners[1]
                yield f'<text x="{round(x + 4)}" y="{round(y - 4)}" fill="#667085">{svg_text(edge.label)}</text>'

    def _node(self, node: DrawnNode) -> Iterator[str]:
        mark = self.marks.get(node.id, SAME)
        paint = f'fill="{_FILLS[mark]}" stroke="{_COLOURS[mark]}" stroke-width="{1 if mark == SAME else 2}"'
        x, y, w, h = (round(value) for value in (node.x, node.y, node.width, node.height))
        yield f"<g><title>{svg_text(node.step or node.name or node.kind)}</title>"
        if node.kind in ("start", "end"):
            ring = ' stroke-width="3"' if node.kind == "end" else ""
            yield f'<circle cx="{x + w // 2}" cy="{y + h // 2}" r="{w // 2}" fill="#ffffff" stroke="#344054"{ring}/>'
        elif node.kind in ("call", "user_task", "loop"):
            dashes = ' stroke-dasharray="5 3"' if node.kind == "loop" else ""
            paint = paint.replace('fill="#ffffff"', 'fill="none"') if node.kind == "loop" else paint
            yield f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" {paint}{dashes}/>'
        else:
            corners = f"{x + w // 2},{y} {x + w},{y + h // 2} {x + w // 2},{y + h} {x},{y + h // 2}"
            yield f'<polygon points="{corners}" {paint}/>'
        yield from self._label(node, mark)
        yield "</g>"

    def _label(self, node: DrawnNode, mark: str) -> Iterator[str]:
        colour = f'fill="{_COLOURS[mark]}"'
        middle = round(node.x + node.width / 2)
        if node.kind == "loop":
            place = f'x="{round(node.x + 8)}" y="{round(node.y - 6)}"'
            yield f"<text {place} {colour}>{svg_text(shorten(clean(node.step), 80, placeholder='…'))}</text>"
        elif node.kind == "decision":
            words = shorten(clean(node.name.removeprefix("Decision: ")), 34, placeholder="…")
            yield f'<text x="{middle}" y="{round(node.y - 5)}" text-anchor="middle" {colour}>{svg_text(words)}</text>'
        elif node.kind in ("fork", "join"):
            yield f'<text x="{middle}" y="{round(node.middle + 6)}" text-anchor="middle" font-size="20">+</text>'
        elif node.kind in ("call", "user_task"):
            words = clean(node.name).replace("_", "_\u200b")
            lines = wrap(words.replace("\u200b", " "), 17, break_long_words=True)[:5]
            person = ["(a person)"] if node.kind == "user_task" else []
            lines = [line.replace("_ ", "_") for line in [*lines, *person]]
            top = node.middle - (len(lines) - 1) * _LINE / 2 + 3
            for i, line in enumerate(lines):
                place = f'x="{middle}" y="{round(top + i * _LINE)}" text-anchor="middle"'
                yield f"<text {place} {colour}>{svg_text(line)}</text>"


def _document(parts: list[_Part], width: float, height: float, title: str) -> str:
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#667085"/></marker></defs>'
    )
    size = f'viewBox="0 0 {round(width)} {round(height)}" width="{round(width)}" height="{round(height)}"'
    lines = [f"{_HEAD} {size} aria-label={quoteattr(clean(title))}>", arrow]
    lines += [line for part in parts for line in part.lines()]
    return "\n".join([*lines, "</svg>", ""])


@dataclass(frozen=True)
class Retrieved:
    """An activity that was retrieved for a flow, with its description and its score (higher is nearer)."""

    activity: str
    description: str
    score: float


@dataclass(frozen=True)
class FlowPage:
    """What a page shows. `prior` is the flow before an edit; `utterance` is what a person asked for."""

    flow: Flow
    prior: Flow | None = None
    utterance: str = ""
    retrieved: tuple[Retrieved, ...] = ()


def read_retrieved(content: bytes) -> tuple[Retrieved, ...]:
    """Returns the rows of a JSON list of tables with activity, description and score; raises FlowError by row."""
    data = json_data(content)
    if not isinstance(data, list):
        raise FlowError("retrieved activities are a JSON list")
    rows = []
    for number, each in enumerate(data, start=1):
        try:
            rows.append(Retrieved(str(each["activity"]), str(each.get("description", "")), float(each["score"])))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FlowError(f"retrieved activity {number}: it is a table with activity and score, a number") from None
    return tuple(rows)


def flow_text(flow: Flow) -> str:
    """Returns the flow in the Python IR with arguments, and as YAML where it has a parallel."""
    try:
        return write_steps(flow.body)
    except FlowError:
        return write_yaml(identified(flow)).decode()
