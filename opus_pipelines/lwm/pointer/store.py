"""The pointer models of a lake: their weights as safetensors, and a card with how they did on held-out cases."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models.model_files import content_of, read_tensors, save_tensors, served_industries
from opus_pipelines.lake.models.model_store import CARD, POINTER, ModelStore, Opened
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Network
from opus_pipelines.lwm.pointer.model import POINTER_VERSION, WIDTH, PointerModel

KIND, WEIGHTS, READER = POINTER, "model.safetensors", "reader.safetensors"


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


def store_of(lake: Lake) -> ModelStore:
    """Returns the pointer models of a lake."""
    return ModelStore(lake, KIND)


def model_id_of(model: PointerModel) -> str:
    """Returns the id of a model; equal weights have the same id."""
    reader = content_of(dict(sorted(model.reader.weights.items()))) if model.reader else ()
    return make_id("m", POINTER_VERSION, *content_of(model.network.tensors()), *reader)


def keep(lake: Lake, model: PointerModel, card: Mapping[str, Any]) -> str:
    """Writes a model with its card as the newest, and returns its id; it serves once it is promoted."""
    model_id = model_id_of(model)
    reader = model.reader
    beside: dict[str, Any] = (
        {} if reader is None else {"reader": {"encoder": reader.encoder, "tasks": list(reader.tasks)}}
    )

    def write(folder: Path) -> None:
        save(model, folder / WEIGHTS)
        if reader is not None:
            save_tensors(reader.weights, folder / READER)

    store_of(lake).keep(model_id, {**card, **beside, "version": POINTER_VERSION}, write)
    return model_id


def save(model: PointerModel, file: Path) -> None:
    """Writes the weights of a model as safetensors."""
    save_tensors(model.network.tensors(), file)


def opened(lake: Lake) -> Opened[Champion]:
    """Returns the champion that serves, and what is known of all models; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


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
