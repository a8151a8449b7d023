"""A flow as steps that name the next step: what Mermaid and n8n show. `recovery` makes blocks of it again."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Literal
from opus_pipelines.workflow.blocks.formats.python_ir import parse, parse_condition
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, For, If, Parallel, Statement, UserTask, While
from opus_pipelines.workflow.blocks.recovery import EXIT, Point, Recovery, Way
from opus_pipelines.workflow.blocks.traversal import identified, map_statements
from opus_pipelines.workflow.blocks.variables import with_invented_variables

YES, NO = "yes", "no"


@dataclass
class Box:
    """One element. `kind`: step, if, while, for, fork, join or end. `ways`: label and id of what comes next."""

    id: str
    kind: str
    step: Call | UserTask | None = None
    condition: Expression | None = None
    loop: For | None = None
    ways: list[tuple[str, str]] = field(default_factory=list)
    line: int | None = None
    label: str = ""


def charted(flow: Flow) -> list[Box]:
    """Returns the elements of the flow in the order of reading, the first one first; the last is the end, `EXIT`."""
    return [*_boxes(identified(flow).body, EXIT), Box(EXIT, "end")]


def _entry(block: Block, after: str) -> str:
    if not block:
        return after
    return block[0].branches[0].id if isinstance(block[0], If) else block[0].id


def _boxes(block: Block, after: str) -> Iterator[Box]:
    for i, statement in enumerate(block):
        then = _entry(block[i + 1 :], after)
        if isinstance(statement, If):
            for j, branch in enumerate(statement.branches):
                last = j + 1 == len(statement.branches)
                other = _entry(statement.orelse, then) if last else statement.branches[j + 1].id
                ways = [(YES, _entry(branch.body, then)), (NO, other)]
                yield Box(branch.id, "if", condition=branch.condition, ways=ways)
                yield from _boxes(branch.body, then)
            yield from _boxes(statement.orelse, then)
        elif isinstance(statement, For | While):
            ways = [(YES, _entry(statement.body, statement.id)), (NO, then)]
            if isinstance(statement, For):
                yield Box(statement.id, "for", loop=statement, ways=ways)
            else:
                yield Box(statement.id, "while", condition=statement.condition, ways=ways)
            yield from _boxes(statement.body, statement.id)
        elif isinstance(statement, Parallel):
            join = f"{statement.id}_join"
            yield Box(statement.id, "fork", ways=[("", _entry(branch, join)) for branch in statement.branches])
            for block_of_branch in statement.branches:
                yield from _boxes(block_of_branch, join)
            yield Box(join, "join", ways=[("", then)])
        else:
            yield Box(statement.id, "step", step=statement, ways=[("", then)])


def from_chart(boxes: list[Box], start: str, duplicate: bool = False) -> Flow:
    """Returns the flow of these elements; raises FlowError as `recovery` does, and for a for that is no loop."""
    points = {box.id: _point(box) for box in boxes if box.kind != "end"}
    loops = {box.id: box.loop for box in boxes if box.loop is not None}
    block = Recovery(points, start, duplicate).whole() if start != EXIT else ()

    def change(statement: Statement) -> Statement:
        if isinstance(statement, While) and statement.id in loops:
            header = loops[statement.id]
            return For(header.variable, header.iterable, statement.body, id=statement.id)
        if isinstance(statement, If):
            for branch in statement.branches:
                if branch.id in loops:
                    raise FlowError(f"the for {branch.id} is no loop: no way leads back to it", points[branch.id].line)
        return statement

    return with_invented_variables(identified(Flow(map_statements(block, change))))


def _point(box: Box) -> Point:
    kind = {"step": "step", "fork": "fork", "join": "pass"}.get(box.kind, "decision")
    ways = [Way(target, None, {YES: True, NO: False}.get(label)) for label, target in box.ways]
    condition = Literal(True) if box.loop is not None else box.condition
    steps = () if box.step is None else (replace(box.step, id=box.id),)
    return Point(box.id, kind, steps, condition, ways, box.label or box.kind, box.line)


def parse_header(text: str) -> tuple[str, Expression | None, For | None]:
    """Returns kind, condition and loop of a text such as `if x`, `while x`, `for x in xs`; raises FlowError."""
    word, _, rest = text.strip().partition(" ")
    if word in ("if", "while"):
        return word, parse_condition(rest), None
    if word == "for":
        (loop,) = parse(f"{text.strip()}:\n  x = A()").body
        if isinstance(loop, For):
            return "for", None, loop
    return "if", parse_condition(text), None
