"""A CoRE program as a block-structured flow and back: decisions are ifs, back edges are whiles.

A flow becomes a program with the same statements (a parallel has no form there). A program becomes a flow where every
loop has one entry and one way out: the program's graph is cut at its back edges, and a decision's block ends at its
immediate post-dominator. A step that two blocks share is repeated. `program_flow(flow_program(flow))` is the flow.
"""

from collections.abc import Sequence

from opus_pipelines.workflow.blocks.expressions import Comparison, Expression, FlowError, Literal, Path
from opus_pipelines.workflow.blocks.formats import core_instructions as instructions
from opus_pipelines.workflow.blocks.formats.core_graph import EXIT, OTHER, CoreGraph
from opus_pipelines.workflow.blocks.formats.core_text import NEXT, CoreProgram, CoreStep, Kind
from opus_pipelines.workflow.blocks.model import Block, Call, Flow, For, If, Statement, UserTask, While
from opus_pipelines.workflow.blocks.traversal import identified


def flow_program(flow: Flow) -> CoreProgram:
    """Returns the flow as a program. Raises FlowError for a parallel, and for names that a program cannot have."""
    writer = _Writer()
    end = "End"
    while end.lower() in {s.id.lower() for s in _all(flow.body)}:
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


def _all(block: Block) -> Sequence[Statement]:
    from opus_pipelines.workflow.blocks.traversal import walk

    return list(walk(block))


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
        return instructions.written(statement)

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
