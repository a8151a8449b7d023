"""Trains the pointer model, and lets it serve the industries on which it beats the look-up of similar cases.

cases of the snapshot → a quarter held out by hash → network and task reader of the rest → F1 of the held-out cases by
both, by the network alone, by similar cases and by the champion → industries that the model serves and those that the
reader is used for, and whether the model replaces the champion → network and reader of all cases → lake and MLflow

Nothing is published before the end: a training that is stopped leaves what serves as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Lwm as LwmSettings
from opus_pipelines.core.versions import POINTER_VERSION
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.next_step import BATCH, DROPOUT, HIDDEN, LEARNING_RATE, WEIGHT_DECAY
from opus_pipelines.lwm.pointer.candidates import EncodedRequest
from opus_pipelines.lwm.pointer.learning import MOST_LISTS, NEW_SETS, POINTER_SEED
from opus_pipelines.lwm.pointer.model import (
    POINTERS,
    READER_WEIGHT,
    Champion,
    PointerModel,
    model_id_of,
)
from opus_pipelines.lwm.retrieval.case_memory import LEAST_CASES, IndustryMemory, encoded_requests, memory_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.step_writing.model import WRITERS
from opus_pipelines.lwm.training.ahead import Ahead, NetworkJob, learn_reader
from opus_pipelines.lwm.training.judging import HELD_OUT, Figures, HeldOut, Judged, Promotion, is_improvable, promotion
from opus_pipelines.lwm.training.tracking import DataHash, Tracking, logged_pointer, logged_writer
from opus_pipelines.lwm.training.train_intention import LearntEncoder, learn_encoder, publish_encoder, record_encoder
from opus_pipelines.lwm.training.train_writer import LearntWriter, learn_writer, publish_writer

Report = Callable[[str], None]


@dataclass(frozen=True)
class TrainingOptions:
    """How a training runs.

    Attributes:
        industries: those to learn from, all where none is named.
        report: receives a line for each part of the work.
        tracking: where the training is recorded; None: nowhere.
        holds_lock: whether the caller holds the lake's lock already; otherwise it is taken to publish.
        lwm: the settings of the model.
    """

    industries: Sequence[str] = ()
    report: Report = lambda _: None
    tracking: Tracking | None = None
    holds_lock: bool = False
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
    with options.tracking.run(POINTERS.name, training.parameters(), training.data()) as run:
        trained, model = training.trained()
        run.log_curve("loss", trained.loss)
        run.log_figures(_flat(trained))
        if trained.writer is not None:
            run.log_curve("step writer loss", trained.writer.card["loss"])
            run.log_figures({f"step writer/{k}": float(v) for k, v in vars(trained.writer.figures).items()})
        is_champion = POINTERS.store(lake).champions()[:1] == [trained.model_id]
        options.tracking.register(run, POINTERS.name, logged_pointer(model), is_champion)
        if trained.writer is not None:
            writer = logged_writer(trained.writer.writer)
            is_champion = WRITERS.store(lake).champions()[:1] == [writer.model_id]
            options.tracking.register(run, WRITERS.name, writer, is_champion)
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
            "features": POINTER_VERSION,
            "seed": POINTER_SEED,
            "perceptrons": self.options.lwm.perceptrons,
            "hidden units": HIDDEN,
            "learning rate": LEARNING_RATE,
            "weight decay": WEIGHT_DECAY,
            "dropout": DROPOUT,
            "batch": BATCH,
            "prefixes at most": MOST_LISTS,
            "cases asked as of a new set of tasks": NEW_SETS,
            "held out": f"1 of {HELD_OUT} by hash of the request",
            "fine-tuned": self.options.lwm.fine_tune,
            "weight of the task reader": READER_WEIGHT,
        }

    def data(self) -> list[DataHash]:
        """Return the cases of each industry as a hash of their ids."""
        return [DataHash(name, len(m.ids), digest(*m.ids)) for name, m in sorted(self.memories.items())]

    def trained(self) -> tuple[Trained, PointerModel]:
        """Train, judge and publish."""
        report, memories = self.options.report, self.memories
        requests = {}
        for name, memory in memories.items():
            report(f"{name}: {len(memory.ids):,} cases, {len(memory.memory.graph.tasks):,} tasks; requests are encoded")
            requests[name] = encoded_requests(memory.texts, memory.memory.vectors, self.encoder)
        champion = POINTERS.open(self.lake).champion
        whole = NetworkJob(memories, requests, self.options.lwm)
        with Ahead(self.encoder.name, report) as ahead:
            ahead.begin_network(whole)
            judged = self._judged(requests, champion, ahead)
            served = champion.industries if champion else frozenset[str]()
            verdict = promotion(judged, champion.model_id if champion else None, served)
            network = ahead.network(whole)
            model = replace(network.model, reader=ahead.reader([n for n, one in judged.items() if one.reads]))
        industries = self.options.industries or self.index.industries
        learnt = learn_writer(self.lake, self.index, self.encoder, industries, report)
        encoder = learn_encoder(self.lake, self.index, self.encoder, industries, report)
        figures = {name: one.figures for name, one in judged.items()}
        with nullcontext() if self.options.holds_lock else self.lake.lock():
            model_id, verdict = self._publish(model, figures, network.loss, verdict)
            if learnt is not None:
                publish_writer(self.lake, learnt)
            if encoder is not None:
                publish_encoder(self.lake, encoder)
        return Trained(model_id, figures, network.loss, verdict, learnt, encoder), model

    def _judged(
        self, requests: Mapping[str, Sequence[EncodedRequest]], champion: Champion | None, ahead: Ahead
    ) -> dict[str, Judged]:
        """Returns how a model of three quarters of the cases does on the others.

        A task reader is trained, too, for the industries of named tasks that the network alone serves and does not
        answer well enough, and for those that the champion reads: its own reader knows the held-out cases, so that it
        is judged with this one. Meanwhile the reader of all cases is trained `ahead`.
        """
        report, wanted = self.options.report, self.options.lwm.fine_tune
        held = {name: HeldOut.of(memory, requests[name]) for name, memory in self.memories.items()}
        parts = {name: one.part for name, one in held.items()}
        report("a model of three quarters of the cases is trained, to be judged on the others")
        known = {name: one.known for name, one in held.items()}
        network = NetworkJob(parts, known, self.options.lwm).run(None, report).model
        written = {name: one.written_by(network) for name, one in held.items()}
        alone = {name: one.f1_of(written[name]) for name, one in held.items()}
        improvable = {
            name
            for name, one in held.items()
            if wanted and parts[name].memory.has_names and is_improvable(one.judged(alone[name], None, None))
        }
        served = {name: champion.model for name in held if champion and name in champion.industries}
        read = {name for name, model in served.items() if model.reader and parts[name].memory.is_read_by(model.reader)}
        ahead.begin_reader({name: self.memories[name] for name in held if name in improvable})
        try:
            learnt = {name: parts[name] for name in held if name in improvable | read}
            reader = learn_reader(learnt, self.encoder.name, report)
        except SettingsError as error:
            report(f"{error}; the model goes without a task reader")
            reader = None
        judged = {}
        for name, one in held.items():
            with_reader = one.f1_of(written[name], reader) if reader and name in improvable else None
            serving, its_reader = served.get(name), reader if name in read else None
            by_champion = one.f1_of(one.written_by(serving), its_reader) if serving else None
            judged[name] = one.judged(alone[name], with_reader, by_champion)
            figures = judged[name].figures
            report(f"{name}: F1 of held-out cases {figures.model:.3f}, similar cases {figures.similar_cases:.3f}")
            if with_reader is not None:
                verdict = "used" if judged[name].reads else "not used"
                report(
                    f"{name}: {with_reader.mean():.3f} with the task reader, {alone[name].mean():.3f} without it; "
                    f"it is {verdict}"
                )
        return judged

    def _publish(
        self, model: PointerModel, figures: dict[str, Figures], loss: list[float], verdict: Promotion
    ) -> tuple[str, Promotion]:
        if not self.lake.snapshot_folder(self.index.snapshot.id).is_dir():
            raise InputError(
                f"snapshot {self.index.snapshot.id} was removed during the training, perhaps because a client was "
                "forgotten; nothing is written: run `opus train` again"
            )
        store, now = POINTERS.store(self.lake), POINTERS.open(self.lake).champion
        model_id = model_id_of(model)
        if now is not None and now.model_id == model_id:
            verdict = replace(verdict, promoted=False, reason="it is the champion already")
        elif (now.model_id if now else None) != verdict.against:
            verdict = replace(verdict, promoted=False, reason="another model became the champion meanwhile")
        card = {
            "kind": POINTERS.name,
            "snapshot": self.index.snapshot.id,
            "cases_hash": digest(*([name, *memory.ids] for name, memory in sorted(self.memories.items()))),
            "loss": loss,
            "industries": {name: {**vars(one), "serves": one.serves} for name, one in figures.items()},
            "promotion": vars(verdict),
        }
        POINTERS.keep(self.lake, model, card)
        if verdict.promoted:
            store.promote(model_id)
        return model_id, verdict


def _flat(trained: Trained) -> dict[str, float]:
    figures = {
        f"{name}/{key}": float(value) for name, one in trained.figures.items() for key, value in vars(one).items()
    }
    verdict = {key: getattr(trained.promotion, key) for key in ("difference", "low", "high")}
    return figures | {f"promotion/{key}": value for key, value in verdict.items() if value is not None}
