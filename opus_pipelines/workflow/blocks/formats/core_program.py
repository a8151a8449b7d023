"""The text form of CoRE programs (AutoFlow, arXiv 2407.12821): one step a line, four fields, `:::` between them.

    <name> ::: <process | decision | terminal> ::: <instruction> ::: <key :: target>*

Keys and targets are joined by `::`. The first step is where a run begins. Names, keys and targets are compared in lower
case. Lines without `:::` are comments. `findings` names every error with its place, also those that the published
parser does not see; `parse_core` raises at the first.

Instructions that say exactly what a flow's statement says have these forms:

    call v = activity(name=operand)     ask v = "text"     test expression     for each v in expression

Every other instruction is in the words of a person: a process step is a user task, and a decision a question whose
answer is compared with the keys of its branches.
"""

import ast
import re
import typing
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx

from opus_pipelines.workflow.blocks.expressions import Expression, FlowError, Literal, Operand, Path, is_name
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, quoted, write_condition
from opus_pipelines.workflow.blocks.model import Call, For, UserTask

LARGEST_CORE_BYTES = 4_000_000
MOST_STEPS = 20_000
FIELD, BRANCH = ":::", "::"
NEXT = "next"  # the key of the one branch of a process step
Kind = typing.Literal["process", "decision", "terminal"]
KINDS: tuple[Kind, ...] = typing.get_args(Kind)


@dataclass(frozen=True)
class CoreStep:
    """One step. `branches` are pairs (key, name of the target), in the order in which a reader tries them.

    `line` counts from 1 in the text that it was read from; 0 where it was not read. Raises FlowError where a text
    cannot stand in a line of a program.
    """

    name: str
    kind: Kind
    instruction: str
    branches: tuple[tuple[str, str], ...] = ()
    line: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        names = [self.name, *(text for branch in self.branches for text in branch)]
        for text in names:
            if not text or text != text.strip() or BRANCH in text or any(mark in text for mark in "\r\n"):
                raise FlowError(f"{text!r} cannot be the name of a step or of a branch: {_why(text)}")
        if self.instruction != self.instruction.strip() or any(mark in self.instruction for mark in "\r\n"):
            raise FlowError(f"the instruction of {self.name!r} has a line break, or blanks at its ends")
        if FIELD in self.instruction:
            raise FlowError(f"the instruction of {self.name!r} contains {FIELD!r}, which a program cannot escape")

    @property
    def key(self) -> str:
        """The name by which other steps find it."""
        return self.name.lower()

    @property
    def targets(self) -> list[str]:
        """The keys of the steps that may follow, in the order of the branches."""
        return [target.lower() for _, target in self.branches]


@dataclass(frozen=True)
class CoreProgram:
    """A program: its steps in the order of the text. It is not checked; `core_checks.findings` does that."""

    steps: tuple[CoreStep, ...]

    def by_key(self) -> dict[str, CoreStep]:
        """Returns the steps by their key; of two with one key the first."""
        found: dict[str, CoreStep] = {}
        for step in self.steps:
            found.setdefault(step.key, step)
        return found


@dataclass(frozen=True)
class Finding:
    """One error of a program: a short code, its text, and its place; line and column count from 1."""

    code: str
    message: str
    line: int = 0
    column: int = 1


def _why(text: str) -> str:
    return "it is empty, has blanks at its ends, a line break or '::'" if text else "it is empty"


def read_core(text: str) -> tuple[CoreProgram, list[Finding]]:
    """Returns the steps that can be read, and the errors of single lines with their places.

    Raises FlowError for a text of more than 4 MB or of more than 20,000 steps.
    """
    if len(text.encode("utf-8", "replace")) > LARGEST_CORE_BYTES:
        raise FlowError(f"the program has more than {LARGEST_CORE_BYTES:,} bytes")
    steps: list[CoreStep] = []
    found: list[Finding] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if FIELD not in line:
            continue
        if len(steps) == MOST_STEPS:
            raise FlowError(f"the program has more than {MOST_STEPS:,} steps", number, 1)
        step, errors = _step(line.rstrip("\r"), number)
        found += errors
        if step is not None:
            steps.append(step)
    return CoreProgram(tuple(steps)), found


def parse_core(text: str) -> CoreProgram:
    """Returns the program of a text. Raises FlowError with all its errors, and the place of the first one."""
    program, found = read_core(text)
    found = found or findings(program)
    if found:
        raise FlowError(told(found), found[0].line or None, found[0].column if found[0].line else None)
    return program


def told(found: Sequence[Finding], most: int = 5) -> str:
    """Returns the errors as one text: the first without its place, the others with it."""
    first, *others = found
    lines = [f"{first.message} [{first.code}]"]
    lines += [f"line {one.line}: {one.message} [{one.code}]" for one in others[: most - 1]]
    more = len(found) - most
    return "; ".join(lines) + (f"; and {more:,} more errors" if more > 0 else "")


def write_core(program: CoreProgram) -> str:
    """Returns the program as text, one step a line; equal programs give equal texts."""
    return "".join(_line(step) + "\n" for step in program.steps)


def _line(step: CoreStep) -> str:
    branches = f" {BRANCH} ".join(text for branch in step.branches for text in branch)
    return f"{step.name} {FIELD} {step.kind} {FIELD} {step.instruction} {FIELD} {branches}".rstrip()


def _step(line: str, number: int) -> tuple[CoreStep | None, list[Finding]]:
    parts = line.split(FIELD)
    starts = [1 + sum(len(part) + len(FIELD) for part in parts[:i]) for i in range(len(parts))]

    def error(code: str, message: str, at: int) -> tuple[None, list[Finding]]:
        place = min(at, len(parts) - 1)
        blanks = len(parts[place]) - len(parts[place].lstrip())
        return None, [Finding(code, message, number, starts[place] + blanks)]

    if len(parts) < 4:
        return error("fields", f"a step has four fields; this line has {len(parts)}", len(parts) - 1)
    if len(parts) > 4:
        message = f"{FIELD!r} stands in an instruction or between branches; a step has four fields, here {len(parts)}"
        return error("separator", message, 4)
    name, kind, instruction, rest = (part.strip() for part in parts)
    if not name or BRANCH in name:
        return error("name", f"the name of a step is {name!r}; it may not be empty or contain '::'", 0)
    known = next((each for each in KINDS if each == kind.lower()), None)
    if known is None:
        return error("type", f"step {name!r} has the type {kind!r}; known are {', '.join(KINDS)}", 1)
    words = [word.strip() for word in rest.split(BRANCH)] if rest else []
    if len(words) % 2 or not all(words):
        return error("branch", f"the branches of {name!r} are no pairs 'key :: target'", 3)
    if any(mark in part for part in (name, instruction, *words) for mark in "\r"):
        return error("line_break", f"step {name!r} contains a carriage return", 0)
    branches = tuple(zip(words[::2], words[1::2], strict=True))
    return CoreStep(name, known, instruction, branches, number), []


def findings(program: CoreProgram) -> list[Finding]:
    """Returns every error of the program in the order of its lines; an empty list for a program that can be run."""
    if not program.steps:
        return [Finding("empty", "the program has no step; a step is a line with ':::'", 1)]
    steps = program.by_key()
    found = [*_names(program.steps), *(one for step in program.steps for one in _branches(step, steps))]
    if not any(step.kind == "terminal" for step in program.steps):
        found.append(Finding("no_terminal", "the program has no terminal step, so that no run can end", 1))
    ahead = nx.DiGraph({key: [t for t in step.targets if t in steps] for key, step in steps.items()})
    reached = {program.steps[0].key} | nx.descendants(ahead, program.steps[0].key)
    terminal = [key for key, step in steps.items() if step.kind == "terminal"]
    ending = {key for layer in nx.bfs_layers(ahead.reverse(), terminal) for key in layer}
    for key, step in steps.items():
        if key not in reached:
            found.append(Finding("unreachable", f"no way leads to step {step.name!r}", step.line))
        elif key not in ending and step.branches:
            found.append(Finding("no_end", f"no way leads from step {step.name!r} to a terminal step", step.line))
    return sorted(found, key=lambda one: (one.line, one.column, one.code))


def is_valid(program: CoreProgram) -> bool:
    """Returns whether the program has no error."""
    return not findings(program)


def _names(steps: Iterable[CoreStep]) -> list[Finding]:
    counts = Counter(step.key for step in steps)
    seen: set[str] = set()
    found = []
    for step in steps:
        if counts[step.key] > 1 and step.key in seen:
            found.append(Finding("duplicate", f"a step before it has the name {step.name!r}, too", step.line))
        seen.add(step.key)
    return found


def _branches(step: CoreStep, steps: Mapping[str, CoreStep]) -> list[Finding]:
    found = []
    keys = [key.lower() for key, _ in step.branches]

    def add(code: str, message: str) -> None:
        found.append(Finding(code, f"{step.kind} step {step.name!r} {message}", step.line))

    if step.kind == "terminal" and keys:
        add("terminal_branch", "has a branch; a terminal step ends the run")
    elif step.kind != "terminal" and not keys:
        add("dead_end", "has no branch, so that a run stops there without an end")
    elif step.kind == "process" and keys != [NEXT]:
        add("process_branch", f"needs one branch with the key {NEXT!r}, and has {', '.join(map(repr, keys))}")
    elif step.kind == "decision" and len(keys) < 2:
        add("decision_branch", "has one branch; a decision needs two or more")
    for key, count in Counter(keys).items():
        if count > 1:
            add("duplicate_key", f"has the key {key!r} {count} times")
    for _, target in step.branches:
        if target.lower() not in steps:
            add("target", f"leads to {target!r}, which is no step")
    return found


END = "End of the flow."  # the instruction of a terminal step that does nothing
YES, NO, ITEM, DONE = "yes", "no", "item", "done"
_CALL = re.compile(r"call (\w+) = (\w+)\((.*)\)", re.DOTALL)
_ASK = re.compile(r"ask (\w+) = (\".*\")", re.DOTALL)
_EACH = re.compile(r"for each (\w+) in (.+)", re.DOTALL)
_FORMAL = re.compile(r"(call|ask|test|for each) ")


def written_step(statement: Call | UserTask) -> str:
    """Returns the formal instruction of a statement; raises FlowError for a name that is none."""
    if isinstance(statement, UserTask):
        return f"ask {_name(statement.variable)} = {_escaped(quoted(statement.text))}"
    arguments = ", ".join(f"{_name(key)}={_escaped(write_condition(value))}" for key, value in statement.arguments)
    return f"call {_name(statement.variable)} = {_name(statement.activity)}({arguments})"


def written_test(condition: Expression) -> str:
    """Returns the instruction of a decision with the branches yes and no."""
    return f"test {_escaped(write_condition(condition))}"


def written_loop(loop: For) -> str:
    """Returns the instruction of a decision with the branches item and done."""
    return f"for each {_name(loop.variable)} in {_escaped(write_condition(loop.iterable))}"


def is_plain(text: str) -> bool:
    """Returns whether a text can stand as an instruction in the words of a person."""
    is_line = text == text.strip() and not any(mark in text for mark in "\r\n")
    return is_line and bool(text) and FIELD not in text and text != END and not _FORMAL.match(text)


def statement_of(step: CoreStep, variable: str) -> Call | UserTask:
    """Returns what a process or terminal step does. Raises FlowError with its line where a formal instruction fails."""
    if found := _CALL.fullmatch(step.instruction):
        try:
            return Call(found[2], found[1], _arguments(found[3]), id=step.name)
        except FlowError as error:
            raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None
    if found := _ASK.fullmatch(step.instruction):
        text = _constant(found[2], step)
        return UserTask(text, found[1], id=step.name)
    if re.match("(call|ask) \\w+ = ", step.instruction):
        raise FlowError(f"step {step.name!r}: the call is not complete: {step.instruction[:80]!r}", step.line or None)
    return UserTask(step.instruction, variable, id=step.name)


def test_of(step: CoreStep) -> Expression | None:
    """Returns the condition of a decision with the branches yes and no; None for a question in words."""
    keys = sorted(key.lower() for key, _ in step.branches)
    if not step.instruction.startswith("test ") or keys != [NO, YES]:
        return None
    try:
        return parse_condition(step.instruction.removeprefix("test "))
    except FlowError as error:
        raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None


def loop_of(step: CoreStep) -> tuple[str, Expression] | None:
    """Returns the variable and the iterable of a decision with the branches item and done; else None."""
    found = _EACH.fullmatch(step.instruction)
    if not found or sorted(key.lower() for key, _ in step.branches) != [DONE, ITEM]:
        return None
    try:
        return found[1], parse_condition(found[2])
    except FlowError as error:
        raise FlowError(f"step {step.name!r}: {error}", step.line or None) from None


def variable_of(name: str) -> str:
    """Returns the variable that holds the answer of a step in words."""
    text = re.sub(r"\W+", "_", name.lower()).strip("_") or "answer"
    return text if is_name(text) else f"answer_{text}"


def _arguments(text: str) -> tuple[tuple[str, Operand], ...]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FlowError(f"the arguments are not well formed: {text[:80]!r}") from None
    if not isinstance(call, ast.Call) or call.args or any(one.arg is None for one in call.keywords):
        raise FlowError("an argument needs its name, as in f(name=value)")
    pairs = []
    for one in call.keywords:
        value = parse_condition(ast.unparse(one.value))
        if not isinstance(value, Literal | Path):
            raise FlowError(f"the argument {one.arg!r} is no constant and no variable")
        pairs.append((one.arg or "", value))
    return tuple(pairs)


def _constant(text: str, step: CoreStep) -> str:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, str):
        raise FlowError(f"step {step.name!r}: the text after 'ask' is no text in quotes", step.line or None)
    return value


def _escaped(text: str) -> str:
    """Writes the colons of texts so that no field ends inside them."""
    return text.replace(FIELD, ":\\x3a:").replace(FIELD, ":\\x3a:")


def _name(name: str) -> str:
    if not is_name(name):
        raise FlowError(f"{name!r} is no name of a variable or an activity in a program")
    return name
