"""Trains the pointer model, and lets it serve the industries on which it beats the look-up of similar cases.

cases of the snapshot → a quarter held out by hash → model of the rest → F1 of the held-out cases by the model, by
similar cases and by the champion → industries that the model serves, and whether it replaces the champion → model of
all cases → lake and MLflow

Nothing is published before the end: a training that is stopped leaves what serves as it was. After every epoch of the
pointer model and of the task reader a checkpoint is kept, and the next training of the same cases goes on from it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Lwm as LwmSettings
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.pointer.backend import named_sequences
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.hiding import Hiding
from opus_pipelines.lwm.pointer.model import MOST_LISTS, NEW_SETS, SEED, VERSION, Learning
from opus_pipelines.lwm.pointer.model import train as train_model
from opus_pipelines.lwm.pointer.store import KIND, AnyModel, Champion, keep, model_id_of, opened, store_of
from opus_pipelines.lwm.pointer.transformer import train as train_transformer
from opus_pipelines.lwm.step_writing.store import KIND as WRITER_KIND
from opus_pipelines.lwm.step_writing.store import opened as opened_writer
from opus_pipelines.lwm.step_writing.store import store_of as writers_of
from opus_pipelines.metrics.intervals import interval
from opus_pipelines.next_step import network
from opus_pipelines.retrieval.case_memory import LEAST_CASES, IndustryMemory, encoded_requests, memory_of
from opus_pipelines.retrieval.consensus import Consensus, consensus, f1
from opus_pipelines.retrieval.similar_cases import weights_by_text
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.training.logged_models import logged_pointer, logged_writer
from opus_pipelines.training.promotion import HELD_OUT, Figures, Judged, Promotion, is_held_out, promotion
from opus_pipelines.training.tracking import DataHash, Tracking
from opus_pipelines.training.train_intention import LearntEncoder, learn_encoder, publish_encoder, record_encoder
from opus_pipelines.training.train_reader import learn_reader
from opus_pipelines.training.train_writer import LearntWriter, learn_writer, publish_writer

MOST_ASKED = 300  # held-out cases of an industry that are asked
Report = Callable[[str], None]


@dataclass(frozen=True)
class TrainingOptions:
    """How a training runs.

    Attributes:
        industries: those to learn from, all where none is named.
        report: receives a line for each part of the work.
        tracking: where the training is recorded; None: nowhere.
        holds_lock: whether the caller holds the lake's lock already; otherwise it is taken to publish.
        fine_tune: whether the upper layers of the sentence encoder are fine-tuned for the model, too.
        lwm: the settings of the model.
    """

    industries: Sequence[str] = ()
    report: Report = lambda _: None
    tracking: Tracking | None = None
    holds_lock: bool = False
    fine_tune: bool = False
    lwm: LwmSettings = field(default_factory=LwmSettings)


@dataclass(frozen=True)
class Trained:
    """A trained model in the lake.

    Attributes:
        model_id: its id.
        figures: how it did on held-out cases of each industry.
        loss: the mean loss in nats of every epoch.
        promotion: whether it is the champion now, and why.
        writer: the step writer that was trained with it, None where too few cases have steps in free words.
        encoder: the Intention encoder that was trained with it.
    """

    model_id: str
    figures: dict[str, Figures]
    loss: list[float]
    promotion: Promotion
    writer: LearntWriter | None = None
    encoder: LearntEncoder | None = None


def can_learn(index: SnapshotIndex) -> bool:
    """Returns whether an industry of the snapshot has enough cases to learn from."""
    return any(memory_of(index, name) is not None for name in index.industries)


def train(
    lake: Lake, index: SnapshotIndex, encoder: TextEncoder, options: TrainingOptions = TrainingOptions()
) -> Trained:
    """Trains a model on the cases of the snapshot, judges it on held-out cases, and publishes it.

    It becomes the champion where there is none, or where it is better than the champion beyond the interval. Raises
    InputError where no industry has enough cases with a text, or a named one is unknown; TrainingError where the loss
    is not finite: then nothing is written, and what served serves on.
    """
    training = _Training(lake, index, encoder, options, memories_of(index, options.industries))
    if options.tracking is None:
        return training.trained()[0]
    with options.tracking.run(KIND, training.parameters(), training.data()) as run:
        trained, model = training.trained()
        run.log_curve("loss", trained.loss)
        run.log_figures(_flat(trained))
        if trained.writer is not None:
            run.log_curve("step writer loss", trained.writer.card["loss"])
            run.log_figures({f"step writer/{k}": float(v) for k, v in vars(trained.writer.figures).items()})
        is_champion = store_of(lake).champions()[:1] == [trained.model_id]
        options.tracking.register(run, KIND, logged_pointer(model), is_champion)
        if trained.writer is not None:
            writer = logged_writer(trained.writer.writer)
            is_champion = writers_of(lake).champions()[:1] == [writer.model_id]
            options.tracking.register(run, WRITER_KIND, writer, is_champion)
    if trained.encoder is not None:
        record_encoder(options.tracking, lake, index, trained.encoder)
    return trained


def memories_of(index: SnapshotIndex, industries: Sequence[str]) -> dict[str, IndustryMemory]:
    """Returns the cases of the named industries, of all where none is named.

    Raises InputError where one is unknown, or none has enough cases.
    """
    if strange := sorted(set(industries) - set(index.industries)):
        raise InputError(f"no industry {strange[0]!r} in the snapshot; there are: {', '.join(index.industries)}")
    memories = {name: m for name in industries or index.industries if (m := memory_of(index, name)) is not None}
    if not memories:
        raise InputError(
            f"no industry has {LEAST_CASES} cases with a text that did not fail; the history backend serves all"
        )
    return memories


@dataclass(frozen=True)
class _Training:
    """One training: what it reads and where it writes."""

    lake: Lake
    index: SnapshotIndex
    encoder: TextEncoder
    options: TrainingOptions
    memories: Mapping[str, IndustryMemory]

    def parameters(self) -> dict[str, Any]:
        """Return what the training depends on besides its cases."""
        return {
            "snapshot": self.index.snapshot.id,
            "features": VERSION,
            "seed": SEED,
            "perceptrons": self.options.lwm.perceptrons,
            "hidden units": network.HIDDEN,
            "learning rate": network.LEARNING_RATE,
            "weight decay": network.WEIGHT_DECAY,
            "dropout": network.DROPOUT,
            "batch": network.BATCH,
            "prefixes at most": MOST_LISTS,
            "cases asked as of a new set of tasks": NEW_SETS,
            "held out": f"1 of {HELD_OUT} by hash of the request",
            "fine-tuned": self.options.fine_tune,
            "network": self.options.lwm.network,
            "size": self.options.lwm.size,
            "hides more than the case": self.options.lwm.hide,
        }

    def data(self) -> list[DataHash]:
        """Return the cases of each industry as a hash of their ids."""
        return [DataHash(name, len(m.ids), digest(*m.ids)) for name, m in sorted(self.memories.items())]

    def trained(self) -> tuple[Trained, AnyModel]:
        """Train, judge and publish."""
        report, memories = self.options.report, self.memories
        requests = {}
        for name, memory in memories.items():
            report(f"{name}: {len(memory.ids):,} cases, {len(memory.memory.graph.tasks):,} tasks; requests are encoded")
            requests[name] = encoded_requests(memory.texts, memory.memory.vectors, self.encoder)
        reader = None
        if self.options.fine_tune:
            reader, likely = learn_reader(memories, self.encoder.name, report, self.checkpoints)
            for name, own in likely.items():
                requests[name] = [replace(r, likely=p) for r, p in zip(requests[name], own, strict=True)]
        champion = opened(self.lake).champion
        judged = self._judged(requests, champion)
        served = champion.industries if champion else frozenset[str]()
        verdict = promotion(judged, champion.model_id if champion else None, served)
        report("the model of all cases is trained")
        loss: list[float] = []
        model = self._model(memories, requests, lambda _, mean: loss.append(round(mean, 6)))
        model = replace(model, reader=reader)
        industries = self.options.industries or self.index.industries
        learnt = learn_writer(self.index, self.encoder, industries, report, opened_writer(self.lake).champion)
        encoder = learn_encoder(self.index, self.encoder, industries, report)
        figures = {name: one.figures for name, one in judged.items()}
        with nullcontext() if self.options.holds_lock else self.lake.lock():
            model_id, verdict = self._publish(model, figures, loss, verdict)
            if learnt is not None:
                publish_writer(self.lake, learnt)
            if encoder is not None:
                publish_encoder(self.lake, encoder)
        self.checkpoints.remove()
        return Trained(model_id, figures, loss, verdict, learnt, encoder), model

    @property
    def checkpoints(self) -> Checkpoints:
        """Where this training goes on from if it was interrupted."""
        return Checkpoints.of(self.lake)

    def _model(
        self,
        memories: Mapping[str, IndustryMemory],
        requests: Mapping[str, Sequence[EncodedRequest]],
        report: Callable[[int, float], None] | None = None,
    ) -> AnyModel:
        """Returns a model of these cases."""
        histories = [(memory.memory, requests[name]) for name, memory in memories.items()]
        clients = [memory.clients for memory in memories.values()]
        hiding = Hiding() if self.options.lwm.hide else None
        links = [memory.links for memory in memories.values()]
        perceptrons = self.options.lwm.perceptrons
        how = Learning(report, SEED, self.checkpoints, hiding, NEW_SETS, clients, links, perceptrons=perceptrons)
        if self.options.lwm.network == "transformer":
            return train_transformer(histories, how, self.options.lwm.size)
        return train_model(histories, how)

    def _judged(self, requests: Mapping[str, Sequence[EncodedRequest]], champion: Champion | None) -> dict[str, Judged]:
        """Returns how a model of three quarters of the cases does on the others."""
        memories, report = self.memories, self.options.report
        held = {name: held_out(memory) for name, memory in memories.items()}
        parts = {name: memory.without(held[name]) for name, memory in memories.items()}
        known = {name: _without(requests[name], held[name]) for name in memories}
        report("a model of three quarters of the cases is trained, to be judged on the others")
        model = self._model(parts, known)
        judged = {}
        for name, part in parts.items():
            serving = champion.model if champion and name in champion.industries else None
            asked = sorted(held[name], key=lambda n: digest("asked", memories[name].ids[n]))[:MOST_ASKED]
            cases = [(requests[name][n], memories[name].memory.traces[n]) for n in asked]
            judged[name] = _judged_industry(part, cases, model, serving)
            figures = judged[name].figures
            report(f"{name}: F1 of held-out cases {figures.model:.3f}, similar cases {figures.similar_cases:.3f}")
        return judged

    def _publish(
        self, model: AnyModel, figures: dict[str, Figures], loss: list[float], verdict: Promotion
    ) -> tuple[str, Promotion]:
        if not self.lake.snapshot_folder(self.index.snapshot.id).is_dir():
            raise InputError(
                f"snapshot {self.index.snapshot.id} was removed during the training, perhaps because a client was "
                "forgotten; nothing is written: run `opus train` again"
            )
        store, now = store_of(self.lake), opened(self.lake).champion
        model_id = model_id_of(model)
        if now is not None and now.model_id == model_id:
            verdict = replace(verdict, promoted=False, reason="it is the champion already")
        elif (now.model_id if now else None) != verdict.against:
            verdict = replace(verdict, promoted=False, reason="another model became the champion meanwhile")
        card = {
            "kind": KIND,
            "snapshot": self.index.snapshot.id,
            "cases_hash": digest(*([name, *memory.ids] for name, memory in sorted(self.memories.items()))),
            "loss": loss,
            "industries": {name: {**vars(one), "serves": one.serves} for name, one in figures.items()},
            "promotion": vars(verdict),
        }
        keep(self.lake, model, card)
        if verdict.promoted:
            store.promote(model_id)
        return model_id, verdict


def _flat(trained: Trained) -> dict[str, float]:
    figures = {
        f"{name}/{key}": float(value) for name, one in trained.figures.items() for key, value in vars(one).items()
    }
    verdict = {key: getattr(trained.promotion, key) for key in ("difference", "low", "high")}
    return figures | {f"promotion/{key}": value for key, value in verdict.items() if value is not None}


def held_out(memory: IndustryMemory) -> list[int]:
    """Returns the cases that are held out: a quarter by hash of the request, so that equal requests stay together.

    None are where nothing would be left to learn from.
    """
    held = [n for n, text in enumerate(memory.texts) if is_held_out(text)]
    return held if len(held) < len(memory.texts) else []


def _without(requests: Sequence[EncodedRequest], hidden: Sequence[int]) -> list[EncodedRequest]:
    gone = set(hidden)
    return [request for n, request in enumerate(requests) if n not in gone]


def _judged_industry(
    part: IndustryMemory,
    cases: Sequence[tuple[EncodedRequest, Sequence[int]]],
    model: AnyModel,
    champion: AnyModel | None,
) -> Judged:
    """Returns the F1 of requests and their tasks, of which `part` knows nothing."""
    scores, tasks = np.zeros((len(cases), 3)), part.memory.graph.tasks
    for row, (request, trace) in enumerate(cases):
        gold = frozenset(tasks[task] for task in trace)
        by_cases = f1(frozenset(by_similar_cases(part, request.vector).tasks), gold)
        by_champion = f1(frozenset(_by_model(champion, part, request).tasks), gold) if champion else by_cases
        scores[row] = f1(frozenset(_by_model(model, part, request).tasks), gold), by_cases, by_champion
    texts = tuple(request.text for request, _ in cases)
    if len(cases) < 2:
        return Judged(Figures(len(part.ids), len(cases), 0.0, 0.0, 0.0, 0.0), scores, texts)
    low, high = interval((scores[:, 0] - scores[:, 1]).tolist(), texts)
    means = scores.mean(0).round(6).tolist()
    return Judged(Figures(len(part.ids), len(cases), means[0], means[1], round(low, 6), round(high, 6)), scores, texts)


def _by_model(model: AnyModel, part: IndustryMemory, request: EncodedRequest) -> Consensus:
    written = named_sequences(model.sequences(request, part.memory), part.memory.graph.tasks)
    traces = [part.trace(one.tasks, one.before) for one in written]
    return consensus(traces, np.array([one.probability for one in written]))


def by_similar_cases(part: IndustryMemory, vector: np.ndarray) -> Consensus:
    """Returns what the most similar cases agree on; `vector` [d] is that of the request."""
    weights = weights_by_text((part.memory.vectors @ vector).round(6))
    kept = np.flatnonzero(weights)
    tasks = part.memory.graph.tasks
    return consensus([part.trace([tasks[t] for t in part.memory.traces[n]]) for n in kept], weights[kept])
