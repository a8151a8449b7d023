"""Trains the step writer on the industries without a fixed catalogue of tasks, and lets it serve where it is better.

cases as texts → a quarter held out by hash → writer of the rest → F1 by text of the held-out cases by the writer and by
the most similar case and by the writer that serves → whether it replaces that one → writer of all cases → lake
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.retrieval.case_memory import RememberedVectors, text_cases
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.step_writing.memory import Encode, TextCase, TextMemory, encoded
from opus_pipelines.lwm.step_writing.model import WRITERS, StepWriter, WriterChampion, train_step_writer, writer_id
from opus_pipelines.lwm.training.judging import Promotion, ServesBeyond, beyond, is_held_out
from opus_pipelines.workflow.metrics.opus_metrics import best_matches
from opus_pipelines.workflow.metrics.plan_scores import interval

_LEAST_CASES = 50  # of all these industries together


@dataclass(frozen=True)
class WriterFigures(ServesBeyond):
    """How the writer and the most similar case do on held-out cases of all industries that it was trained for.

    Attributes:
        asked: held-out cases.
        model, similar_case: mean F1 of the steps; a step is found where a written text has a cosine above the
            threshold of matches.
        low, high: 95 % interval of the mean difference, writer minus the most similar case.
    """

    asked: int
    model: float
    similar_case: float
    low: float
    high: float


@dataclass(frozen=True)
class LearntWriter:
    """A trained writer, its figures, whether it replaces the one that serves, and its card for the lake."""

    writer: StepWriter
    figures: WriterFigures
    promotion: Promotion
    card: Mapping[str, Any]


def learn_writer(
    lake: Lake,
    index: SnapshotIndex,
    encoder: TextEncoder,
    industries: Sequence[str],
    report: Callable[[str], None],
) -> LearntWriter | None:
    """Returns a writer with its figures on held-out cases; None where too few cases have steps in free words.

    It is judged beside the writer that serves in the lake. Raises TrainingError where the loss
    is not finite.
    """
    cases = {name: found for name in industries if (found := text_cases(index, name))}
    if sum(map(len, cases.values())) < _LEAST_CASES:
        return None
    encode = RememberedVectors(encoder)
    report(f"{sum(map(len, cases.values())):,} cases have steps in free words: a step writer is trained")
    figures, verdict = judged(cases, encode, WRITERS.open(lake).champion)
    report(f"F1 by text of held-out cases {figures.model:.3f}, most similar case {figures.similar_case:.3f}")
    memories = {name: TextMemory.measured(own, encode) for name, own in cases.items()}
    loss: list[float] = []
    writer = train_step_writer(list(memories.values()), encode, lambda _, mean: loss.append(round(mean, 6)))
    card = {
        "kind": WRITERS.name,
        "snapshot": index.snapshot.id,
        "loss": loss,
        "figures": {**vars(figures), "serves": figures.serves},
        "promotion": vars(verdict),
        "industries": {name: {"cases": len(memory.cases), "rates": memory.rates} for name, memory in memories.items()},
    }
    return LearntWriter(writer, figures, verdict, card)


def publish_writer(lake: Lake, learnt: LearntWriter) -> str:
    """Keeps a writer in the lake, and lets it serve where it was promoted.

    It is not where another writer began to serve since it was judged. Returns its id. Whoever calls holds the lake's
    lock.
    """
    verdict, now = learnt.promotion, WRITERS.open(lake).champion
    if now is not None and now.model_id == writer_id(learnt.writer):
        verdict = replace(verdict, promoted=False, reason="it is the champion already")
    elif (now.model_id if now else None) != verdict.against:
        verdict = replace(verdict, promoted=False, reason="another writer became the champion meanwhile")
    name = WRITERS.keep(lake, learnt.writer, {**learnt.card, "promotion": vars(verdict)})
    if verdict.promoted:
        WRITERS.store(lake).promote(name)
    return name


def judged(
    cases: Mapping[str, Sequence[TextCase]],
    encode: Encode,
    champion: WriterChampion | None,
) -> tuple[WriterFigures, Promotion]:
    """Returns the figures of a writer of three quarters of the cases on the others, and whether it replaces the
    champion, which is asked the same cases.
    """
    parts: dict[str, TextMemory] = {}
    asked: list[tuple[str, TextCase]] = []
    for name, own in cases.items():
        held = [case for case in own if is_held_out(case.request)]
        rest = [case for case in own if not is_held_out(case.request)]
        if len(rest) > 1:
            parts[name] = TextMemory.measured(rest, encode)
            asked += [(name, case) for case in held]
    against = champion.model_id if champion else None
    if len(asked) < 2:
        few = Promotion(False, "fewer than two held-out cases", against)
        return WriterFigures(len(asked), 0.0, 0.0, 0.0, 0.0), few
    writer = train_step_writer(list(parts.values()), encode)
    scores = np.array([_scores((writer, _serving(champion, name)), parts[name], case, encode) for name, case in asked])
    groups = [case.request for _, case in asked]
    low, high = interval((scores[:, 0] - scores[:, 2]).tolist(), groups)
    model, _, nearest = scores.mean(0).round(6).tolist()
    figures = WriterFigures(len(asked), model, nearest, round(low, 6), round(high, 6))
    if champion is not None:
        would = scores[:, 0] if figures.serves else scores[:, 2]
        return figures, beyond((would - scores[:, 1]).tolist(), groups, against)
    reason = "better" if figures.serves else "not better"
    return figures, Promotion(figures.serves, f"{reason} than the most similar case beyond the 95 % interval")


def _serving(champion: WriterChampion | None, industry: str) -> StepWriter | None:
    return champion.writer if champion and industry in champion.rates else None


def _scores(writers: Sequence[StepWriter | None], memory: TextMemory, case: TextCase, encode: Encode) -> list[float]:
    """Returns the F1 by each writer, and by the most similar case, which also stands for a writer that is not there."""
    by_case = _f1(memory.nearest(case.request).steps, case.steps, encode)
    found = []
    for writer in writers:
        written = writer.written(case.request, case.context, memory, encode).steps if writer else None
        found.append(by_case if written is None else _f1([step.text.text for step in written], case.steps, encode))
    return [*found, by_case]


def _f1(own: Sequence[str], gold: Sequence[str], encode: Encode) -> float:
    return (
        2 * len(best_matches(encoded(own, encode) @ encoded(gold, encode).T)) / (len(own) + len(gold)) if own else 0.0
    )
