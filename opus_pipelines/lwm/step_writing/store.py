"""The step writers of a lake: their weights as safetensors, and a card with the industries that each serves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models.model_files import content_of
from opus_pipelines.lake.models.model_store import CARD, STEP_WRITER, ModelStore, Opened
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.pointer.store import WEIGHTS, read_network, save
from opus_pipelines.lwm.step_writing.memory import Encode, TextMemory
from opus_pipelines.lwm.step_writing.model import WRITER_WIDTH, StepWriter, WrittenSteps

KIND = STEP_WRITER
WRITER_VERSION = 2  # raise it when the features or the way of writing change: a network of another version is not used


@dataclass(frozen=True)
class WriterChampion:
    """The writer that serves.

    Attributes:
        model_id: its id, a hash of its weights and of the version of its features.
        writer: the writer.
        rates: for each industry that it serves, the rates of its cases (`TextMemory`).
    """

    model_id: str
    writer: StepWriter
    rates: Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class IndustryWriter:
    """The writer that serves an industry, and the rates of the industry's cases."""

    writer: StepWriter
    rates: Mapping[str, Sequence[float]]

    def written(self, request: str, context: str, memory: TextMemory, encode: Encode) -> WrittenSteps:
        """Return the steps of a request, see `StepWriter.written`."""
        return self.writer.written(request, context, memory, encode)


def store_of(lake: Lake) -> ModelStore:
    """Returns the step writers of a lake."""
    return ModelStore(lake, KIND)


def writer_id(writer: StepWriter) -> str:
    """Returns the id of a writer; equal weights have the same id."""
    return make_id("m", KIND, WRITER_VERSION, *content_of(writer.network.tensors()))


def keep_writer(lake: Lake, writer: StepWriter, card: Mapping[str, Any]) -> str:
    """Writes a writer with its card as the newest, and returns its id; it serves once it is promoted.

    The card has `industries`: for each one that it may serve an object with `rates`.
    """
    name = writer_id(writer)
    model = PointerModel(writer.network)
    store_of(lake).keep(name, {**card, "version": WRITER_VERSION}, lambda folder: save(model, folder / WEIGHTS))
    return name


def opened(lake: Lake) -> Opened[WriterChampion]:
    """Returns the writer that serves, and what is known of all; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> WriterChampion:
    if card.get("version") != WRITER_VERSION:
        raise LakeError(
            f"its features are of version {card.get('version')}, and {WRITER_VERSION} is used; run `opus train`"
        )
    writer = StepWriter(read_network(folder / WEIGHTS, WRITER_WIDTH))
    if writer_id(writer) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    industries = card.get("industries")
    if not isinstance(industries, dict) or not all(
        isinstance(one, dict) and isinstance(one.get("rates"), dict) for one in industries.values()
    ):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    return WriterChampion(name, writer, {industry: one["rates"] for industry, one in industries.items()})
