"""Keeps trained pointer models in the lake: `models/pointer/<model>/` with weights and a card, and which one serves.

A model is never changed after it was written. `current.json` names the models that may serve, the newest first; where a
model's files are damaged, the one before it serves, and the reason is kept for `opus models`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake, read_json, write_json
from opus_pipelines.lwm.pointer.model import VERSION, PointerModel
from opus_pipelines.lwm.pointer.network import Network

WEIGHTS, CARD = "model.safetensors", "card.json"
KEPT = 5  # newest models that stay named; older ones are removed


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


@dataclass(frozen=True)
class Stored:
    """A model in the lake: its card, and why it cannot be used, None where it can."""

    model_id: str
    card: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True)
class Opened:
    """The champion, None where no usable model serves, and all named models, the newest first."""

    champion: Champion | None = None
    stored: list[Stored] = field(default_factory=list)


def folder_of(lake: Lake) -> Path:
    """Returns the folder of all pointer models."""
    return lake.root / "models" / "pointer"


def model_id_of(model: PointerModel) -> str:
    """Returns the id of a model; equal weights have the same id."""
    tensors = model.network.tensors()
    return make_id("m", VERSION, *(f"{name} {tensors[name].shape} {tensors[name].tobytes().hex()}" for name in tensors))


def publish(lake: Lake, model: PointerModel, card: Mapping[str, Any]) -> str:
    """Writes a model with its card and lets it serve; returns its id. A model that is there is written again."""
    from safetensors.numpy import save_file

    model_id, home = model_id_of(model), folder_of(lake)
    with lake.staging() as staged:
        made = staged / model_id
        made.mkdir()
        save_file({name: np.ascontiguousarray(part) for name, part in model.network.tensors().items()}, made / WEIGHTS)
        write_json(made / CARD, {**card, "model": model_id, "version": VERSION})
        home.mkdir(parents=True, exist_ok=True)
        lake.remove(home / model_id)
        home.mkdir(parents=True, exist_ok=True)
        lake.publish(made, home / model_id)
    before = [name for name in _named(lake) if name != model_id]
    write_json(home / "current.json", {"models": [model_id, *before[: KEPT - 1]]})
    for old in before[KEPT - 1 :]:
        lake.remove(home / old)
    return model_id


def opened(lake: Lake) -> Opened:
    """Returns the newest usable model, and what is known of all; a damaged one is named with its reason."""
    stored: list[Stored] = []
    champion: Champion | None = None
    for name in _named(lake):
        card: Mapping[str, Any] = {}
        try:
            card = read_json(folder_of(lake) / name / CARD) or {}
            model = _read(folder_of(lake) / name, name, card)
        except (OpusError, OSError) as error:
            stored.append(Stored(name, card, str(error)))
            continue
        stored.append(Stored(name, card))
        if champion is None:
            serves = [industry for industry, figures in card["industries"].items() if figures["serves"]]
            champion = Champion(name, model, frozenset(serves))
    return Opened(champion, stored)


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> PointerModel:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if card.get("version") != VERSION:
        raise LakeError(f"its features are of version {card.get('version')}, and {VERSION} is used; run `opus train`")
    if not isinstance(card.get("industries"), dict):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    try:
        model = PointerModel(Network.of(load_file(folder / WEIGHTS)))
    except SafetensorError as error:
        raise LakeError(f"{WEIGHTS} is damaged ({error}); run `opus train`") from None
    if model_id_of(model) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return model


def _named(lake: Lake) -> list[str]:
    names = (read_json(folder_of(lake) / "current.json") or {}).get("models", [])
    return [name for name in names if isinstance(name, str) and name.isalnum()]
