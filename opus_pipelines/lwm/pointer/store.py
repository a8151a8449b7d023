"""The pointer models of a lake: their weights as safetensors, and a card with how they did on held-out cases."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.model_store import CARD, ModelStore, Opened
from opus_pipelines.lwm.pointer.model import VERSION, WIDTH, PointerModel
from opus_pipelines.lwm.pointer.network import Network

KIND, WEIGHTS = "pointer", "model.safetensors"
LARGEST = 64 * 2**20  # bytes of a file of weights; the network has some 30 KB, and a larger file is not read


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
    tensors = model.network.tensors()
    return make_id("m", VERSION, *(f"{name} {tensors[name].shape} {tensors[name].tobytes().hex()}" for name in tensors))


def keep(lake: Lake, model: PointerModel, card: Mapping[str, Any]) -> str:
    """Writes a model with its card as the newest, and returns its id; it serves once it is promoted."""
    model_id = model_id_of(model)
    store_of(lake).keep(model_id, {**card, "version": VERSION}, lambda folder: save(model, folder / WEIGHTS))
    return model_id


def save(model: PointerModel, file: Path) -> None:
    """Writes the weights of a model as safetensors."""
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(part) for name, part in model.network.tensors().items()}, file)


def opened(lake: Lake) -> Opened[Champion]:
    """Returns the champion that serves, and what is known of all models; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> Champion:
    if card.get("version") != VERSION:
        raise LakeError(f"its features are of version {card.get('version')}, and {VERSION} is used; run `opus train`")
    model = PointerModel(read_network(folder / WEIGHTS))
    if model_id_of(model) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return Champion(name, model, _serves(card))


def read_network(file: Path, width: int = WIDTH) -> Network:
    """Reads the weights of a network of `width` features.

    Raises OpusError where the file is damaged or is of another network.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if file.stat().st_size > LARGEST:
        raise LakeError(f"{file.name} has {file.stat().st_size:,} bytes, more than a pointer model has; not read")
    try:
        network = Network.of(load_file(file))
    except (SafetensorError, ValueError, KeyError) as error:  # the last two: types that NumPy does not have
        raise LakeError(f"{file.name} is damaged ({error}); run `opus train`") from None
    if len(network.center) != width:
        raise LakeError(f"{file.name} is of a network of {len(network.center)} features, and there are {width}")
    return network


def _serves(card: Mapping[str, Any]) -> frozenset[str]:
    industries = card.get("industries")
    if not isinstance(industries, dict) or not all(isinstance(one, dict) for one in industries.values()):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    return frozenset(name for name, figures in industries.items() if figures.get("serves") is True)
