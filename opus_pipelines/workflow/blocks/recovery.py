"""From a graph of steps, decisions and gateways back to blocks: the inverse of `drawing`, for every graph format.

A decision ends where all its ways meet again, its immediate postdominator. What no block can express is an error that
names the elements; where it is asked for, steps that several ways share are written once for each way instead.

A chart is a flow as steps that name the next step, as Mermaid and n8n show it. Where a file has no variables (the gold
BPMN of Flow-Bench stores none), results of calls get names: the last word of the activity, in the plural where it
retrieves; a name that a later condition or loop reads is preferred.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Literal, negated, paths
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, parse_ir
from opus_pipelines.workflow.blocks.model import (
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Parallel,
    Statement,
    UserTask,
    While,
    bound_variables,
    expressions,
    identified,
    map_statements,
    walk,
)

_MOST_NODES = 5_000
_MOST_STATEMENTS = 10_000
_DEEPEST = 60
EXIT = ""  # the end of every way


@dataclass
class Way:
    """An edge: its target, its condition, and whether it is taken where the decision holds (None: unknown)."""

    target: str
    condition: Expression | None = None
    holds: bool | None = None


@dataclass
class RecoveryPoint:
    """One node: a step with its statement, a decision with its condition, a fork, or a gateway that is passed."""

    id: str
    kind: str  # step, decision, fork or pass
    statements: Block = ()
    condition: Expression | None = None
    ways: list[Way] = field(default_factory=list)
    label: str = ""
    line: int | None = None


def postorder(start: str, ahead: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns what can be reached from the start, each node behind those that it leads to."""
    return list(nx.dfs_postorder_nodes(nx.DiGraph(ahead), start))


def immediate_dominators(start: str, ahead: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the immediate dominator of each node that the start reaches; the start is its own."""
    return {**nx.immediate_dominators(nx.DiGraph(ahead), start), start: start}


def dominates(over: str, node: str, dominator: Mapping[str, str]) -> bool:
    """Returns whether every way from the start to `node` passes `over`."""
    while node not in (over, dominator[node]):
        node = dominator[node]
    return node == over


def backwards(nodes: Iterable[str], ahead: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns for each of these nodes, and for what they lead to, the nodes before it."""
    before: dict[str, list[str]] = {}
    for node in nodes:
        before.setdefault(node, [])
        for target in ahead[node]:
            before.setdefault(target, []).append(node)
    return before


def natural_loop(head: str, sources: Iterable[str], before: Mapping[str, Sequence[str]]) -> set[str]:
    """Returns what reaches the sources of back edges without passing the head of their loop."""
    inside = {head, *sources}
    waiting = [node for node in inside if node != head]
    while waiting:
        new = [node for node in before.get(waiting.pop(), ()) if node not in inside]
        inside.update(new)
        waiting += new
    return inside


class Recovery:
    """One run. `meetings`: for each decision and fork the point where its ways meet.

    `duplicate`: a step that several ways share is written once for each.
    """

    def __init__(self, points: dict[str, RecoveryPoint], start: str, duplicate: bool) -> None:
        if len(points) > _MOST_NODES:
            raise FlowError(f"the graph has {len(points):,} elements; at most {_MOST_NODES:,} can be read")
        self.meetings: dict[str, str] = {}
        self._points, self._start, self._duplicate = points, start, duplicate
        self._visits: Counter[str] = Counter()
        self._written = 0

    def whole(self) -> Block:
        """Returns the blocks from the start on.

        Raises FlowError naming the elements where the graph has no block structure, has no end, or is too large.
        """
        unreached = [p for i, p in self._points.items() if i not in self._order and p.kind == "step"]
        if unreached:
            raise self._error("no way from the start leads to", unreached)
        dead = [self._points[i] for i in self._order if i not in self._meeting]
        if dead:
            raise self._error("no end can be reached from", dead)
        block = self._block(self._start, EXIT, 1)
        if not self._duplicate and (twice := [i for i, n in self._visits.items() if n > 1]):
            hint = "; ask for duplication to write them once for each way"
            raise self._error("several ways that are no block share", [self._points[i] for i in twice], hint)
        return block

    def _error(self, what: str, points: list[RecoveryPoint], then: str = "") -> FlowError:
        names = ", ".join(f"{p.label or p.kind} ({p.id})" for p in points[:5])
        more = f" and {len(points) - 5} more" if len(points) > 5 else ""
        return FlowError(f"{what} {names}{more}{then}", points[0].line)

    @cached_property
    def _ahead(self) -> dict[str, list[str]]:
        return {i: [way.target for way in p.ways] or [EXIT] for i, p in self._points.items()} | {EXIT: []}

    @cached_property
    def _order(self) -> dict[str, int]:
        """The reachable points in reverse postorder, each with its place."""
        order = (node for node in reversed(postorder(self._start, self._ahead)) if node != EXIT)
        return {node: i for i, node in enumerate(order)}

    @cached_property
    def _before(self) -> dict[str, list[str]]:
        return {EXIT: []} | backwards(self._order, self._ahead)

    @cached_property
    def _meeting(self) -> dict[str, str]:
        """The immediate postdominator of each point from which an end can be reached: where its ways meet."""
        return immediate_dominators(EXIT, self._before)

    @cached_property
    def _heads(self) -> dict[str, list[str]]:
        """The heads of loops, each with the points from which a way leads back to it."""
        dominator = immediate_dominators(self._start, self._ahead)
        back: dict[str, list[str]] = {}
        for node, place in self._order.items():
            for target in self._ahead[node]:
                if target != EXIT and dominates(target, node, dominator):
                    back.setdefault(target, []).append(node)
                elif target != EXIT and self._order[target] <= place:
                    raise self._error("a loop is entered in its middle, at", [self._points[target]])
        return back

    def _block(self, node: str, stop: str, level: int, inside: str = "") -> Block:
        """Returns the block from `node` to `stop`, which is left out. `inside`: the head of the loop that it is in."""
        if level > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} decisions stand inside one another at", [self._points[node]])
        found: list[Statement] = []
        while node not in (stop, EXIT):
            point = self._points[node]
            if node in self._heads and node != inside:
                statements, node = self._loop(node, level)
                found += statements
                continue
            if node == inside and found:
                raise self._error("a loop has another way back at", [point])
            if point.kind in ("decision", "fork"):
                meeting = self.meetings[node] = self._meeting[node]
                found += self._split(point, meeting, level)
                node = meeting
                continue
            if len(point.ways) > 1:
                raise self._error("several ways leave without a condition from", [point])
            self._note(point)
            found += point.statements
            node = point.ways[0].target if point.ways else EXIT
        if node != stop:
            raise self._error("a way ends inside a block, after", [self._points[self._start]])
        return tuple(found)

    def _note(self, point: RecoveryPoint) -> None:
        if point.statements:
            self._visits[point.id] += 1
            self._written += 1
            if self._written > _MOST_STATEMENTS:
                raise FlowError(f"the blocks would have more than {_MOST_STATEMENTS:,} steps")

    def _split(self, point: RecoveryPoint, meeting: str, level: int) -> Block:
        blocks = [self._block(way.target, meeting, level + 1) for way in point.ways]
        if point.kind == "fork":
            full = tuple(block for block in blocks if block)
            return (Parallel(full, id=point.id),) if len(full) > 1 else full[0] if full else ()
        if len(point.ways) == 2:
            return self._either(point, blocks)
        return self._choice(point, blocks)

    def _either(self, point: RecoveryPoint, blocks: list[Block]) -> Block:
        yes = self._yes(point, [not block for block in blocks])
        condition = point.condition or point.ways[yes].condition
        if condition is None and (other := point.ways[1 - yes].condition) is not None:
            condition = negated(other)
        if condition is None:
            raise self._error("no condition stands at the decision", [point])
        body, orelse = blocks[yes], blocks[1 - yes]
        if not body:
            condition, body, orelse = negated(condition), orelse, body
        if not body:
            raise self._error("no way has a step at the decision", [point])
        return (If((Branch(condition, body, id=point.id),), orelse),)

    def _yes(self, point: RecoveryPoint, empty: list[bool]) -> int:
        """Returns which of two ways is taken where the condition holds: by label, by emptiness, or the first."""
        for i, way in enumerate(point.ways):
            if way.holds is not None:
                return i if way.holds else 1 - i
        if point.condition is None:
            return 0 if point.ways[0].condition is not None else 1
        return empty.index(False) if empty.count(True) == 1 else 0

    def _choice(self, point: RecoveryPoint, blocks: list[Block]) -> Block:
        branches: list[Branch] = []
        orelse: Block = ()
        unknown = [way for way in point.ways if way.condition is None]
        if len(unknown) > 1 or point.condition is not None or len(blocks) < 3:
            raise self._error("not every way has a condition at the decision", [point])
        for i, (way, block) in enumerate(zip(point.ways, blocks, strict=True)):
            if way.condition is None:
                orelse = block
            elif block:
                branches.append(Branch(way.condition, block, id=f"{point.id}.{i}" if i else point.id))
            else:
                raise self._error("a way without a step leaves the decision", [point])
        return (If(tuple(branches), orelse),)

    def _loop(self, head: str, level: int) -> tuple[Block, str]:
        """Returns the loop whose head this is as a while, and the point behind it."""
        inside = self._inside(head)
        node = head
        while self._points[node].kind == "pass" and len(self._points[node].ways) == 1:
            node = self._points[node].ways[0].target
        point = self._points.get(node)
        if point is not None and point.kind == "decision" and node in inside and len(point.ways) == 2:
            stays = [way.target in inside for way in point.ways]
            if stays.count(True) == 1:
                self.meetings[point.id] = head
                return self._while(point, stays.index(True), self._block_of(point, stays, head, level))
        if self._duplicate:
            return self._until(head, inside, level)
        hint = "; only a loop that tests first is a while; ask for duplication to write the body once before it"
        raise self._error("a loop does not begin with its test, at", [self._points[n] for n in [head, *inside]], hint)

    def _block_of(self, point: RecoveryPoint, stays: list[bool], head: str, level: int) -> Block:
        return self._block(point.ways[stays.index(True)].target, head, level + 1)

    def _while(self, point: RecoveryPoint, into: int, body: Block) -> tuple[Block, str]:
        way, out = point.ways[into], point.ways[1 - into]
        condition = point.condition or way.condition
        if condition is None and out.condition is not None:
            condition = negated(out.condition)
        if condition is None:
            raise self._error("no condition stands at the loop", [point])
        holds = way.holds if way.holds is not None else None if out.holds is None else not out.holds
        if holds is None and point.condition is not None and way.condition is None:
            holds = into == 0
        if holds is False:
            condition = negated(condition)
        return (While(condition, body, id=point.id),), out.target

    def _until(self, head: str, inside: list[str], level: int) -> tuple[Block, str]:
        """Returns a loop that tests at its end: its body, and a while with the body again."""
        leaving = [n for n in inside if any(t not in inside for t in self._ahead[n])]
        last = self._points[leaving[0]]
        back = next((i for i, way in enumerate(last.ways) if self._comes(way.target, head)), None)
        if len(leaving) != 1 or last.kind != "decision" or len(last.ways) != 2 or back is None:
            raise self._error(
                "a loop has several exits or steps behind its test, at", [self._points[n] for n in inside]
            )
        first = self._block(head, last.id, level + 1, head)
        again = self._block(head, last.id, level + 1, head)
        loop, node = self._while(last, back, again)
        return (*first, *loop), node

    def _comes(self, node: str, head: str) -> bool:
        """Returns whether a way leads to the head without a step."""
        while node != head and self._points[node].kind == "pass" and len(self._points[node].ways) == 1:
            node = self._points[node].ways[0].target
        return node == head

    def _inside(self, head: str) -> list[str]:
        """Returns the points of the loop, from which the head is reached without leaving it."""
        inside = natural_loop(head, self._heads[head], self._before)
        return [node for node in self._order if node in inside]


UNNAMED = "unknown_variable_"
_FALLBACK = "result"


def with_invented_variables(flow: Flow) -> Flow:
    """Returns the flow with a name for every variable that is called `UNKNOWN`; the same flow gives the same names."""
    open_steps = [s for s in walk(flow.body) if isinstance(s, Call | UserTask) and s.variable == UNNAMED]
    if not open_steps:
        return flow
    taken = {name for name in bound_variables(flow) if name != UNNAMED}
    wanted = _wanted(flow) - taken
    found: dict[str, str] = {}
    for step in open_steps:
        words = _words(step)
        name = next((word for word in words if word in wanted), None)
        if name is not None:
            wanted.discard(name)
        else:
            name = words[0]
            number = 2
            while name in taken or name in wanted:
                name, number = f"{words[0]}_{number}", number + 1
        found[step.id] = name
        taken.add(name)
    found |= _left_over(flow, wanted, found)

    def change(statement: Statement) -> Statement:
        if isinstance(statement, Call | UserTask) and statement.id in found:
            return replace(statement, variable=found[statement.id])
        return statement

    return replace(flow, body=map_statements(flow.body, change))


def _wanted(flow: Flow) -> set[str]:
    """The variables that conditions and loops read."""
    return {path.parts[0] for s in walk(flow.body) for e in expressions(s) for path in paths(e)}


def _left_over(flow: Flow, wanted: set[str], found: dict[str, str]) -> dict[str, str]:
    """Gives a variable that is read and that nothing sets to the last retrieving call before it that nothing reads."""
    read = _wanted(flow)
    result: dict[str, str] = {}
    before: list[Call] = []
    for statement in walk(flow.body):
        for expression in expressions(statement):
            for path in paths(expression):
                name = path.parts[0]
                free = [c for c in before if found.get(c.id) not in read and c.id not in result]
                if name in wanted and free:
                    result[free[-1].id] = name
                    wanted.discard(name)
        if isinstance(statement, Call) and statement.id in found:
            before.append(statement)
        if isinstance(statement, For):
            wanted.discard(statement.variable)
    return result


def _words(step: Call | UserTask) -> list[str]:
    """Returns possible names, the best first: plural before singular where the activity retrieves."""
    if isinstance(step, UserTask):
        return ["task"]
    operation = step.activity.rpartition("__")[2]
    last = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", re.split("[_.]", operation)[-1] or step.activity)
    words = [word.lower() for word in last if word.isascii()] or [_FALLBACK]
    if words[0].isdigit():
        words.insert(0, _FALLBACK)
    single = "_".join([*words[:-1], _singular(words[-1])])
    several = "_".join([*words[:-1], _plural(_singular(words[-1]))])
    first, second = (several, single) if operation.startswith("retrieve") else (single, several)
    app = step.activity.partition("_")[0].lower()
    return [first, second, *({_singular(words[-1]), _plural(words[-1])} if len(words) > 1 else ()), f"{app}_{single}"]


def _plural(word: str) -> str:
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s")


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if re.search("[^s]s$", word) and len(word) > 3 else word


YES, NO = "yes", "no"


@dataclass
class ChartBox:
    """One element. `kind`: step, if, while, for, fork, join or end. `ways`: label and id of what comes next."""

    id: str
    kind: str
    step: Call | UserTask | None = None
    condition: Expression | None = None
    loop: For | None = None
    ways: list[tuple[str, str]] = field(default_factory=list)
    line: int | None = None
    label: str = ""


def charted(flow: Flow) -> list[ChartBox]:
    """Returns the elements of the flow in the order of reading, the first one first; the last is the end, `EXIT`."""
    return [*_boxes(identified(flow).body, EXIT), ChartBox(EXIT, "end")]


def _entry(block: Block, after: str) -> str:
    if not block:
        return after
    return block[0].branches[0].id if isinstance(block[0], If) else block[0].id


def _boxes(block: Block, after: str) -> Iterator[ChartBox]:
    for i, statement in enumerate(block):
        then = _entry(block[i + 1 :], after)
        if isinstance(statement, If):
            for j, branch in enumerate(statement.branches):
                last = j + 1 == len(statement.branches)
                other = _entry(statement.orelse, then) if last else statement.branches[j + 1].id
                ways = [(YES, _entry(branch.body, then)), (NO, other)]
                yield ChartBox(branch.id, "if", condition=branch.condition, ways=ways)
                yield from _boxes(branch.body, then)
            yield from _boxes(statement.orelse, then)
        elif isinstance(statement, For | While):
            ways = [(YES, _entry(statement.body, statement.id)), (NO, then)]
            if isinstance(statement, For):
                yield ChartBox(statement.id, "for", loop=statement, ways=ways)
            else:
                yield ChartBox(statement.id, "while", condition=statement.condition, ways=ways)
            yield from _boxes(statement.body, statement.id)
        elif isinstance(statement, Parallel):
            join = f"{statement.id}_join"
            yield ChartBox(statement.id, "fork", ways=[("", _entry(branch, join)) for branch in statement.branches])
            for block_of_branch in statement.branches:
                yield from _boxes(block_of_branch, join)
            yield ChartBox(join, "join", ways=[("", then)])
        else:
            yield ChartBox(statement.id, "step", step=statement, ways=[("", then)])


def from_chart(boxes: list[ChartBox], start: str, duplicate: bool = False) -> Flow:
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


def _point(box: ChartBox) -> RecoveryPoint:
    kind = {"step": "step", "fork": "fork", "join": "pass"}.get(box.kind, "decision")
    ways = [Way(target, None, {YES: True, NO: False}.get(label)) for label, target in box.ways]
    condition = Literal(True) if box.loop is not None else box.condition
    steps = () if box.step is None else (replace(box.step, id=box.id),)
    return RecoveryPoint(box.id, kind, steps, condition, ways, box.label or box.kind, box.line)


def parse_header(text: str) -> tuple[str, Expression | None, For | None]:
    """Returns kind, condition and loop of a text such as `if x`, `while x`, `for x in xs`; raises FlowError."""
    word, _, rest = text.strip().partition(" ")
    if word in ("if", "while"):
        return word, parse_condition(rest), None
    if word == "for":
        (loop,) = parse_ir(f"{text.strip()}:\n  x = A()").body
        if isinstance(loop, For):
            return "for", None, loop
    return "if", parse_condition(text), None
