"""Trains the step writer on the industries without a fixed catalogue of tasks, and lets it serve where it is better.

cases as texts → a quarter held out by hash → writer of the rest → F1 by text of the held-out cases by the writer and by
the most similar case → writer of all cases → lake
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.step_writing.memory import TextCase, TextMemory, encoded
from opus_pipelines.lwm.step_writing.model import StepWriter, train
from opus_pipelines.lwm.step_writing.store import KIND, keep_writer, writers_of
from opus_pipelines.metrics.intervals import interval
from opus_pipelines.metrics.matching import best_matches
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.text_memory import RememberedVectors, text_cases
from opus_pipelines.training.promotion import is_held_out

LEAST_CASES = 50  # of all these industries together


@dataclass(frozen=True)
class WriterFigures:
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

    @property
    def serves(self) -> bool:
        """Whether the writer is better beyond the interval."""
        return self.low > 0


@dataclass(frozen=True)
class LearntWriter:
    """A trained writer, its figures, and its card for the lake."""

    writer: StepWriter
    figures: WriterFigures
    card: Mapping[str, Any]


def learn_writer(
    index: SnapshotIndex, encoder: TextEncoder, industries: Sequence[str], report: Callable[[str], None]
) -> LearntWriter | None:
    """Returns a writer with its figures on held-out cases; None where too few cases have steps in free words.

    Raises TrainingError where the loss is not finite.
    """
    cases = {name: found for name in industries if (found := text_cases(index, name))}
    if sum(map(len, cases.values())) < LEAST_CASES:
        return None
    encode = RememberedVectors(encoder)
    report(f"{sum(map(len, cases.values())):,} cases have steps in free words: a step writer is trained")
    figures = _judged(cases, encode)
    report(f"F1 by text of held-out cases {figures.model:.3f}, most similar case {figures.similar_case:.3f}")
    memories = {name: TextMemory.measured(own, encode) for name, own in cases.items()}
    loss: list[float] = []
    writer = train(list(memories.values()), encode, lambda _, mean: loss.append(round(mean, 6)))
    card = {
        "kind": KIND,
        "snapshot": index.snapshot.id,
        "loss": loss,
        "figures": {**vars(figures), "serves": figures.serves},
        "industries": {name: {"cases": len(memory.cases), "rates": memory.rates} for name, memory in memories.items()},
    }
    return LearntWriter(writer, figures, card)


def publish_writer(lake: Lake, learnt: LearntWriter) -> str:
    """Keeps a writer in the lake, and lets it serve where it is better than the most similar case beyond the interval.

    Returns its id. Whoever calls holds the lake's lock.
    """
    name = keep_writer(lake, learnt.writer, learnt.card)
    if learnt.figures.serves:
        writers_of(lake).promote(name)
    return name


def _judged(cases: Mapping[str, Sequence[TextCase]], encode: RememberedVectors) -> WriterFigures:
    """Returns the figures of a writer of three quarters of the cases on the others."""
    parts: dict[str, TextMemory] = {}
    asked: list[tuple[str, TextCase]] = []
    for name, own in cases.items():
        held = [case for case in own if is_held_out(case.request)]
        rest = [case for case in own if not is_held_out(case.request)]
        if len(rest) > 1:
            parts[name] = TextMemory.measured(rest, encode)
            asked += [(name, case) for case in held]
    if len(asked) < 2:
        return WriterFigures(len(asked), 0.0, 0.0, 0.0, 0.0)
    writer = train(list(parts.values()), encode)
    scores = np.array([_scores(writer, parts[name], case, encode) for name, case in asked])
    low, high = interval((scores[:, 0] - scores[:, 1]).tolist(), [case.request for _, case in asked])
    model, nearest = scores.mean(0).round(6).tolist()
    return WriterFigures(len(asked), model, nearest, round(low, 6), round(high, 6))


def _scores(writer: StepWriter, memory: TextMemory, case: TextCase, encode: RememberedVectors) -> tuple[float, float]:
    written = [step.text.text for step in writer.written(case.request, case.context, memory, encode).steps]
    nearest = memory.nearest(case.request)
    return _f1(written, case.steps, encode), _f1(nearest.steps, case.steps, encode)


def _f1(own: Sequence[str], gold: Sequence[str], encode: RememberedVectors) -> float:
    return (
        2 * len(best_matches(encoded(own, encode) @ encoded(gold, encode).T)) / (len(own) + len(gold)) if own else 0.0
    )
