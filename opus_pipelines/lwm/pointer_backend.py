"""The pointer backend: the trained models where they beat history, and the history backend everywhere else."""

import logging
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

from opus_pipelines.core.versions import POINTER_VERSION
from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS, EncoderChampion, IntentionEncoder
from opus_pipelines.intakes.requirements.intention_encoder import VERSION as ENCODER_VERSION
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models import Opened
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import ExpectedSequence
from opus_pipelines.lwm.next_step import Written
from opus_pipelines.lwm.pointer.candidates import EncodedRequest
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import POINTERS, Champion
from opus_pipelines.lwm.step_writing.model import WRITER_VERSION, WRITERS, IndustryWriter, WriterChampion

logger = logging.getLogger("opus_pipelines.lwm")


class PointerBackend(HistoryBackend):
    """Like the history backend, and a trained model says what similar cases lead to.

    Until `opus train` has written a model that beats the look-up of similar cases on held-out history of an industry,
    this is the history backend, its name and version included.
    """

    champion: Champion | None = None
    writer: WriterChampion | None = None
    encoder: EncoderChampion | None = None

    def open(self, lake: Lake) -> None:
        """Load the model that serves in this lake, if there is one."""
        found, writers, encoders = POINTERS.open(lake), WRITERS.open(lake), ENCODERS.open(lake)
        self.champion, self.writer, self.encoder = found.champion, writers.champion, encoders.champion
        _warn_of(found, "model", f"model {found.champion.model_id}" if found.champion else "the history backend")
        _warn_of(writers, "step writer", f"step writer {self.writer.model_id}" if self.writer else "no step writer")
        instead = f"Intention encoder {self.encoder.model_id}" if self.encoder else "the untrained Intention"
        _warn_of(encoders, "Intention encoder", instead)
        self.name = "pointer" if self._models else HistoryBackend.name

    def without_encoder(self) -> "PointerBackend":
        """Return this backend without the trained Intention encoder, for an ablation."""
        other = copy(self)
        other.encoder = None
        return other

    @property
    def version(self) -> str:
        """Return the version of the history backend, with the ids of the models that serve an industry."""
        return " ".join([super().version, *self._models])

    @property
    def _models(self) -> list[str]:
        pointer = [self.champion] if self.champion and self.champion.industries else []
        writer = [self.writer] if self.writer and self.writer.rates else []
        encoder = [self.encoder] if self.encoder and self.encoder.industries else []
        return [
            *(f"pointer-{POINTER_VERSION}-{model.model_id}" for model in pointer),
            *(f"writer-{WRITER_VERSION}-{model.model_id}" for model in writer),
            *(f"intention-{ENCODER_VERSION}-{model.model_id}" for model in encoder),
        ]

    def serves(self, industry: str) -> bool:
        """Return whether the model is used for an industry."""
        return self.champion is not None and industry in self.champion.industries

    def load(self) -> None:
        """Load now what the model that serves needs besides its network."""
        if self.champion is not None and self.champion.model.reader is not None:
            self.champion.model.reader.load()

    def expected(self, request: EncodedRequest, memory: CaseMemory) -> list[ExpectedSequence]:
        """Return the likeliest sequences of tasks for a request with their probabilities, best first."""
        assert self.champion is not None
        return named_sequences(self.champion.model.sequences(request, memory), memory.graph.tasks)

    def intention_encoder(self, industry: str) -> IntentionEncoder | None:
        """Return the trained encoder, where it serves the industry."""
        return self.encoder.encoder if self.encoder and industry in self.encoder.industries else None

    def step_writer(self, industry: str) -> IndustryWriter | None:
        """Return the step writer of an industry, where there is one."""
        rates = self.writer.rates.get(industry) if self.writer else None
        return IndustryWriter(self.writer.writer, rates) if self.writer and rates else None


def _warn_of(found: Opened[Any], what: str, instead: str) -> None:
    """Warn where the model that was named as the champion cannot be used."""
    for stored in found.stored:
        if stored.problem is not None and stored.model_id == found.named:
            _warn_once(f"{what} {stored.model_id} cannot be used: {stored.problem}; {instead} serves")


@cache
def _warn_once(text: str) -> None:
    """Warn in the log; a process says the same thing once, however often it opens the model."""
    logger.warning("%s", text)


def named_sequences(written: Sequence[Written], tasks: Sequence[str]) -> list[ExpectedSequence]:
    """Return the sequences with the ids of their tasks."""
    return [ExpectedSequence(tuple(tasks[n] for n in one.tasks), one.probability) for one in written]
