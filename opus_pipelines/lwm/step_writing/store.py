"""The step writers of a lake: their weights as safetensors, and a card with the industries that each serves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.models import CARD, STEP_WRITER, ModelKind, content_of
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.pointer.store import WEIGHTS, read_network, save_pointer
from opus_pipelines.lwm.step_writing.memory import Encode, TextMemory
from opus_pipelines.lwm.step_writing.model import WRITER_WIDTH, StepWriter, WrittenSteps

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


def writer_id(writer: StepWriter) -> str:
    """Returns the id of a writer; equal weights have the same id."""
    return make_id("m", STEP_WRITER, WRITER_VERSION, *content_of(writer.network.tensors()))


def _write(writer: StepWriter, folder: Path) -> dict[str, Any]:
    save_pointer(PointerModel(writer.network), folder / WEIGHTS)
    return {}


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


# The card of a writer has `industries`: for each one that it may serve an object with `rates`.
WRITERS: ModelKind[StepWriter, WriterChampion] = ModelKind(STEP_WRITER, WRITER_VERSION, writer_id, _write, _read)
