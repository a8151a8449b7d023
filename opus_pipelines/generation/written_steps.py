"""Steps in free words: where history has no fixed catalogue of tasks, a trained writer says what a request needs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.generation.records import GenerationContext, Part, Retrieved
from opus_pipelines.intakes.elements import PROCEDURAL, Element
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.lwm.interface import LargeWorkModel, ProcessDemand
from opus_pipelines.lwm.retrieval.case_memory import request_of, text_memory
from opus_pipelines.lwm.retrieval.completeness import SUPPORT, Completeness
from opus_pipelines.lwm.retrieval.consensus import Trace, consensus
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.step_writing.memory import SIMILAR, TextMemory
from opus_pipelines.lwm.step_writing.model import WrittenSteps


def with_written_steps(retrieved: Retrieved, context: GenerationContext) -> Retrieved:
    """Returns the record with the steps that the writer wrote, where one serves the industry.

    They take the place of the procedure and of what similar cases agree on: both name steps of other requests.
    """
    written = _written(retrieved, context)
    if written is None or not written.steps:
        return retrieved
    procedure = _procedure(written, retrieved.request.intake.industry, context)
    trace = Trace.of(procedure.tasks, None if written.is_chain else [[] for _ in procedure.tasks])
    before = retrieved.evidence.completeness
    agreed = consensus([trace], np.ones(1))
    complete = Completeness(
        SUPPORT,
        before.undecided_reason,
        before.similar,
        agreed,
        frozenset(procedure.tasks),
        not written.is_chain,
        agreed.support,
    )
    evidence = replace(retrieved.evidence, completeness=complete, procedure=procedure)
    first = ProcessDemand(retrieved.processes[0].cases, complete.critical)
    return replace(retrieved, evidence=evidence, processes=[first], precedence=frozenset())


def texts_to_write(
    elements: Sequence[Element], industry: str | None, model: LargeWorkModel, index: SnapshotIndex
) -> list[str]:
    """Returns every text whose vector writing steps needs; none where no writer serves the industry."""
    memory, request = _memory(industry, model, index), request_of(elements)
    return memory.texts(request, _beside(elements)) if memory and request.strip() else []


def load_writer(industry: str | None, model: LargeWorkModel, index: SnapshotIndex) -> None:
    """Loads what writing the steps of an industry's intakes needs, before a child is forked that shares it."""
    if memory := _memory(industry, model, index):
        memory.load()


def _memory(industry: str | None, model: LargeWorkModel, index: SnapshotIndex) -> TextMemory | None:
    writer = model.step_writer(industry) if industry is not None else None
    return text_memory(index, industry, writer.rates) if industry is not None and writer is not None else None


def _written(retrieved: Retrieved, context: GenerationContext) -> WrittenSteps | None:
    intake, request = retrieved.request.intake, request_of(retrieved.request.intake.elements)
    writer = context.model.step_writer(intake.industry) if intake.industry is not None else None
    memory = _memory(intake.industry, context.model, context.index)
    if writer is None or memory is None or not request.strip() or Part.PROCEDURE in context.without:
        return None
    return writer.written(request, _beside(intake.elements), memory, context.encoder.encode)


def _beside(elements: Sequence[Element]) -> str:
    return "\n".join(element.text for element in elements if element.role in PROCEDURAL and element.text)


def _procedure(written: WrittenSteps, industry: str | None, context: GenerationContext) -> ParsedProcedure:
    """Returns the written steps, each text once; one that history knows by name is the known task."""
    steps: dict[str, ProcedureStep] = {}
    for step in written.steps:
        name = step.text.text
        known = [
            task for task in sorted(context.index.names.tasks(name)) if context.index.graph.tasks[task].title == name
        ]
        task = known[0] if known else make_id("t", "new", industry or "", plain(name))
        said = None if step.text.origin == SIMILAR else name
        steps.setdefault(task, ProcedureStep(task, name, said or name, step.probability, not known))
    return ParsedProcedure("", tuple(steps.values()), 1.0)
