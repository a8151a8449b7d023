"""What an intake's own procedure asks for, as generation uses it: needed steps, their order, and steps that the
catalogue lacks.

Where the procedure has a part of its own for what is asked, that part decides what is needed, and not what near cases
did: those may have followed another one. Where it is prose without such parts, it adds to what they needed, and only
where it reads like history's procedures.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.embedding.index import VectorIndex
from opus_pipelines.embedding.text_parts import Part, parts, plain
from opus_pipelines.intakes.elements import Element
from opus_pipelines.lwm.procedure_index import ProcedureIndex
from opus_pipelines.lwm.procedure_reading import ParsedProcedure, ProcedureStep, parse_procedure, texts_to_embed
from opus_pipelines.retrieval.routing import route
from opus_pipelines.wkg.graph import Task, Way, WorkGraph

KNOWN_SHARE = 0.3  # of the part's sentences that must be understood for it to decide
ALIKE_SHARE = 0.5  # of the sentences of prose that must be like history's for it to count
PROCEDURAL = ("process", "contract")
Pair = tuple[str, str]


def texts_to_encode(elements: Sequence[Element], industry: str | None, procedures: ProcedureIndex) -> list[str]:
    """Every text that reading an intake's procedure may need the vector of; none where the industry has no procedure
    to learn from.
    """
    return texts_to_embed(_parts(elements)) if procedures.model(industry) else []


def requested_steps(
    elements: Sequence[Element],
    request: np.ndarray,
    industry: str | None,
    procedures: ProcedureIndex,
    encoder: TextEncoder,
) -> ParsedProcedure | None:
    """The steps that the intake's procedure asks for of a request [d, unit length], where history teaches to read it."""
    lessons = procedures.model(industry)
    found = _parts(elements) if lessons else []
    if lessons is None or not found:
        return None
    texts = texts_to_embed(found)
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    made = parse_procedure(request, found, industry, lessons, lambda asked: np.stack([vectors[text] for text in asked]))
    if made is None or (made.explained_share < KNOWN_SHARE if made.has_goal else made.similar_share < ALIKE_SHARE):
        return None
    return made


def required_groups(reading: ParsedProcedure | None, near: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Every step by itself, in order of their ids; the groups that near cases needed only where no part of the
    procedure decides.
    """
    if reading is None:
        return list(near)
    own = [frozenset({task}) for task in sorted(set(reading.tasks))]
    return (
        own
        if reading.has_goal
        else sorted({*own, *(group for group in near if not group & set(reading.tasks))}, key=sorted)
    )


def required_reason(group: frozenset[str], reading: ParsedProcedure | None) -> str:
    """Why a group of tasks is needed, in words."""
    steps = {s.task_id: s for s in reading.steps} if reading else {}
    step = next((steps[t] for t in sorted(group) if t in steps), None)
    if step is None:
        return "history failed without it"
    return f"the procedure asks for it: {step.sentence}" if step.sentence else "it is what the procedure's part is for"


def required_precedence(
    reading: ParsedProcedure | None, settled: frozenset[Pair], known: Collection[str]
) -> frozenset[Pair]:
    """The reading's order, and of what near history settled all that it leaves open; of the tasks `known` none comes
    after what the procedure is for, where it says so: that ends the work.
    """
    if reading is None:
        return settled
    tasks = reading.tasks
    own = {(a, b) for n, a in enumerate(tasks) for b in tasks[n + 1 :]}
    if reading.has_goal:
        own |= {(task, tasks[-1]) for task in known if task not in tasks}
    return frozenset(own | {(a, b) for a, b in settled if (b, a) not in own})


def with_new_steps(graph: WorkGraph, steps: Sequence[ProcedureStep], nearest: Mapping[str, str]) -> WorkGraph:
    """The graph with the steps that it lacks, each with the figures of its nearest known task, marked estimated. It
    shares the rest.
    """
    made = {s.task_id: _task(s, graph.tasks.get(nearest.get(s.task_id, ""))) for s in steps if s.is_new}
    return replace(graph, tasks=graph.tasks | made) if made else graph


def nearest_tasks(
    steps: Sequence[ProcedureStep], graph: WorkGraph, index: VectorIndex, industry: str | None, encoder: TextEncoder
) -> dict[str, str]:
    """For every new step the known task of the industry whose text is nearest to its name, where there is any."""
    new = [s for s in steps if s.is_new]
    vectors = encoder.encode([plain(s.name) for s in new]) if new else ()
    found = {s.task_id: route(index, graph, vector, industry, 1, -1.0) for s, vector in zip(new, vectors, strict=True)}
    return {task: near[0].id for task, near in found.items() if near}


def _task(step: ProcedureStep, like: Task | None) -> Task:
    """A task that nobody in history did; where nothing is like it, nothing is known of it."""
    if like is None:
        return Task(step.task_id, step.name, instructions=step.instructions)
    return replace(
        like,
        task_id=step.task_id,
        title=step.name,
        description=None,
        instructions=step.instructions,
        implementations=0,
        p_basis=_as_estimate(like.p, like.p_basis),
        p_n=0,
        q_basis=_as_estimate(like.q, like.q_basis),
        q_n=0,
        ways=tuple(_way(way) for way in like.ways[:1]),
    )


def _as_estimate(value: float | None, basis: str | None) -> str | None:
    """What a figure of other work rests on when it is taken over: a prior stays one."""
    return None if value is None else "prior" if basis == "prior" else "estimated"


def _way(like: Way) -> Way:
    return replace(
        like,
        implementations=0,
        instructions=(),
        p_n=0,
        q_n=0,
        basis="estimated",
        duration_basis="estimated",
        cost_basis="estimated",
    )


def _parts(elements: Sequence[Element]) -> list[Part]:
    return [part for e in elements if e.role in PROCEDURAL and e.text for part in parts(e.text)]
