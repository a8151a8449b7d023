"""The steps that an intake's own procedure asks for: required steps, their order, and steps that the catalogue lacks.

Where the procedure has a part of its own for the request, that part decides which tasks are critical, not the similar
cases, which may have followed another procedure. Where it is prose without such parts, its steps are added to those of
the similar cases, and only where it is similar to procedures of history.

The reading of a procedure may miss a sentence. Where every success of history under the very same part, in the same
words, did a task before it reached the goal of the part, the task is a step. Successes under another procedure do not
count, because the same goal may then ask for other steps. There must be enough of them: the lower end of the 95 %
interval of their share (Wilson) is at least `_UNANIMOUS_SHARE`, which 16 successes without exception reach. This rule
is the project's own.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.core.statistics import wilson
from opus_pipelines.intakes.catalogues.entries import DeclaredTask
from opus_pipelines.intakes.catalogues.reading import (
    Candidates,
    IntakeTexts,
    read_with_catalogue,
    texts_to_read,
    with_declared,
)
from opus_pipelines.intakes.catalogues.resolution import NOTHING_DECLARED, ResolvedCatalogue
from opus_pipelines.intakes.elements import PROCEDURAL, Element
from opus_pipelines.intakes.procedures.list_reading import read_listed_steps
from opus_pipelines.intakes.procedures.models import ProcedureIndex
from opus_pipelines.intakes.procedures.reading import (
    ParsedProcedure,
    ProcedureStep,
    parse_procedure,
    texts_to_embed,
)
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.index import VectorIndex
from opus_pipelines.language.embedding.texts import Part, parts, plain
from opus_pipelines.language.reading.alignment import Encode
from opus_pipelines.language.reading.second_reader import SecondReader
from opus_pipelines.lwm.precedence import Pair
from opus_pipelines.lwm.retrieval.routing import Router
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph

EXPLAINED_SHARE = 0.3  # least share of a part's sentences that are understood where the part decides
SIMILAR_SHARE = 0.5  # least share of the sentences of prose that are similar to history's where the prose counts


@dataclass(frozen=True)
class History:
    """What reading a procedure needs beside the intake: the procedures of history, and the contract's catalogue.

    `resolved` tells which tools of the catalogue are known tasks; `candidates` which come into question for a text.
    `second` reads the sentences, too, where the settings name a language model for it.
    """

    procedures: ProcedureIndex
    resolved: ResolvedCatalogue = NOTHING_DECLARED
    candidates: Candidates | None = None
    second: SecondReader | None = None

    def tools(self, elements: Sequence[Element]) -> Sequence[DeclaredTask]:
        """Return the tools of the catalogue that come into question for an intake."""
        return self.candidates.of(_lines(elements)) if self.candidates else ()


def texts_to_encode(elements: Sequence[Element], industry: str | None, history: History) -> list[str]:
    """Return every text whose vector reading the intake's procedure may need.

    The result is empty where the industry has history but no procedure in it.
    """
    procedures, tools, parts = history.procedures, history.tools(elements), procedure_parts(elements)
    if procedures.model(industry) is not None:
        return texts_to_embed([*parts, *(tool.part for tool in tools)])
    if procedures.knows(industry):
        return []
    if not tools:
        return texts_to_embed(parts)
    texts = IntakeTexts(RequestText(_text(elements, ("input",)), np.zeros(0)), parts, procedure_texts(elements))
    return texts_to_read(texts, tools, procedures.step_knowledge)


def requested_steps(
    elements: Sequence[Element], request: np.ndarray, industry: str | None, history: History, encoder: TextEncoder
) -> ParsedProcedure | None:
    """Return the steps that the intake's procedure asks for, where history or a catalogue allows to read it; else None.

    A list of steps of an industry without history is read by what other industries tell, and so is a procedure or a
    request with the contract's catalogue. `request` [d] has unit length.
    """
    texts = texts_to_encode(elements, industry, history)
    if not texts:
        return None
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))

    def encode(asked: Sequence[str]) -> np.ndarray:
        return np.stack([vectors[text] for text in asked])

    found, procedures, tools = procedure_parts(elements), history.procedures, history.tools(elements)
    asked_for = RequestText(_text(elements, ("input",)), request)
    model = procedures.model(industry)
    if model is None:
        return history.resolved.named(_without_model(asked_for, elements, industry, history, encode))
    procedure = parse_procedure(asked_for, with_declared(found, tools), industry, model, encode)
    procedure = history.resolved.named(procedure)
    if procedure is None or (
        procedure.explained_share < EXPLAINED_SHARE if procedure.has_goal else procedure.similar_share < SIMILAR_SHARE
    ):
        return None
    return procedure


def _without_model(
    request: RequestText, elements: Sequence[Element], industry: str | None, history: History, encode: Encode
) -> ParsedProcedure | None:
    """Return the steps of an intake for whose industry history has no procedure.

    Where history has cases of the industry, these alone say what a request asks for: a step that only the catalogue has
    could not be joined to theirs, and the intake would be refused.
    """
    tools, knowledge = history.tools(elements), history.procedures.step_knowledge
    parts = procedure_parts(elements)
    if not tools:
        return read_listed_steps(request, parts, industry, knowledge, encode)
    if history.procedures.knows(industry):
        return None
    texts = IntakeTexts(request, parts, procedure_texts(elements), history.second)
    return read_with_catalogue(texts, tools, industry, knowledge, encode)


def _text(elements: Sequence[Element], roles: Collection[str]) -> str:
    return "\n".join(element.text for element in elements if element.role in roles and element.text)


def _lines(elements: Sequence[Element]) -> list[str]:
    """Return the lines of the request and the procedures: texts of a sentence or a few."""
    return _text(elements, ("input", *PROCEDURAL)).splitlines()


def required_groups(procedure: ParsedProcedure | None, near: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Return the groups of critical tasks: those of the procedure and, where they still hold, of the similar cases.

    Each step of the procedure is a group of its own. The groups `near` of the similar cases are left out where a
    part of the procedure decides.
    """
    if procedure is None:
        return list(near)
    own = [frozenset({task}) for task in sorted(set(procedure.tasks))]
    return (
        own
        if procedure.has_goal
        else sorted({*own, *(group for group in near if not group & set(procedure.tasks))}, key=sorted)
    )


def required_reason(group: frozenset[str], procedure: ParsedProcedure | None) -> str:
    """Return why a group of tasks is critical, in words."""
    steps = {s.task_id: s for s in procedure.steps} if procedure else {}
    step = next((steps[t] for t in sorted(group) if t in steps), None)
    if step is None:
        return "history failed without it"
    if step.by_history and step.sentence:
        return step.sentence
    return f"the procedure asks for it: {step.sentence}" if step.sentence else "it is what the procedure's part is for"


def required_precedence(
    procedure: ParsedProcedure | None, stable: frozenset[Pair], known: Collection[str]
) -> frozenset[Pair]:
    """Return the order of the procedure, and the stable precedence that does not contradict it.

    Where the part has a goal, none of the tasks `known` comes after it, because it ends the work.
    """
    if procedure is None:
        return stable
    tasks = procedure.tasks
    own = {(a, b) for n, a in enumerate(tasks) for b in tasks[n + 1 :]}
    if procedure.has_goal:
        own |= {(task, tasks[-1]) for task in known if task not in tasks}
    return frozenset(own | {(a, b) for a, b in stable if (b, a) not in own})


def with_new_steps(graph: WorkGraph, steps: Sequence[ProcedureStep], nearest: Mapping[str, str]) -> WorkGraph:
    """Return the graph with the steps that it lacks; it shares everything else.

    A new step has the figures of its nearest known task, with the basis `estimated`. What a catalogue declares is added
    by the caller.
    """
    tasks = {s.task_id: _task(s, graph.tasks.get(nearest.get(s.task_id, ""))) for s in steps if s.is_new}
    return replace(graph, tasks=graph.tasks | tasks) if tasks else graph


def nearest_tasks(
    steps: Sequence[ProcedureStep], graph: WorkGraph, index: VectorIndex, industry: str | None, encoder: TextEncoder
) -> dict[str, str]:
    """Return, for every new step, the known task of the industry whose text is nearest to the name of the step."""
    new = [s for s in steps if s.is_new]
    vectors = encoder.encode([plain(s.name) for s in new]) if new else ()
    router = Router(index, graph, industry)
    routed = {s.task_id: router.route(vector, 1, -1.0) for s, vector in zip(new, vectors, strict=True)}
    return {task: near[0].id for task, near in routed.items() if near}


def _task(step: ProcedureStep, like: Task | None) -> Task:
    """Return a task that no case did, with the figures of a similar task, or with none where there is no such task."""
    if like is None:
        return Task(step.task_id, step.name, instructions=step.instructions)
    return replace(
        like,
        task_id=step.task_id,
        title=step.name,
        description=None,
        instructions=step.instructions,
        implementations=0,
        p_basis=as_estimate(like.p, like.p_basis),
        p_n=0,
        q_basis=as_estimate(like.q, like.q_basis),
        q_n=0,
        execution_modes=tuple(estimated_mode(mode) for mode in like.execution_modes[:1]),
    )


def as_estimate(value: float | None, basis: str | None) -> str | None:
    """Return the basis of a figure that is taken over from another task; a prior stays a prior."""
    return None if value is None else "prior" if basis == "prior" else "estimated"


def estimated_mode(like: ExecutionMode) -> ExecutionMode:
    """Return an execution mode with the figures of another task's; their intervals are as wide as those of priors."""
    return replace(
        like,
        implementations=0,
        instructions=(),
        p_lower=None,
        p_upper=None,
        q_lower=None,
        q_upper=None,
        p_n=0,
        q_n=0,
        duration_n=0,
        cost_n=0,
        basis="estimated",
        duration_basis="estimated",
        cost_basis="estimated",
    )


def procedure_text(elements: Sequence[Element]) -> str:
    """Return the text of an intake's procedures, the documents of its contract included."""
    return _text(elements, PROCEDURAL)


def procedure_texts(elements: Sequence[Element]) -> list[str]:
    """Return the texts of an intake's procedures, one for each document."""
    return [e.text for e in elements if e.role in PROCEDURAL and e.text]


def procedure_parts(elements: Sequence[Element]) -> list[Part]:
    """Return the parts of an intake's procedures."""
    return [part for e in elements if e.role in PROCEDURAL and e.text for part in parts(e.text)]


_UNANIMOUS_SHARE = 0.8  # of the successes with the task, by the lower end of its interval


def with_unanimous_steps(
    procedure: ParsedProcedure, successes: Sequence[Sequence[str]], tasks: Mapping[str, Task]
) -> ParsedProcedure:
    """Returns the procedure with the steps that all successes under its part did, each with its evidence.

    `successes`: the tasks of each, in order. `tasks`: by id. The procedure stays as it is where its part has no goal,
    because the similar cases then decide.
    """
    if not procedure.has_goal:
        return procedure
    goal = procedure.tasks[-1]
    cases = [done[: done.index(goal)] for done in successes if goal in done]
    if not cases or wilson(len(cases), len(cases))[0] < _UNANIMOUS_SHARE:
        return procedure
    counts = Counter(task for case in cases for task in set(case))
    missing = [t for t, n in sorted(counts.items()) if n == len(cases) and t not in procedure.tasks and t in tasks]
    steps = list(procedure.steps)
    for task in missing:
        said = f"all {len(cases)} successes under this part of the procedure did it"
        step = ProcedureStep(task, tasks[task].title, said, 1.0, by_history=True)
        steps.insert(_place(task, [s.task_id for s in steps], cases), step)
    return replace(procedure, steps=tuple(steps))


def _place(task: str, steps: Sequence[str], cases: Sequence[Sequence[str]]) -> int:
    """Returns the place before the first step that most of the cases with both did later; the goal stays the last."""
    for place, step in enumerate(steps[:-1]):
        both = [case.index(task) < case.index(step) for case in cases if step in case]
        if 2 * sum(both) > len(both):
            return place
    return len(steps) - 1
