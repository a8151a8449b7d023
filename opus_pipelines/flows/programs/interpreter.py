"""Runs a CoRE program step by step (AutoFlow 1.2): notebook, tools, branch choice, a limit of rounds, a whole trace.

What a step answers, which notes it reads and which branch it takes is the executor's decision; `choose` finds the
branch that an answer in words means. A run always ends with a record: by a terminal step, at the limit of rounds, or
where a branch leads nowhere else. So a program that never ends still has a reward.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal, Protocol

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import make_id
from opus_pipelines.flows.programs.tools import TypedValue
from opus_pipelines.workflow.blocks.formats.core_flow import OTHER
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, CoreStep, findings, told, write_core

_VERSION = 2  # of what a run does: raise it when traces change for the same input
MAX_ROUNDS = 100
Status = Literal["ended", "max_rounds", "undecided"]


@dataclass(frozen=True)
class Note:
    """An entry of the notebook: what a tool gave in a round, with one line about it."""

    name: str
    about: str
    value: TypedValue


@dataclass(frozen=True)
class Situation:
    """All that an executor may know at a step: the task, what was answered, the notebook and the variables."""

    task: str
    step: CoreStep
    round: int
    progress: tuple[tuple[str, str], ...]
    notebook: Mapping[str, Note]
    variables: Mapping[str, TypedValue]


@dataclass(frozen=True)
class Outcome:
    """What a step led to. `variable`: the name under which later steps find the value."""

    answer: str
    value: TypedValue | None = None
    variable: str = ""
    tool: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    status: str = "answered"
    about: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True)
class Choice:
    """The number of the branch that is taken, and how it was chosen: only, key, similar, model or other."""

    branch: int
    by: str


class Executor(Protocol):
    """What answers the steps of a program."""

    name: str
    version: str

    def notes(self, situation: Situation) -> tuple[str, ...]:
        """Returns the names of the notes that matter for the step."""
        ...

    def answer(self, situation: Situation, notes: Sequence[Note]) -> Outcome:
        """Returns what the step leads to. It does not raise for a tool that fails: the outcome says so."""
        ...

    def branch(self, situation: Situation, outcome: Outcome) -> Choice | None:
        """Returns the branch of a decision; None where the answer means none of them."""
        ...


@dataclass(frozen=True)
class Visit:
    """One round of a run: the step, the notes that were read, the outcome, and the branch that was taken."""

    round: int
    step: CoreStep
    notes: tuple[str, ...]
    outcome: Outcome
    choice: Choice | None

    @property
    def next_step(self) -> str | None:
        """The name of the step that follows; None at the end."""
        return None if self.choice is None else self.step.branches[self.choice.branch][1]


@dataclass(frozen=True)
class ProgramRun:
    """A finished run with every visit. `answer` is that of the last step, also where the limit of rounds ended it, or a
    decision to which no answer was given.
    """

    id: str
    program: str
    task_id: str
    task: str
    executor: str
    status: Status
    answer: str
    visits: tuple[Visit, ...]
    variables: Mapping[str, TypedValue]

    @property
    def undecided(self) -> str:
        """The name of the decision that nobody answered; "" where each one was."""
        return self.visits[-1].step.name if self.status == "undecided" else ""

    @property
    def is_ended(self) -> bool:
        """Whether a terminal step ended it."""
        return self.status == "ended"


@dataclass(frozen=True)
class ProgramTask:
    """A task: its id, its text, and the variables that a run begins with."""

    id: str
    text: str
    variables: Mapping[str, TypedValue] = field(default_factory=dict)


def program_id(program: CoreProgram) -> str:
    """Returns the id of a program: a hash of its text."""
    return make_id("p", write_core(program))


def checked(program: CoreProgram) -> CoreProgram:
    """Returns the program; raises InputError with every finding where it cannot be run."""
    if found := findings(program):
        raise InputError(told(found))
    return program


def run(program: CoreProgram, task: ProgramTask, executor: Executor, max_rounds: int = MAX_ROUNDS) -> ProgramRun:
    """Runs a program on a task. Raises InputError where the program has findings."""
    checked(program)
    steps, step = program.by_key(), program.steps[0]
    progress: list[tuple[str, str]] = []
    notebook: dict[str, Note] = {}
    variables = dict(task.variables)
    visits: list[Visit] = []
    status: Status = "max_rounds"
    for number in range(1, max_rounds + 1):
        situation = Situation(task.text, step, number, tuple(progress), notebook, variables)
        wanted = executor.notes(situation) if notebook else ()
        outcome = executor.answer(situation, [notebook[name] for name in wanted if name in notebook])
        if outcome.value is not None:
            notebook[f"Round {number}"] = Note(f"Round {number}", outcome.about or outcome.answer[:200], outcome.value)
            if outcome.variable:
                variables[outcome.variable] = outcome.value
        choice = None
        if step.branches:
            choice = Choice(0, "only") if len(step.branches) == 1 else executor.branch(situation, outcome)
        visits.append(Visit(number, step, tuple(wanted), outcome, choice))
        progress.append((step.instruction, outcome.answer))
        if choice is None:
            status = "undecided" if step.branches else "ended"
            break
        step = steps[step.branches[choice.branch][1].lower()]
    name = f"{executor.name} {executor.version}"
    text = program_id(program)
    identity = make_id("x", _VERSION, text, task.id, task.text, _contents(task), name, max_rounds)
    return ProgramRun(
        identity, text, task.id, task.text, name, status, visits[-1].outcome.answer, tuple(visits), variables
    )


def _contents(task: ProgramTask) -> list[list[object]]:
    return [[key, value.type, value.content] for key, value in sorted(task.variables.items())]


Similarity = Callable[[str, str], float]
LEAST_SIMILAR = 0.3  # cosine below which a key is not meant
_WORD = re.compile(r"\w+")


def choose(answer: str, keys: Sequence[str], similarity: Similarity | None = None) -> Choice | None:
    """Returns the branch that an answer means; None where it means none: a branch is never taken by default.

    A key that is the whole answer, its first words or one of its words wins (Yes and No above all); then the key with
    the largest similarity; then the branch `other`. The published interpreter takes the first one instead of none.
    """
    text = _words(answer)
    plain = [_words(key) for key in keys]
    for place, key in enumerate(plain):
        if key == text:
            return Choice(place, "key")
    begins = [place for place, key in enumerate(plain) if key and text[: len(key)] == key]
    if begins:
        return Choice(max(begins, key=lambda place: len(plain[place])), "key")
    inside = [place for place, key in enumerate(plain) if key and _contains(text, key)]
    if len(inside) == 1:
        return Choice(inside[0], "key")
    if similarity is not None and text:
        scores = [similarity(answer, key) for key in keys]
        best = max(range(len(keys)), key=lambda place: (scores[place], -place))
        if scores[best] >= LEAST_SIMILAR:
            return Choice(best, "similar")
    other = next((place for place, key in enumerate(keys) if key.lower() in OTHER), None)
    return None if other is None else Choice(other, "other")


def letter_cosine(one: str, two: str) -> float:
    """Returns the cosine of the counts of three letters in a row: a similarity that needs no model."""
    a, b = _threes(one), _threes(two)
    length = sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[key] for key, n in a.items()) / length if length else 0.0


def _threes(text: str) -> Counter[str]:
    padded = f"  {' '.join(_words(text))}  "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _contains(words: list[str], part: list[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))
