"""The Intention encoders of a lake: weights as safetensors, and a card with how each industry's tasks are recalled."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.requirements.intention_encoder import IntentionEncoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models.model_files import content_of, read_tensors, save_tensors, served_industries
from opus_pipelines.lake.models.model_store import INTENTION, ModelStore, Opened

KIND, WEIGHTS = INTENTION, "model.safetensors"
VERSION = 1  # raise it when what the encoder computes changes: weights of another version are not used


@dataclass(frozen=True)
class EncoderChampion:
    """The encoder that serves.

    Attributes:
        model_id: its id, a hash of its weights and of the version.
        encoder: the encoder.
        industries: the industries on which it recalls the tasks of held-out cases better than the untrained Intention,
            beyond the 95 % interval.
    """

    model_id: str
    encoder: IntentionEncoder
    industries: frozenset[str]


def store_of(lake: Lake) -> ModelStore:
    """Returns the Intention encoders of a lake."""
    return ModelStore(lake, KIND)


def encoder_id(encoder: IntentionEncoder) -> str:
    """Returns the id of an encoder; equal weights have the same id."""
    return make_id("m", KIND, VERSION, *content_of(encoder.tensors()))


def save_encoder(encoder: IntentionEncoder, file: Path) -> None:
    """Writes the weights of an encoder as safetensors."""
    save_tensors(encoder.tensors(), file)


def read_encoder(file: Path) -> IntentionEncoder:
    """Reads the weights of an encoder. Raises OpusError where the file is damaged or is no encoder's."""
    return IntentionEncoder.of(read_tensors(file, "an encoder"))


def keep_encoder(lake: Lake, encoder: IntentionEncoder, card: Mapping[str, Any]) -> str:
    """Writes an encoder with its card as the newest, and returns its id; it serves once it is promoted.

    The card has `industries`: for each one an object with `serves`.
    """
    name = encoder_id(encoder)
    store_of(lake).keep(name, {**card, "version": VERSION}, lambda folder: save_encoder(encoder, folder / WEIGHTS))
    return name


def opened(lake: Lake) -> Opened[EncoderChampion]:
    """Returns the encoder that serves, and what is known of all; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> EncoderChampion:
    if card.get("version") != VERSION:
        raise LakeError(f"it is of version {card.get('version')}, and {VERSION} is used; run `opus train`")
    encoder = read_encoder(folder / WEIGHTS)
    if encoder_id(encoder) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return EncoderChampion(name, encoder, served_industries(card))
