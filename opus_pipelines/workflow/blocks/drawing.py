"""A flow as nodes and edges with places: what BPMN shows. `recovery` makes blocks of it again.

Each element has a key that depends on the statement only: `s3` is the task of the statement `s3`, `s4.merge` the
gateway that closes the branch `s4`. `names` says which element of an earlier file a key is, so that ids stay.

Of a drawing that is placed in part, new elements get a place and the others keep theirs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opus_pipelines.workflow.blocks.expressions import Expression
from opus_pipelines.workflow.blocks.formats.python_ir import loop_header, write_condition, write_step
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, For, If, Parallel, Statement, UserTask, While

TASK, GATEWAY, EVENT = (100.0, 80.0), (50.0, 50.0), (36.0, 36.0)
GAP, PAD, NOTE = 60.0, 40.0, 40.0


@dataclass
class DrawnNode:
    """One element. `kind`: start, end, call, user_task, decision, merge, fork, join or loop. `x`, `y`: upper left."""

    id: str
    kind: str
    name: str = ""
    step: str = ""
    condition: Expression | None = None
    inner: "Drawing | None" = None
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    statement: Statement | None = None
    note: tuple[str, str] = ("", "")  # the ids of the annotation of a loop and of the line to it

    @property
    def middle(self) -> float:
        """The vertical middle."""
        return self.y + self.height / 2


@dataclass
class DrawnEdge:
    """A sequence flow. `label`: yes, no or nothing; `lane`: the height at which it runs where it has one of its own."""

    id: str
    source: str
    target: str
    label: str = ""
    condition: Expression | None = None
    lane: float | None = None


@dataclass
class Drawing:
    """A process or the inside of a loop: its nodes and edges in the order of reading."""

    nodes: list[DrawnNode] = field(default_factory=list)
    edges: list[DrawnEdge] = field(default_factory=list)


def draw(
    flow: Flow, names: Mapping[str, str] | None = None, loops_as_gateways: bool | frozenset[str] = False
) -> Drawing:
    """Returns the flow as a drawing with a layout; equal flows with equal ids give equal drawings.

    Every statement needs an id. `loops_as_gateways`: a while becomes a gateway with a way back and no
    sub-process, for engines that have no standard loop; every while, or those with these ids.
    """
    artist = _Artist(dict(names or {}), loops_as_gateways)
    return artist.container("", flow.body, 160.0, PAD + artist.above(flow.body) + GAP)


def drawings(drawing: Drawing) -> Iterator[Drawing]:
    """Yields the drawing and those inside its loops."""
    yield drawing
    for node in drawing.nodes:
        if node.inner is not None:
            yield from drawings(node.inner)


def _height(node: DrawnNode) -> float:
    """Where flows meet a node: in its middle, and a loop at the line of its inside."""
    line = node.inner.nodes[0].middle if node.inner is not None else node.middle
    return line if node.y < line < node.y + node.height else node.middle


def waypoints(edge: DrawnEdge, places: Mapping[str, DrawnNode]) -> list[tuple[float, float]]:
    """Returns the corners of a flow: straight where both ends are level, else along its lane or with one bend."""
    source, target = places[edge.source], places[edge.target]
    begin, end = (source.x + source.width, _height(source)), (target.x, _height(target))
    gateways = ("decision", "merge", "fork", "join")
    above = (source.x + source.width / 2, target.x + target.width / 2)
    if edge.lane is not None and edge.lane not in (source.middle, target.middle):
        leaves = source.y + source.height if edge.lane > source.middle else source.y
        enters = target.y + target.height if edge.lane > target.middle else target.y
        if target.kind not in gateways:
            middle = target.x - GAP / 2
            return [(above[0], leaves), (above[0], edge.lane), (middle, edge.lane), (middle, end[1]), end]
        return [(above[0], leaves), (above[0], edge.lane), (above[1], edge.lane), (above[1], enters)]
    if begin[1] == end[1]:
        return [begin, end]
    if source.kind in gateways:
        leaves = source.y + source.height if end[1] > begin[1] else source.y
        return [(above[0], leaves), (above[0], end[1]), end]
    if target.kind in gateways:
        enters = target.y + target.height if begin[1] > end[1] else target.y
        return [begin, (above[1], begin[1]), (above[1], enters)]
    middle = (begin[0] + end[0]) / 2
    return [begin, (middle, begin[1]), (middle, end[1]), end]


def step_name(step: Call | UserTask) -> str:
    """Returns what the element of a step is called."""
    return step.activity if isinstance(step, Call) else step.text


@dataclass
class _Open:
    """Where the next edge begins: the last element, and the label and condition of the way out of it."""

    source: str
    label: str = ""
    condition: Expression | None = None
    lane: float | None = None


class _Artist:
    """Draws blocks from left to right along a line, branches below one another."""

    def __init__(self, names: dict[str, str], loops_as_gateways: bool | frozenset[str]) -> None:
        self._names, self._gateways = names, loops_as_gateways
        self._used = set(names.values())
        self._given: dict[str, str] = {}

    def _as_gateways(self, loop: While) -> bool:
        return self._gateways if isinstance(self._gateways, bool) else loop.id in self._gateways

    def name(self, key: str) -> str:
        """Returns the id of the element of a key: that of the earlier file, or the key itself as an XML name."""
        if key not in self._given:
            plain = self._names.get(key)
            if plain is None:
                stem = plain = (
                    re.sub(r"[^\w-]", "_", key) if re.match(r"[^\W\d]", key) else "n_" + re.sub(r"\W", "_", key)
                )
                number = 1
                while plain in self._used:
                    number += 1
                    plain = f"{stem}_{number}"
            self._used.add(plain)
            self._given[key] = plain
        return self._given[key]

    def above(self, block: Block) -> float:
        """Returns how far the block reaches above its line."""
        return max((self._extent(each)[1] for each in block), default=TASK[1] / 2)

    def below(self, block: Block) -> float:
        """Returns how far the block reaches below its line."""
        return max((self._extent(each)[2] for each in block), default=TASK[1] / 2)

    def _width(self, block: Block) -> float:
        return sum(self._extent(each)[0] + GAP for each in block) - GAP if block else 0.0

    def _extent(self, statement: Statement) -> tuple[float, float, float]:
        """Returns width, and how far it reaches above and below the line."""
        if isinstance(statement, If):
            lanes = self._lanes([branch.body for branch in statement.branches], statement.orelse)
            chain = len(statement.branches) - 1
            width = max(self._width(lane) + min(i, chain) * (GATEWAY[0] + GAP) * 2 for i, lane in enumerate(lanes))
            return (width + 2 * (GATEWAY[0] + GAP), *self._stacked(lanes))
        if isinstance(statement, Parallel):
            lanes = list(statement.branches)
            return (max(map(self._width, lanes)) + 2 * (GATEWAY[0] + GAP), *self._stacked(lanes))
        if isinstance(statement, While) and self._as_gateways(statement):
            width = self._width(statement.body) + 2 * (GATEWAY[0] + GAP)
            return (width, self.above(statement.body) + NOTE, self.below(statement.body) + NOTE)
        if isinstance(statement, For | While):
            width = self._width(statement.body) + 2 * (EVENT[0] + GAP + PAD)
            return (width, self.above(statement.body) + PAD + 2 * NOTE, self.below(statement.body) + PAD)
        return (TASK[0], TASK[1] / 2, TASK[1] / 2)

    def _lanes(self, bodies: list[Block], orelse: Block) -> list[Block]:
        return [*bodies, orelse]

    def _stacked(self, lanes: list[Block]) -> tuple[float, float]:
        rest = sum(self.above(lane) + self.below(lane) + PAD for lane in lanes[1:])
        return self.above(lanes[0]), self.below(lanes[0]) + rest

    def container(self, key: str, block: Block, x: float, y: float) -> Drawing:
        """Draws a block between a start and an end; `y` is its line."""
        drawing = Drawing()
        prefix = f"{key}." if key else ""
        start = self._node(drawing, f"{prefix}start", "start", EVENT, (x, y))
        last, right = self.block(drawing, block, x + EVENT[0] + GAP, y, [_Open(start.id)])
        end = self._node(drawing, f"{prefix}end", "end", EVENT, (right, y))
        self._join(drawing, last, end)
        return drawing

    def block(
        self, drawing: Drawing, block: Block, x: float, y: float, begin: list[_Open]
    ) -> tuple[list[_Open], float]:
        """Draws a block from `x` on; returns the open ways behind it and where the next element may begin."""
        for statement in block:
            begin = self._statement(drawing, statement, x, y, begin)
            x += self._extent(statement)[0] + GAP
        return begin, x

    def _node(
        self, drawing: Drawing, key: str, kind: str, size: tuple[float, float], place: tuple[float, float]
    ) -> DrawnNode:
        node = DrawnNode(self.name(key), kind, x=place[0], y=place[1] - size[1] / 2, width=size[0], height=size[1])
        drawing.nodes.append(node)
        return node

    def _join(self, drawing: Drawing, begin: list[_Open], node: DrawnNode) -> None:
        for way in begin:
            edge = self.name(f"flow_{way.source}_{node.id}" + (f"_{way.label}" if len(begin) > 1 and way.label else ""))
            drawing.edges.append(DrawnEdge(edge, way.source, node.id, way.label, way.condition, way.lane))

    def _statement(self, drawing: Drawing, statement: Statement, x: float, y: float, begin: list[_Open]) -> list[_Open]:
        if isinstance(statement, If):
            return self._if(drawing, statement, (x, y), begin)
        if isinstance(statement, Parallel):
            return self._parallel(drawing, statement, (x, y), begin)
        if isinstance(statement, While) and self._as_gateways(statement):
            return self._gateway_loop(drawing, statement, (x, y), begin)
        if isinstance(statement, For | While):
            return self._loop(drawing, statement, (x, y), begin)
        kind = "call" if isinstance(statement, Call) else "user_task"
        node = self._node(drawing, statement.id, kind, TASK, (x, y))
        node.name, node.step, node.statement = step_name(statement), write_step(statement), statement
        self._join(drawing, begin, node)
        return [_Open(node.id)]

    def _if(self, drawing: Drawing, statement: If, place: tuple[float, float], begin: list[_Open]) -> list[_Open]:
        """Draws one decision for each branch, an elif inside the way "no" of the one before, and their merges."""
        x, line = place
        width, _, _ = self._extent(statement)
        right = x + width - GATEWAY[0]
        way, y = begin, line
        merges: list[tuple[str, float, list[_Open]]] = []
        lanes = [branch.body for branch in statement.branches] + [statement.orelse]
        for i, branch in enumerate(statement.branches):
            node = self._node(drawing, branch.id, "decision", GATEWAY, (x, y))
            node.condition, node.name = branch.condition, f"Decision: {write_condition(branch.condition)}"
            self._join(drawing, way, node)
            yes = [_Open(node.id, "yes", branch.condition)]
            ways, _ = self.block(drawing, branch.body, x + GATEWAY[0] + GAP, y, yes)
            merges.append((f"{branch.id}.merge", right, ways))
            y += self.below(lanes[i]) + PAD + self.above(lanes[i + 1])
            way = [_Open(node.id, "no", None, y)]
            x, right = x + GATEWAY[0] + GAP, right - GATEWAY[0] - GAP
        ways, _ = self.block(drawing, statement.orelse, x, y, way)
        height = y
        for i, (key, at, before) in reversed(list(enumerate(merges))):
            height -= self.below(lanes[i]) + PAD + self.above(lanes[i + 1])
            merge = self._node(drawing, key, "merge", GATEWAY, (at, height))
            merge.name = "Merge"
            self._join(drawing, before, merge)
            self._join(drawing, ways, merge)
            ways = [_Open(merge.id)]
        return ways

    def _parallel(
        self, drawing: Drawing, statement: Parallel, place: tuple[float, float], begin: list[_Open]
    ) -> list[_Open]:
        x, y = place
        fork = self._node(drawing, statement.id, "fork", GATEWAY, place)
        self._join(drawing, begin, fork)
        ends: list[_Open] = []
        for i, branch in enumerate(statement.branches):
            if i:
                y += self.below(statement.branches[i - 1]) + PAD + self.above(branch)
            ends += self.block(drawing, branch, x + GATEWAY[0] + GAP, y, [_Open(fork.id)])[0]
        at = place[0] + self._extent(statement)[0] - GATEWAY[0]
        join = self._node(drawing, f"{statement.id}.join", "join", GATEWAY, (at, place[1]))
        self._join(drawing, ends, join)
        return [_Open(join.id)]

    def _gateway_loop(
        self, drawing: Drawing, statement: While, place: tuple[float, float], begin: list[_Open]
    ) -> list[_Open]:
        x, y = place
        head = self._node(drawing, f"{statement.id}.merge", "merge", GATEWAY, place)
        head.name = "Merge"
        self._join(drawing, begin, head)
        node = self._node(drawing, statement.id, "decision", GATEWAY, (x + GATEWAY[0] + GAP, y))
        node.condition, node.name = statement.condition, f"Decision: {write_condition(statement.condition)}"
        self._join(drawing, [_Open(head.id)], node)
        yes = [_Open(node.id, "yes", statement.condition)]
        ways, _ = self.block(drawing, statement.body, x + 2 * (GATEWAY[0] + GAP), y, yes)
        for way in ways:
            way.lane = y - self.above(statement.body) - NOTE / 2
        self._join(drawing, ways, head)
        return [_Open(node.id, "no", None, y + self.below(statement.body) + NOTE / 2)]

    def _loop(
        self, drawing: Drawing, statement: For | While, place: tuple[float, float], begin: list[_Open]
    ) -> list[_Open]:
        x, y = place
        width, above, below = self._extent(statement)
        node = DrawnNode(self.name(statement.id), "loop", statement=statement, step=loop_header(statement))
        node.x, node.y, node.width, node.height = x, y - above + 2 * NOTE, width, above - 2 * NOTE + below
        node.note = self.name(f"{statement.id}.text"), self.name(f"{statement.id}.link")
        drawing.nodes.append(node)
        node.inner = self.container(statement.id, statement.body, x + PAD, y)
        self._join(drawing, begin, node)
        return [_Open(node.id)]


Box = tuple[float, float, float, float]
_APART = 20.0
_TRIES = 12


def place(drawing: Drawing, known: Mapping[str, Box]) -> set[str]:
    """Gives every node of the drawing a place: the known one, or a free one near its neighbours.

    Returns the ids of those containers with a known place that had to grow.
    """
    grown: set[str] = set()
    _Placer(dict(known), grown).container(drawing, None)
    return grown


class _Placer:
    def __init__(self, known: dict[str, Box], grown: set[str]) -> None:
        self._known, self._grown = known, grown

    def container(self, drawing: Drawing, frame: DrawnNode | None) -> None:
        """Places the nodes of a container, those with known places first, and what is in its loops."""
        for node in drawing.nodes:
            if node.id in self._known:
                node.x, node.y, node.width, node.height = self._known[node.id]
        placed = [node for node in drawing.nodes if node.id in self._known]
        for node in drawing.nodes:
            if node.id not in self._known and node.inner is not None and self._around(node):
                placed.append(node)
        for node in drawing.nodes:
            if not any(node is other for other in placed):
                self._near(node, drawing, placed, frame)
                placed.append(node)
        for edge in drawing.edges:
            edge.lane = self._lane(drawing, edge.source, edge.target) if edge.lane is not None else None
        for node in drawing.nodes:
            if node.inner is not None:
                self.container(node.inner, node)
        if frame is not None:
            self._grow(frame, drawing)

    def _around(self, node: DrawnNode) -> bool:
        """Draws a new loop around those of its nodes that have a place; False where none has."""
        boxes = [self._known[n.id] for n in _inside(node) if n.id in self._known]
        if not boxes:
            return False
        left, top = min(b[0] for b in boxes), min(b[1] for b in boxes)
        right, bottom = max(b[0] + b[2] for b in boxes), max(b[1] + b[3] for b in boxes)
        side = EVENT[0] + GAP / 2 + _APART
        node.x, node.y = left - side, top - PAD
        node.width, node.height = right - left + 2 * side, bottom - top + 2 * PAD
        return True

    def _near(self, node: DrawnNode, drawing: Drawing, placed: list[DrawnNode], frame: DrawnNode | None) -> None:
        before = [n for e in drawing.edges for n in placed if e.target == node.id and n.id == e.source]
        after = [n for e in drawing.edges for n in placed if e.source == node.id and n.id == e.target]
        x, middle = node.x, node.middle
        if before and after and after[0].x - before[0].x - before[0].width >= node.width + _APART:
            x = (before[0].x + before[0].width + after[0].x - node.width) / 2
            middle = before[0].middle
        elif before:
            x, middle = before[0].x + before[0].width + GAP / 2, before[0].middle
        elif after:
            x, middle = after[0].x - node.width - GAP / 2, after[0].middle
        x, y = self._free(node, (x, middle - node.height / 2), placed, frame)
        _shift(node, x - node.x, y - node.y)

    def _free(
        self, node: DrawnNode, wish: tuple[float, float], placed: list[DrawnNode], frame: DrawnNode | None
    ) -> tuple[float, float]:
        """Returns the place nearest to the wish that overlaps nothing, inside the frame where there is room."""
        x, y = wish
        step = node.height + _APART
        places = [(x, y + sign * i * step) for i in range(_TRIES) for sign in ((1, -1) if i else (1,))]
        free = [place for place in places if not any(_overlap(node, place, other) for other in placed)]
        inside = [place for place in free if frame is None or _holds(frame, node, place)]
        lowest = max((n.y + n.height for n in placed), default=y) + _APART
        return (inside or free or [(x, lowest)])[0]

    def _lane(self, drawing: Drawing, source: str, target: str) -> float | None:
        ends = [node for node in drawing.nodes if node.id in (source, target)]
        left, right = min(n.x for n in ends), max(n.x + n.width for n in ends)
        between = [n.y + n.height for n in drawing.nodes if n.x < right and n.x + n.width > left]
        return max(between) + _APART if len(ends) == 2 and abs(ends[0].middle - ends[1].middle) < 1 else None

    def _grow(self, frame: DrawnNode, drawing: Drawing) -> None:
        left, top = min(n.x for n in drawing.nodes) - _APART, min(n.y for n in drawing.nodes) - _APART
        right = max(n.x + n.width for n in drawing.nodes) + _APART
        bottom = max(n.y + n.height for n in drawing.nodes) + _APART
        if frame.id in self._known and not any(n.id not in self._known for n in drawing.nodes):
            return
        box = (
            min(frame.x, left),
            min(frame.y, top),
            max(frame.x + frame.width, right),
            max(frame.y + frame.height, bottom),
        )
        new = (box[0], box[1], box[2] - box[0], box[3] - box[1])
        if new != (frame.x, frame.y, frame.width, frame.height):
            if frame.id in self._known:
                self._grown.add(frame.id)
            frame.x, frame.y, frame.width, frame.height = new


def _inside(node: DrawnNode) -> list[DrawnNode]:
    if node.inner is None:
        return []
    return [found for inner in node.inner.nodes for found in (inner, *_inside(inner))]


def _shift(node: DrawnNode, dx: float, dy: float) -> None:
    for each in (node, *_inside(node)):
        each.x, each.y = each.x + dx, each.y + dy


def _overlap(node: DrawnNode, place: tuple[float, float], other: DrawnNode) -> bool:
    across = place[0] < other.x + other.width + _APART / 2 and other.x < place[0] + node.width + _APART / 2
    return across and place[1] < other.y + other.height and other.y < place[1] + node.height


def _holds(frame: DrawnNode, node: DrawnNode, place: tuple[float, float]) -> bool:
    across = frame.x <= place[0] and place[0] + node.width <= frame.x + frame.width
    return across and frame.y <= place[1] and place[1] + node.height <= frame.y + frame.height
