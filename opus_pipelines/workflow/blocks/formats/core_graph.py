"""The graph of a CoRE program, and its blocks: loops by back edges, joins by post-dominators.

The method is the usual one for reducible graphs. A back edge leads to a step that dominates its source; the loop of a
header is what reaches such a source without the header. Back edges are led to the way out of their loop, so that the
graph has no cycle, and the block of a decision ends at its immediate post-dominator there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from opus_pipelines.workflow.blocks.expressions import (
    And,
    Comparison,
    Expression,
    FlowError,
    Literal,
    Not,
    Or,
    Path,
    negated,
)
from opus_pipelines.workflow.blocks.formats import core_instructions as instructions
from opus_pipelines.workflow.blocks.formats.core_checks import findings
from opus_pipelines.workflow.blocks.formats.core_text import CoreProgram, CoreStep, told
from opus_pipelines.workflow.blocks.model import MAX_DEPTH, Block, Branch, Call, For, If, Statement, UserTask, While

OTHER = ("other", "otherwise", "anything else")  # keys of the branch that every other answer takes
EXIT = ""  # behind every terminal step; no step has this key
MOST_STATEMENTS = 20_000  # of a flow: blocks that share steps repeat them


@dataclass
class CoreGraph:
    """The steps by key, their targets, and of every loop's header the loop's steps and the step behind it."""

    steps: dict[str, CoreStep]
    entry: str
    ahead: dict[str, list[str]]
    loops: dict[str, set[str]] = field(default_factory=dict)
    leaves: dict[str, str] = field(default_factory=dict)
    join: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    _inside: list[str] = field(default_factory=list)
    _left: int = MOST_STATEMENTS

    @classmethod
    def of(cls, program: CoreProgram) -> "CoreGraph":
        """Returns the graph; raises FlowError for findings, a jump into a loop, and a loop with two ways out."""
        if found := findings(program):
            raise FlowError(told(found), found[0].line or None)
        steps = program.by_key()
        ahead = {k: list(dict.fromkeys(s.targets)) if s.kind != "terminal" else [EXIT] for k, s in steps.items()}
        graph = cls(steps, program.steps[0].key, {**ahead, EXIT: []})
        order = _postorder(graph.entry, graph.ahead)[::-1]
        graph._find_loops(order, _dominators(order, graph.ahead))
        graph._find_joins()
        for step in program.steps:
            variable, number = instructions.variable_of(step.name), 1
            while variable in graph.variables.values():
                number += 1
                variable = f"{instructions.variable_of(step.name)}_{number}"
            graph.variables[step.key] = variable
        return graph

    # --- loops

    def _find_loops(self, order: list[str], dominator: dict[str, str]) -> None:
        place = {key: i for i, key in enumerate(order)}
        for source in order:
            for target in self.ahead[source]:
                if place[target] > place[source]:
                    continue
                if not _dominates(target, source, dominator, place):
                    raise self._error(source, f"leads into the loop of {target!r} from outside, past its first step")
                self.loops.setdefault(target, {target}).update(self._loop(target, source))
        for header in sorted(self.loops, key=lambda key: place[key]):  # outer loops first
            inside = self.loops[header]
            ways = {self._led(key, target) for key in inside for target in self.ahead[key] if target not in inside}
            if len(ways) != 1:
                names = ", ".join(sorted(self.steps[way].name if way else "the end" for way in ways))
                raise self._error(header, f"begins a loop that is left to several steps ({names}); blocks have one way")
            self.leaves[header] = ways.pop()

    def _loop(self, header: str, source: str) -> set[str]:
        back: dict[str, list[str]] = {}
        for key, targets in self.ahead.items():
            for target in targets:
                back.setdefault(target, []).append(key)
        found, stack = {header, source}, [source]
        while stack:
            key = stack.pop()
            for before in back.get(key, []) if key != header else []:
                if before not in found:
                    found.add(before)
                    stack.append(before)
        return found

    def _led(self, source: str, target: str) -> str:
        """Where an edge leads in the graph without cycles."""
        while target in self.leaves and source in self.loops[target]:
            target = self.leaves[target]
        return target

    # --- joins

    def _find_joins(self) -> None:
        ahead = {key: [self._led(key, target) for target in targets] for key, targets in self.ahead.items()}
        depth = {EXIT: 0}
        self.join = {EXIT: EXIT}
        for key in _postorder(self.entry, ahead):
            if key == EXIT:
                continue
            first, *others = ahead[key]
            for other in others:
                while first != other:
                    if depth[first] < depth[other]:
                        other = self.join[other]
                    else:
                        first = self.join[first]
            self.join[key], depth[key] = first, depth[first] + 1

    # --- blocks

    def region(self, key: str, end: str) -> list[Statement]:
        """Returns the statements from a step to the step `end`, which is not part of them."""
        found: list[Statement] = []
        while key != end:
            if key in self.loops and key not in self._inside:
                found += self._loop_block(key)
                key = self.leaves[key]
                continue
            step = self.steps[key]
            if step.kind == "decision":
                found += self._decision(step, self.join[key])
                key = self.join[key]
            else:
                if step.kind == "process" or step.instruction not in ("", instructions.END):
                    found.append(self._counted(instructions.statement_of(step, self.variables[key])))
                key = self._led(key, self.ahead[key][0])
        return found

    def _decision(self, step: CoreStep, join: str) -> list[Statement]:
        targets = [self._led(step.key, target.lower()) for _, target in step.branches]
        bodies = [self._nested(step, target, join) for target in targets]
        conditions = self._conditions(step)
        test = conditions[0] if instructions.test_of(step) is not None else None
        before: list[Statement] = [] if test is not None else [self._ask(step)]
        filled = [(c, body) for c, body in zip(conditions, bodies, strict=True) if body]
        if not filled:
            return before
        orelse: Block = ()
        if len(filled) == len(bodies):
            orelse = filled.pop()[1]
        branches = tuple(Branch(c, body, id=step.name) for c, body in filled)
        return [*before, self._counted(If(branches, orelse, id="" if before else step.name))]

    def _nested(self, step: CoreStep, key: str, end: str) -> Block:
        if len(self._inside) > MAX_DEPTH or self._left <= 0:
            raise self._error(step.key, "has blocks that are nested too deeply, or that repeat too many steps")
        self._inside.append("\0")
        block = tuple(self.region(key, end))
        self._inside.pop()
        return block

    def _loop_block(self, header: str) -> list[Statement]:
        leave, step = self.leaves[header], self.steps[header]
        self._inside.append(header)
        try:
            if step.kind == "decision" and (found := self._while(step, leave)) is not None:
                return found
            goes_on = self._goes_on(header, header)
            if goes_on is True or goes_on is False:
                raise self._error(header, "begins a loop whose condition cannot be told")
            body = tuple(self.region(header, leave))
            return [*body, self._counted(While(goes_on, body, id=""))]
        finally:
            self._inside.pop()

    def _while(self, step: CoreStep, leave: str) -> list[Statement] | None:
        """A loop whose first step decides whether it goes on: every branch leads out, or back without another way."""
        inside = self.loops[step.key]
        stays = [i for i, (_, target) in enumerate(step.branches) if target.lower() in inside]
        ways_out = [i for i in range(len(step.branches)) if i not in stays]
        if len(stays) != 1 or not ways_out:
            return None
        target = step.branches[stays[0]][1].lower()
        if target != step.key and self._goes_on(target, step.key) is not True:
            return None
        body = () if target == step.key else self._nested(step, target, leave)
        condition = self._conditions(step)[stays[0]]
        each = instructions.loop_of(step)
        if each and step.branches[stays[0]][0].lower() == instructions.ITEM and body:
            return [self._counted(For(each[0], each[1], body, id=step.name))]
        if instructions.test_of(step) is not None:
            return [self._counted(While(condition, body, id=step.name))] if body else None
        ask = self._ask(step)
        return [ask, self._counted(While(condition, (*body, replace(ask, id="")), id=""))]

    def _goes_on(self, key: str, header: str, depth: int = 0) -> Expression | bool:
        """The condition under which a walk from this step leads back to the header of its loop."""
        if depth > MAX_DEPTH:
            raise self._error(key, "is in a loop with too many decisions one after another")
        inside, first = self.loops[header], True
        while True:
            if key == header and not first:
                return True
            if key not in inside:
                return False
            first = False
            if key in self.loops and key != header:
                inner = self.loops[key]
                ways = {target for one in inner for target in self.ahead[one] if target not in inner}
                if len(ways) != 1:
                    raise self._error(
                        key, f"begins a loop inside that of {self.steps[header].name!r} with two ways out"
                    )
                key = ways.pop()
            elif self.steps[key].kind == "decision":
                return self._decides(self.steps[key], header, depth)
            else:
                key = self.ahead[key][0]

    def _decides(self, step: CoreStep, header: str, depth: int) -> Expression | bool:
        targets = [target.lower() for _, target in step.branches]
        ends = [target == header or target not in self.loops[header] for target in targets]
        inner = [
            target == header if end else self._goes_on(target, header, depth + 1)
            for target, end in zip(targets, ends, strict=True)
        ]
        found = _any_of(zip(self._conditions(step), inner, strict=True))
        if not isinstance(found, bool) and instructions.test_of(step) is not None and not all(ends):
            raise self._error(step.key, "tests a variable that later steps of its loop may change")
        return found

    def _conditions(self, step: CoreStep) -> list[Expression]:
        """The condition of each branch; the last is the opposite of the others where its key is no answer."""
        if (test := instructions.test_of(step)) is not None:
            return [test if key.lower() == instructions.YES else negated(test) for key, _ in step.branches]
        answer = Path((self._ask(step).variable,))
        keys = [key for key, _ in step.branches]
        found: list[Expression] = [Comparison(answer, "==", Literal(key)) for key in keys]
        if keys[-1].lower() in OTHER:
            others = found[:-1]
            found[-1] = negated(others[0]) if len(others) == 1 else Not(Or(tuple(others)))
        return found

    def _ask(self, step: CoreStep) -> Call | UserTask:
        return instructions.statement_of(step, self.variables[step.key])

    def _counted(self, statement: Statement) -> Statement:
        self._left -= 1
        return statement

    def _error(self, key: str, message: str) -> FlowError:
        step = self.steps[key]
        return FlowError(f"step {step.name!r} {message}", step.line or None)


def _any_of(parts: Iterable[tuple[Expression, Expression | bool]]) -> Expression | bool:
    kept = list(parts)
    if all(inner is True for _, inner in kept):
        return True
    if all(inner is False for _, inner in kept):
        return False
    ways: list[Expression] = []
    for condition, inner in kept:
        if inner is True:
            ways.append(condition)
        elif not isinstance(inner, bool):
            ways.append(And((condition, inner)))
    return ways[0] if len(ways) == 1 else Or(tuple(ways))


def _postorder(entry: str, ahead: dict[str, list[str]]) -> list[str]:
    seen, found = {entry}, []
    stack = [(entry, iter(ahead[entry]))]
    while stack:
        key, rest = stack[-1]
        following = next((target for target in rest if target not in seen), None)
        if following is None:
            found.append(key)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(ahead[following])))
    return found


def _dominators(order: list[str], ahead: dict[str, list[str]]) -> dict[str, str]:
    """Immediate dominators (Cooper, Harvey and Kennedy 2001); `order` is a reverse postorder."""
    place = {key: i for i, key in enumerate(order)}
    before: dict[str, list[str]] = {key: [] for key in order}
    for key in order:
        for target in ahead[key]:
            before[target].append(key)
    found = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for key in order[1:]:
            known = [one for one in before[key] if one in found]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    if place[new] > place[other]:
                        new = found[new]
                    else:
                        other = found[other]
            if found.get(key) != new:
                found[key] = new
                changed = True
    return found


def _dominates(over: str, key: str, dominator: dict[str, str], place: dict[str, int]) -> bool:
    while place[key] > place[over]:
        key = dominator[key]
    return key == over
