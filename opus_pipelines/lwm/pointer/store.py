"""The pointer models of a lake: their weights as safetensors, and a card with how they did on held-out cases."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.models import (
    CARD,
    POINTER,
    ModelKind,
    content_of,
    read_tensors,
    save_tensors,
    served_industries,
)
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Network
from opus_pipelines.lwm.pointer.model import POINTER_VERSION, WIDTH, PointerModel

WEIGHTS, READER = "model.safetensors", "reader.safetensors"


@dataclass(frozen=True)
class Champion:
    """The model that serves.

    Attributes:
        model_id: its id, a hash of its weights and of the version of its features.
        model: the model.
        industries: the industries on which it was better than the look-up of similar cases, beyond the 95 % interval.
    """

    model_id: str
    model: PointerModel
    industries: frozenset[str]


def model_id_of(model: PointerModel) -> str:
    """Returns the id of a model; equal weights have the same id."""
    reader = content_of(dict(sorted(model.reader.weights.items()))) if model.reader else ()
    return make_id("m", POINTER_VERSION, *content_of(model.network.tensors()), *reader)


def save_pointer(model: PointerModel, file: Path) -> None:
    """Writes the weights of a model as safetensors."""
    save_tensors(model.network.tensors(), file)


def _write(model: PointerModel, folder: Path) -> dict[str, Any]:
    save_pointer(model, folder / WEIGHTS)
    if model.reader is None:
        return {}
    save_tensors(model.reader.weights, folder / READER)
    return {"reader": {"encoder": model.reader.encoder, "tasks": list(model.reader.tasks)}}


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> Champion:
    if card.get("version") != POINTER_VERSION:
        raise LakeError(
            f"its features are of version {card.get('version')}, and {POINTER_VERSION} is used; run `opus train`"
        )
    if "transformer" in card:
        raise LakeError("it is a transformer, which is gone since version 0.1.0; run `opus train`")
    model = PointerModel(read_network(folder / WEIGHTS), _read_reader(folder, card))
    if model_id_of(model) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return Champion(name, model, served_industries(card))


def _read_reader(folder: Path, card: Mapping[str, Any]) -> TaskReader | None:
    """Returns the task reader of a model, None where it was trained without one."""
    beside = card.get("reader")
    if beside is None:
        return None
    try:
        encoder, tasks = str(beside["encoder"]), tuple(str(task) for task in beside["tasks"])
    except (KeyError, TypeError):
        raise LakeError(f"{CARD} does not say what its task reader learnt; run `opus train`") from None
    return TaskReader(encoder, tasks, read_tensors(folder / READER, "a task reader"))


def read_network(file: Path, width: int = WIDTH) -> Network:
    """Reads the weights of a network of `width` features.

    Raises OpusError where the file is damaged or is of another network.
    """
    network = Network.of(read_tensors(file, "a pointer model"))
    if len(network.center) != width:
        raise LakeError(f"{file.name} is of a network of {len(network.center)} features, and there are {width}")
    return network


POINTERS: ModelKind[PointerModel, Champion] = ModelKind(POINTER, POINTER_VERSION, model_id_of, _write, _read)
