"""A CoRE program as a block-structured flow and back: decisions are ifs, back edges are whiles.

A flow becomes a program with the same statements (a parallel has no form there). A program becomes a flow where every
loop has one entry and one way out: the program's graph is cut at its back edges, and a decision's block ends at its
immediate post-dominator. A step that two blocks share is repeated. `program_flow(flow_program(flow))` is the flow.

The method for loops and joins is the usual one for reducible graphs. A back edge leads to a step that dominates its
source; the loop of a header is what reaches such a source without the header. Back edges are led to the way out of
their loop, so that the graph has no cycle, and the block of a decision ends at its immediate post-dominator there.
"""

from collections.abc import Iterable, Sequence
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
from opus_pipelines.workflow.blocks.formats import core_program as instructions
from opus_pipelines.workflow.blocks.formats.core_program import NEXT, CoreProgram, CoreStep, Kind, findings, told
from opus_pipelines.workflow.blocks.model import (
    MAX_DEPTH,
    Block,
    Branch,
    Call,
    Flow,
    For,
    If,
    Statement,
    UserTask,
    While,
    identified,
    walk,
)
from opus_pipelines.workflow.blocks.recovery import (
    EXIT,
    backwards,
    dominates,
    immediate_dominators,
    natural_loop,
    postorder,
)

OTHER = ("other", "otherwise", "anything else")  # keys of the branch that every other answer takes
_MOST_STATEMENTS = 20_000  # of a flow: blocks that share steps repeat them


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
    _left: int = _MOST_STATEMENTS

    @classmethod
    def of(cls, program: CoreProgram) -> "CoreGraph":
        """Returns the graph; raises FlowError for findings, a jump into a loop, and a loop with two ways out."""
        if found := findings(program):
            raise FlowError(told(found), found[0].line or None)
        steps = program.by_key()
        ahead = {k: list(dict.fromkeys(s.targets)) if s.kind != "terminal" else [EXIT] for k, s in steps.items()}
        graph = cls(steps, program.steps[0].key, {**ahead, EXIT: []})
        graph._find_loops(postorder(graph.entry, graph.ahead)[::-1])
        graph._find_joins()
        for step in program.steps:
            variable, number = instructions.variable_of(step.name), 1
            while variable in graph.variables.values():
                number += 1
                variable = f"{instructions.variable_of(step.name)}_{number}"
            graph.variables[step.key] = variable
        return graph

    # --- loops

    def _find_loops(self, order: list[str]) -> None:
        place = {key: i for i, key in enumerate(order)}
        dominator = immediate_dominators(self.entry, self.ahead)
        before = backwards(order, self.ahead)
        for source in order:
            for target in self.ahead[source]:
                if place[target] > place[source]:
                    continue
                if not dominates(target, source, dominator):
                    raise self._error(source, f"leads into the loop of {target!r} from outside, past its first step")
                self.loops.setdefault(target, {target}).update(natural_loop(target, [source], before))
        for header in sorted(self.loops, key=lambda key: place[key]):  # outer loops first
            inside = self.loops[header]
            ways = {self._led(key, target) for key in inside for target in self.ahead[key] if target not in inside}
            if len(ways) != 1:
                names = ", ".join(sorted(self.steps[way].name if way else "the end" for way in ways))
                raise self._error(header, f"begins a loop that is left to several steps ({names}); blocks have one way")
            self.leaves[header] = ways.pop()

    def _led(self, source: str, target: str) -> str:
        """Where an edge leads in the graph without cycles."""
        while target in self.leaves and source in self.loops[target]:
            target = self.leaves[target]
        return target

    # --- joins

    def _find_joins(self) -> None:
        ahead = {key: [self._led(key, target) for target in targets] for key, targets in self.ahead.items()}
        self.join = immediate_dominators(EXIT, backwards(ahead, ahead))

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


def flow_program(flow: Flow) -> CoreProgram:
    """Returns the flow as a program. Raises FlowError for a parallel, and for names that a program cannot have."""
    writer = _Writer()
    end = "End"
    while end.lower() in {s.id.lower() for s in walk(flow.body)}:
        end += " of flow"
    writer.taken.add(end.lower())
    first = writer.block(flow.body, end)
    steps = writer.ordered(first)
    return CoreProgram((*steps, CoreStep(end, "terminal", instructions.END)))


def program_flow(program: CoreProgram, name: str = "") -> Flow:
    """Returns the program as a flow whose statements have the names of the steps as ids.

    The program must have no findings. Raises FlowError with the line of a step whose loop cannot be told in blocks, and
    where the blocks would repeat too much.
    """
    graph = CoreGraph.of(program)
    return identified(Flow(tuple(graph.region(graph.entry, EXIT)), name))


class _Writer:
    """Writes blocks as steps. A block is written from its last statement to its first, so that targets are known."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.natural: set[str] = set()
        self._steps: dict[str, CoreStep] = {}
        self._order: list[str] = []

    def ordered(self, first: str) -> list[CoreStep]:
        """Returns the steps in the order of reading, the entry first."""
        seen: set[str] = set()
        stack, found = [first], []
        while stack:
            key = stack.pop()
            if key in seen or key not in self._steps:
                continue
            seen.add(key)
            found.append(self._steps[key])
            stack += [target for _, target in reversed(self._steps[key].branches)]
        return found

    def block(self, block: Block, after: str) -> str:
        """Writes a block that leads to the step `after`; returns the name of its first step."""
        place = len(block)
        while place:
            place -= 1
            pair = block[place - 1] if place else None
            if isinstance(pair, Call | UserTask) and self._is_question(pair, block[place]):
                after = self._question(pair, block[place], after)
                place -= 1
            else:
                after = self._statement(block[place], after)
        return after

    def _statement(self, statement: Statement, after: str) -> str:
        if isinstance(statement, Call | UserTask):
            name = self._name(statement)
            return self._add(name, "process", self._instruction(statement, name), [(NEXT, after)])
        if isinstance(statement, If):
            after_if, orelse = after, self.block(statement.orelse, after) if statement.orelse else after
            for i, branch in reversed(list(enumerate(statement.branches))):
                name = self._free(statement.id if not i else branch.id, "Decision")
                body = self.block(branch.body, after_if)
                test = instructions.written_test(branch.condition)
                orelse = self._add(name, "decision", test, [(instructions.YES, body), (instructions.NO, orelse)])
            return orelse
        if isinstance(statement, While):
            name = self._free(statement.id, "Loop")
            body = self.block(statement.body, name)
            test = instructions.written_test(statement.condition)
            return self._add(name, "decision", test, [(instructions.YES, body), (instructions.NO, after)])
        if isinstance(statement, For):
            name = self._free(statement.id, "Loop")
            body = self.block(statement.body, name)
            each = instructions.written_loop(statement)
            return self._add(name, "decision", each, [(instructions.ITEM, body), (instructions.DONE, after)])
        raise FlowError(f"step {statement.id}: a CoRE program has no parallel")

    def _is_question(self, task: Call | UserTask, statement: Statement) -> bool:
        """Whether a statement gives the answer that the next one compares with constant texts."""
        if isinstance(statement, While):
            return _key(statement.condition, task.variable) is not None and statement.body[-1] == task
        if not isinstance(statement, If):
            return False
        keys = [_key(branch.condition, task.variable) for branch in statement.branches]
        return all(keys) and len({str(key).lower() for key in keys}) == len(keys)

    def _question(self, task: Call | UserTask, statement: Statement, after: str) -> str:
        name = self._name(task)
        instruction = self._instruction(task, name)
        branches: list[tuple[str, str]]
        if isinstance(statement, While):
            keys = [_key(statement.condition, task.variable) or ""]
            branches = [(keys[0], self.block(statement.body[:-1], name)), (_other(keys), after)]
        else:
            assert isinstance(statement, If)
            keys = [_key(branch.condition, task.variable) or "" for branch in statement.branches]
            branches = [(k, self.block(b.body, after)) for k, b in zip(keys, statement.branches, strict=True)]
            branches.append((_other(keys), self.block(statement.orelse, after) if statement.orelse else after))
        return self._add(name, "decision", instruction, branches)

    def _instruction(self, statement: Call | UserTask, name: str) -> str:
        if isinstance(statement, UserTask) and instructions.is_plain(statement.text):
            variable = statement.variable
            if instructions.variable_of(name) == variable and variable not in self.natural:
                self.natural.add(variable)
                return statement.text
        return instructions.written_step(statement)

    def _name(self, statement: Call | UserTask) -> str:
        if statement.id or isinstance(statement, Call):
            return self._free(statement.id, "Step")
        return self._free(statement.variable, "Step")

    def _free(self, wanted: str, word: str) -> str:
        name, number = wanted, 0
        while not _can_name(name) or name.lower() in self.taken:
            number += 1
            name = f"{word} {len(self._order) + number}"
        self.taken.add(name.lower())
        return name

    def _add(self, name: str, kind: Kind, instruction: str, branches: list[tuple[str, str]]) -> str:
        self._steps[name] = CoreStep(name, kind, instruction, tuple(branches))
        self._order.append(name)
        return name


def _can_name(name: str) -> bool:
    return bool(name) and name == name.strip() and "::" not in name and not any(mark in name for mark in "\r\n")


def _key(condition: Expression, variable: str) -> str | None:
    """The constant text that a condition compares this variable with, where it can be the key of a branch."""
    if not isinstance(condition, Comparison) or condition.operator != "==":
        return None
    left, right = condition.left, condition.right
    if left != Path((variable,)) or not isinstance(right, Literal) or not isinstance(right.value, str):
        return None
    return right.value if _can_name(right.value) and right.value.lower() not in OTHER else None


def _other(keys: Sequence[str]) -> str:
    return next(each for each in OTHER if each not in {key.lower() for key in keys})
