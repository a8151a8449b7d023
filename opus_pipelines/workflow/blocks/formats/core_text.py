"""The text form of CoRE programs (AutoFlow, arXiv 2407.12821): one step a line, four fields, `:::` between them.

    <name> ::: <process | decision | terminal> ::: <instruction> ::: <key :: target>*

Keys and targets are joined by `::`. The first step is where a run begins. Names, keys and targets are compared in lower
case. Lines without `:::` are comments. `findings` names every error with its place, also those that the published
parser does not see (`core_checks`); `parse` raises at the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from opus_pipelines.workflow.blocks.expressions import FlowError

LARGEST_BYTES = 4_000_000
MOST_STEPS = 20_000
FIELD, BRANCH = ":::", "::"
NEXT = "next"  # the key of the one branch of a process step
Kind = Literal["process", "decision", "terminal"]
KINDS: tuple[Kind, ...] = get_args(Kind)


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


def read(text: str) -> tuple[CoreProgram, list[Finding]]:
    """Returns the steps that can be read, and the errors of single lines with their places.

    Raises FlowError for a text of more than 4 MB or of more than 20,000 steps.
    """
    if len(text.encode("utf-8", "replace")) > LARGEST_BYTES:
        raise FlowError(f"the program has more than {LARGEST_BYTES:,} bytes")
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


def parse(text: str) -> CoreProgram:
    """Returns the program of a text. Raises FlowError with all its errors, and the place of the first one."""
    from opus_pipelines.workflow.blocks.formats.core_checks import findings

    program, found = read(text)
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


def write(program: CoreProgram) -> str:
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
