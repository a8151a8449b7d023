"""The deterministic executor: typed tools and conditions answer the steps; the same run gives the same trace.

A formal instruction (`workflow.blocks.formats.core_program`) says which tool is called with what. In an
instruction in words the one tool is called whose name stands there, with the variables of the names that it takes. What
neither is has no answer. Answers are kept by content: by the tool, its version and its arguments.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opus_pipelines.core.ids import digest
from opus_pipelines.flows.programs.branch_choice import Similarity, choose
from opus_pipelines.flows.programs.expressions import EvaluationError, evaluate, value_of
from opus_pipelines.flows.programs.interpreter import Choice, Note, Outcome, Situation
from opus_pipelines.flows.programs.values import Toolbox, ToolError, Value
from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Literal, Path
from opus_pipelines.workflow.blocks.formats import core_program as instructions
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, CoreStep
from opus_pipelines.workflow.blocks.model import Call, UserTask

VERSION = 1


@dataclass(frozen=True)
class Action:
    """What a step does: a call with its operands, a condition, or words; `problem`: why its instruction is neither."""

    variable: str = ""
    tool: str = ""
    operands: tuple[tuple[str, Literal | Path], ...] = ()
    test: Expression | None = None
    words: str = ""
    problem: str = ""


@lru_cache(maxsize=65_536)
def action_of(step: CoreStep) -> Action:
    """Returns what a step does."""
    variable = instructions.variable_of(step.name)
    try:
        if step.kind == "decision" and (test := instructions.test_of(step)) is not None:
            return Action(test=test)
        statement = instructions.statement_of(step, variable)
    except FlowError as error:
        return Action(problem=str(error))
    if isinstance(statement, Call):
        return Action(statement.variable, statement.activity, statement.arguments)
    assert isinstance(statement, UserTask)
    return Action(statement.variable, words=statement.text)


class ToolExecutor:
    """Answers by the tools of a toolbox. `asked` counts the calls that were not kept from before."""

    name = "tools"

    def __init__(self, toolbox: Toolbox, similarity: Similarity | None = None) -> None:
        self.toolbox, self.similarity = toolbox, similarity
        how = getattr(similarity, "__name__", "") if similarity else "keys"
        self.version = f"{VERSION}-{digest(toolbox.version)[:8]}-{how}"
        self._kept: dict[Hashable, Value | ToolError] = {}
        self._named: dict[str, str] = {}
        self.asked = 0

    def notes(self, situation: Situation) -> tuple[str, ...]:
        """Returns the notes whose values the step's operands name."""
        action = action_of(situation.step)
        wanted = {op.parts[0] for _, op in action.operands if isinstance(op, Path)}
        values = [situation.variables[name] for name in wanted if name in situation.variables]
        return tuple(key for key, note in situation.notebook.items() if any(note.value is v for v in values))

    def answer(self, situation: Situation, notes: Sequence[Note]) -> Outcome:
        """Returns what the tool gives, whether the condition holds, or that there is no answer."""
        action = action_of(situation.step)
        if action.problem:
            return Outcome(action.problem, status="bad_instruction")
        if action.test is not None:
            try:
                return Outcome("yes" if evaluate(action.test, situation.variables) else "no")
            except EvaluationError as error:
                return Outcome(str(error), status="failed")
        tool = action.tool or self.named_in(action.words)
        if not tool:
            if situation.step.kind == "terminal":
                return Outcome(self._last(situation))
            return Outcome("", status="no_answer")
        return self._called(tool, action, situation.variables)

    def branch(self, situation: Situation, outcome: Outcome) -> Choice:
        """Returns the branch whose key the answer is."""
        return choose(outcome.answer, [key for key, _ in situation.step.branches], self.similarity)

    def _called(self, tool: str, action: Action, variables: Mapping[str, Value]) -> Outcome:
        shown: dict[str, str] = {}
        try:
            arguments = self._arguments(tool, action, variables)
            shown = {key: value.text for key, value in arguments.items()}
            value = self.call(tool, arguments)
        except ToolError as error:
            return Outcome(str(error), tool=tool, arguments=shown, status=error.status)
        except EvaluationError as error:
            return Outcome(str(error), tool=tool, arguments=shown, status="bad_arguments")
        known = self.toolbox.tools[tool]
        return Outcome(
            value.text,
            value,
            action.variable,
            tool,
            shown,
            about=f"{tool}: {value.text[:200]}",
            cost_usd=known.cost_usd,
            duration_ms=known.duration_ms,
        )

    def call(self, tool: str, arguments: Mapping[str, Value]) -> Value:
        """Returns what a tool gives for arguments, kept by content. Raises ToolError as the toolbox does."""
        known = self.toolbox.tools.get(tool)
        version, parts = known.version if known else 0, [(k, v.type, v.content) for k, v in arguments.items()]
        key: Hashable = (tool, version, tuple(parts))
        try:
            hash(key)
        except TypeError:  # a list or a record among the arguments
            key = digest(tool, version, parts)
        kept = self._kept.get(key)
        if kept is None:
            self.asked += 1
            try:
                kept = self.toolbox.call(tool, arguments)
            except ToolError as error:
                kept = error
            if not isinstance(kept, ToolError) or kept.status != "hanging":  # it may answer another time
                self._kept[key] = kept
        if isinstance(kept, ToolError):
            raise kept
        return kept

    def _arguments(self, tool: str, action: Action, variables: Mapping[str, Value]) -> dict[str, Value]:
        if action.tool:
            return {key: value_of(operand, variables) for key, operand in action.operands}
        takes = self.toolbox.tools[tool].takes
        return {key: value_of(Path((key,)), variables) for key in takes}

    def named_in(self, words: str) -> str:
        """Returns the one tool whose name stands in an instruction in words; of several the longest name."""
        if words in self._named:
            return self._named[words]
        text = f" {' '.join(re.findall(r'[a-z0-9]+', words.lower()))} "
        named = [name for name in self.toolbox.tools if f" {name.lower().replace('_', ' ')} " in text]
        longest = max(map(len, named), default=0)
        best = [name for name in named if len(name) == longest]
        self._named[words] = best[0] if len(best) == 1 else ""
        return self._named[words]

    @staticmethod
    def _last(situation: Situation) -> str:
        return next((answer for _, answer in reversed(situation.progress) if answer), "")


@dataclass(frozen=True)
class Final:
    """How a run ended, without its trace."""

    variables: Mapping[str, Any]
    is_ended: bool
    failures: int


@dataclass
class _Node:
    """A step of a compiled program: what it does, the variables that it reads, its branches, and the places behind it.

    `known` is shared by all steps with the same instruction: contents of the variables to (value, answer, failed).
    """

    step: CoreStep
    action: Action
    reads: tuple[str, ...] | None
    known: dict[Hashable, tuple[Value | None, str, bool]]
    keys: tuple[str, ...]
    targets: tuple[int, ...]
    chosen: dict[str, int]


class FastRuns:
    """Runs of the tool executor without a trace, for searches that need thousands of rewards.

    `final` has the same variables and the same end as `interpreter.run` (a property test holds this).
    """

    def __init__(self, executor: ToolExecutor) -> None:
        self._executor = executor
        self._known: dict[str, dict[Hashable, tuple[Value | None, str, bool]]] = {}
        self._chosen: dict[tuple[str, ...], dict[str, int]] = {}

    def compiled(self, program: CoreProgram) -> list[_Node]:
        """Returns the steps of a program that was checked before, ready to run."""
        place = {step.key: i for i, step in reversed(list(enumerate(program.steps)))}
        nodes = []
        for step in program.steps:
            action = action_of(step)
            is_silent = bool(action.words) and not self._executor.named_in(action.words)
            keys = tuple(key for key, _ in step.branches)
            targets = tuple(place[target] for target in step.targets)
            known = self._known.setdefault(f"{step.kind} {step.instruction}", {})
            nodes.append(
                _Node(
                    step,
                    action,
                    () if is_silent else _reads(action),
                    known,
                    keys,
                    targets,
                    self._chosen.setdefault(keys, {}),
                )
            )
        return nodes

    def final(self, nodes: Sequence[_Node], variables: Mapping[str, Value], max_rounds: int) -> Final:
        """Returns the end of a run."""
        node, own, failures = nodes[0], dict(variables), 0
        for _ in range(max_rounds):
            reads = node.reads
            try:
                if reads is None:
                    found = self._asked(node, own)
                else:
                    key = own[reads[0]].content if len(reads) == 1 else tuple([own[name].content for name in reads])
                    found = node.known.get(key) or node.known.setdefault(key, self._asked(node, own))
            except (KeyError, TypeError):  # a variable that is not there, or a content that cannot be a key
                found = self._asked(node, own)
            value, answer, failed = found
            if failed:
                failures += 1
            elif value is not None:
                own[node.action.variable] = value
            targets = node.targets
            if not targets:
                return Final(own, True, failures)
            place = 0
            if len(targets) > 1:
                known = node.chosen.get(answer)
                if known is None:
                    known = node.chosen[answer] = choose(answer, node.keys, self._executor.similarity).branch
                place = known
            node = nodes[targets[place]]
        return Final(own, False, failures)

    def _asked(self, node: _Node, own: dict[str, Value]) -> tuple[Value | None, str, bool]:
        outcome = self._executor.answer(Situation("", node.step, 0, (), {}, own), ())
        return outcome.value, outcome.answer, outcome.status not in ("answered", "no_answer")


def _reads(action: Action) -> tuple[str, ...] | None:
    """The variables that a call reads; None where its answer depends on more than their contents."""
    if not action.tool or any(isinstance(one, Path) and len(one.parts) > 1 for _, one in action.operands):
        return None
    return tuple(one.parts[0] for _, one in action.operands if isinstance(one, Path))
