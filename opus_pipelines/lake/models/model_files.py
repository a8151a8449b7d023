"""Weights of models as safetensors, and what their cards say: shared by all kinds of models of a lake."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.models.model_store import CARD

Tensors = Mapping[str, np.ndarray]
LARGEST = 64 * 2**20  # bytes of a file of weights: a task reader has 22 MB; a larger file is not read


def content_of(tensors: Tensors) -> Iterator[str]:
    """Yields name, shape and bytes of each array as text, of which the id of a model is made."""
    return (f"{name} {part.shape} {part.tobytes().hex()}" for name, part in tensors.items())


def save_tensors(tensors: Tensors, file: Path) -> None:
    """Writes arrays as safetensors, for whom the lake's other files are for: `save_file` lets the owner alone read."""
    from safetensors.numpy import save

    file.write_bytes(save({name: np.ascontiguousarray(part) for name, part in tensors.items()}))


def read_tensors(file: Path, what: str) -> dict[str, np.ndarray]:
    """Reads the arrays of a safetensors file; `what` names the model in errors.

    Raises LakeError where the file is damaged, or larger than `LARGEST`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if file.stat().st_size > LARGEST:
        raise LakeError(f"{file.name} has {file.stat().st_size:,} bytes, more than {what} has; not read")
    try:
        found: dict[str, np.ndarray] = load_file(file)
    except (SafetensorError, ValueError, KeyError) as error:  # the last two: types that NumPy does not have
        raise LakeError(f"{file.name} is damaged ({error}); run `opus train`") from None
    return found


def served_industries(card: Mapping[str, Any]) -> frozenset[str]:
    """Returns the industries that a model serves by its card. Raises LakeError where the card does not say it."""
    industries = card.get("industries")
    if not isinstance(industries, dict) or not all(isinstance(one, dict) for one in industries.values()):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    return frozenset(name for name, figures in industries.items() if figures.get("serves") is True)
