"""Trains the pointer model, and lets it serve the industries on which it beats the look-up of similar cases.

cases of the snapshot → a quarter held out by hash → model of the rest → F1 of the held-out cases by the model and by
similar cases → industries that the model serves → model of all cases → lake
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.pointer.backend import named_sequences
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.pointer.model import train as train_model
from opus_pipelines.lwm.pointer.store import publish
from opus_pipelines.metrics.intervals import interval
from opus_pipelines.retrieval.case_memory import LEAST_CASES, IndustryMemory, encoded_requests, memory_of
from opus_pipelines.retrieval.consensus import Consensus, consensus, f1
from opus_pipelines.retrieval.similar_cases import weights_by_text
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex

HELD_OUT = 4  # one case of so many is held out, by the hash of its id
MOST_ASKED = 300  # held-out cases of an industry that are asked
Report = Callable[[str], None]


@dataclass(frozen=True)
class Figures:
    """How the model and the look-up of similar cases do on held-out cases of one industry.

    Attributes:
        cases: cases that the held-out model learnt from.
        asked: held-out cases that both were asked.
        model, similar_cases: mean F1 of the tasks.
        low, high: 95 % interval of the mean difference of the F1 of tasks, model minus similar cases.
    """

    cases: int
    asked: int
    model: float
    similar_cases: float
    low: float
    high: float

    @property
    def serves(self) -> bool:
        """Whether the model is better beyond the interval."""
        return self.low > 0


@dataclass(frozen=True)
class Trained:
    """A trained model in the lake: its id, the figures of each industry, and the mean loss in nats of every epoch."""

    model_id: str
    figures: dict[str, Figures]
    loss: list[float]


def train(
    lake: Lake,
    index: SnapshotIndex,
    encoder: TextEncoder,
    industries: Sequence[str] = (),
    report: Report = lambda _: None,
) -> Trained:
    """Trains a model on the cases of the snapshot, judges it on held-out cases, and publishes it.

    `industries`: those to learn from, all where none is named. `report` receives a line for each part of the work.
    Raises InputError where no industry has enough cases with a text, or a named one is unknown.
    """
    if strange := sorted(set(industries) - set(index.industries)):
        raise InputError(f"no industry {strange[0]!r} in the snapshot; there are: {', '.join(index.industries)}")
    memories = {name: m for name in industries or index.industries if (m := memory_of(index, name)) is not None}
    if not memories:
        raise InputError(
            f"no industry has {LEAST_CASES} cases with a text that did not fail; the history backend serves all"
        )
    requests = {}
    for name, memory in memories.items():
        report(f"{name}: {len(memory.ids):,} cases, {len(memory.memory.graph.tasks):,} tasks; requests are encoded")
        requests[name] = encoded_requests(memory.texts, memory.memory.vectors, encoder)
    held = {name: _held_out(memory) for name, memory in memories.items()}
    parts = {name: (memories[name].without(held[name]), _without(requests[name], held[name])) for name in memories}
    report("a model of three quarters of the cases is trained, to be judged on the others")
    judged = train_model([(part.memory, own) for part, own in parts.values()])
    figures = {}
    for name, (part, _) in parts.items():
        figures[name] = _figures(judged, part, memories[name], requests[name], held[name])
        report(
            f"{name}: F1 of held-out cases {figures[name].model:.3f}, similar cases {figures[name].similar_cases:.3f}"
        )
    report("the model of all cases is trained")
    loss: list[float] = []
    model = train_model(
        [(memory.memory, requests[name]) for name, memory in memories.items()],
        lambda _, mean: loss.append(round(mean, 6)),
    )
    return Trained(publish(lake, model, _card(index, memories, figures, loss)), figures, loss)


def _card(
    index: SnapshotIndex, memories: dict[str, IndustryMemory], figures: dict[str, Figures], loss: list[float]
) -> dict[str, Any]:
    return {
        "kind": "pointer",
        "snapshot": index.snapshot.id,
        "cases_hash": digest(*([name, *memory.ids] for name, memory in sorted(memories.items()))),
        "loss": loss,
        "industries": {name: {**vars(one), "serves": one.serves} for name, one in figures.items()},
    }


def _held_out(memory: IndustryMemory) -> list[int]:
    """Returns the cases that are held out: a quarter by hash of the request, so that equal requests stay together."""
    return [n for n, text in enumerate(memory.texts) if int(digest("held out", text)[:8], 16) % HELD_OUT == 0]


def _without(requests: Sequence[EncodedRequest], hidden: Sequence[int]) -> list[EncodedRequest]:
    gone = set(hidden)
    return [request for n, request in enumerate(requests) if n not in gone]


def _figures(
    model: PointerModel,
    part: IndustryMemory,
    whole: IndustryMemory,
    requests: Sequence[EncodedRequest],
    held: Sequence[int],
) -> Figures:
    asked = sorted(held, key=lambda n: digest("asked", whole.ids[n]))[:MOST_ASKED]
    scores = np.zeros((len(asked), 2))
    tasks = part.memory.graph.tasks
    for row, n in enumerate(asked):
        gold = frozenset(tasks[task] for task in whole.memory.traces[n])
        written = named_sequences(model.sequences(requests[n], part.memory), tasks)
        by_model = consensus([part.trace(names) for names, _ in written], np.array([weight for _, weight in written]))
        by_cases = _by_similar_cases(part, requests[n])
        scores[row] = [f1(frozenset(expected.tasks), gold) for expected in (by_model, by_cases)]
    if len(asked) < 2:
        return Figures(len(part.ids), len(asked), 0.0, 0.0, 0.0, 0.0)
    low, high = interval((scores[:, 0] - scores[:, 1]).tolist(), [whole.texts[n] for n in asked])
    mean = scores.mean(0).round(6).tolist()
    return Figures(len(part.ids), len(asked), mean[0], mean[1], round(low, 6), round(high, 6))


def _by_similar_cases(part: IndustryMemory, request: EncodedRequest) -> Consensus:
    weights = weights_by_text((part.memory.vectors @ request.vector).round(6))
    kept = np.flatnonzero(weights)
    tasks = part.memory.graph.tasks
    return consensus([part.trace([tasks[t] for t in part.memory.traces[n]]) for n in kept], weights[kept])
