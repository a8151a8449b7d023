"""The adapters of a lake: LoRA weights that `opus train --backend causal_lm` made for one base model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models.model_files import save_tensors
from opus_pipelines.lake.models.model_store import CARD, ModelStore, Opened
from opus_pipelines.lwm.language_models.prompt import VERSION
from opus_pipelines.lwm.language_models.transformer import read_adapter

KIND, WEIGHTS = "causallm", "adapter.safetensors"


@dataclass(frozen=True)
class Adapter:
    """An adapter in the lake: its weights by name, and the rank and the base model that they are of."""

    model_id: str
    weights: Mapping[str, np.ndarray]
    rank: int
    base: str


def store_of(lake: Lake) -> ModelStore:
    """Return the adapters of a lake."""
    return ModelStore(lake, KIND)


def adapter_id(weights: Mapping[str, np.ndarray]) -> str:
    """Return the id of an adapter; equal weights have the same id."""
    return make_id("a", VERSION, *(part for name in sorted(weights) for part in (name, weights[name].tobytes())))


def save(weights: Mapping[str, np.ndarray], file: Path) -> None:
    """Write the weights as safetensors."""
    save_tensors(weights, file)


def opened(lake: Lake) -> Opened[Adapter]:
    """Return the adapter that serves, and what is known of all; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> Adapter:
    rank, base = card.get("rank"), card.get("base")
    if card.get("version") != VERSION or not isinstance(rank, int) or not isinstance(base, str):
        raise LakeError(f"{CARD} is of another version of the prompts; run `opus train --backend causal_lm`")
    weights = read_adapter(folder / WEIGHTS)
    if adapter_id(weights) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train --backend causal_lm`")
    return Adapter(name, weights, rank, base)
