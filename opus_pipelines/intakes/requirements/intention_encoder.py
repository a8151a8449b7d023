"""The trained Intention encoder and its store: attention over the elements of an intake, and the tasks that Γ leads to.

LWM 4.2: the client input is the query; keys and values are the passages of the process context and of the client
output. Where both are there, the output has a weight of its own, which is learnt, so that the value follows it. Γ then
passes a low-rank residual map, which is the identity before training (as LoRA, Hu et al. 2021); so do the vectors of
tasks. The logit of P(a case with this Intention does a task) is linear in the cosine of the two and in the log-odds of
the task's share among all cases of its industry. No parameter belongs to a task: one that training never saw is scored
by its text. Torch trains the encoder (`lwm.training.train_intention`), NumPy evaluates it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.models import (
    INTENTION,
    ModelKind,
    content_of,
    read_tensors,
    save_tensors,
    served_industries,
)
from opus_pipelines.language.embedding.texts import CONTEXT_WEIGHT, OUTPUT_WEIGHT, REQUEST_WEIGHT, TEMPERATURE

RANK = 32  # of the two residual maps
_MATRICES = ("intention_in", "intention_out", "task_in", "task_out")
_PARTS = ("attention", *_MATRICES, "logit")
INPUT, CONTEXT, OUTPUT, SHARPNESS = range(4)  # of `attention`
COSINE, RATE, BIAS = range(3)  # of `logit`


@dataclass(frozen=True)
class IntentionEncoder:
    """The weights of an encoder for vectors of d numbers.

    Attributes:
        attention: log-weights of input, context and output in Γ, and the log of the inverse temperature [4].
        intention_in, intention_out: residual map of Γ [d, r]; Γ becomes Γ + (Γ intention_in) intention_outᵀ.
        task_in, task_out: the same of the vectors of tasks [d, r].
        logit: factor of the cosine, factor of the log-odds of a task's share, and bias [3].
    """

    attention: np.ndarray
    intention_in: np.ndarray
    intention_out: np.ndarray
    task_in: np.ndarray
    task_out: np.ndarray
    logit: np.ndarray

    @classmethod
    def untrained(cls, dimension: int, seed: int = 0) -> "IntentionEncoder":
        """Returns an encoder whose maps are the identity and whose weights are those of
        `language.embedding.texts`.
        """
        draw = np.random.default_rng(seed)
        start = {name: np.zeros((dimension, RANK)) for name in _MATRICES}
        for name in ("intention_in", "task_in"):
            start[name] = draw.normal(0.0, 0.02, (dimension, RANK))
        weights = np.log([REQUEST_WEIGHT, CONTEXT_WEIGHT, OUTPUT_WEIGHT, 1 / TEMPERATURE])
        parts = {"attention": weights, **start, "logit": np.array([10.0, 0.5, -4.0])}
        return cls(**{name: part.astype(np.float32) for name, part in parts.items()})

    @classmethod
    def of(cls, tensors: Mapping[str, np.ndarray]) -> "IntentionEncoder":
        """Returns the encoder of these arrays.

        Raises OpusError where an array is missing, is not finite or does not fit the others.
        """
        if missing := [name for name in _PARTS if name not in tensors]:
            raise OpusError(f"the encoder lacks {', '.join(missing)}")
        parts = {name: np.asarray(tensors[name], np.float32) for name in _PARTS}
        if broken := [name for name, part in parts.items() if not np.isfinite(part).all()]:
            raise OpusError(f"the encoder has numbers that are not finite in {', '.join(broken)}")
        shape = parts["intention_in"].shape
        fits = len(shape) == 2 and all(parts[name].shape == shape for name in _MATRICES)
        if not fits or parts["attention"].shape != (4,) or parts["logit"].shape != (3,):
            raise OpusError("the arrays of the encoder do not fit each other")
        return cls(**parts)

    @property
    def dimension(self) -> int:
        """Length of the vectors that it takes."""
        return int(self.intention_in.shape[0])

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, for a file."""
        return {name: getattr(self, name) for name in _PARTS}

    def composed(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns Γ [d] before the map, of unit length.

        `parts` has the unit vectors [n, d] of the passages of `input`, and of `context` and `output` where they are
        known.
        """
        weights = np.exp(self.attention)
        request = _unit(np.asarray(parts["input"]).mean(0))
        total = weights[INPUT] * request
        for name, place in (("context", CONTEXT), ("output", OUTPUT)):
            rows = np.asarray(parts.get(name, ()))
            if len(rows):
                scores = weights[SHARPNESS] * (rows @ request)
                share = np.exp(scores - scores.max())
                total = total + weights[place] * _unit((share / share.sum()) @ rows)
        return _unit(total)

    def intentions(self, vectors: np.ndarray) -> np.ndarray:
        """Returns vectors [n, d] of Γ in the space in which tasks are compared with them."""
        return _unit(vectors + vectors @ self.intention_in @ self.intention_out.T)

    def tasks(self, vectors: np.ndarray) -> np.ndarray:
        """Returns vectors [m, d] of tasks in the space in which they are compared with Γ."""
        return _unit(vectors + vectors @ self.task_in @ self.task_out.T)

    def probabilities(self, intentions: np.ndarray, tasks: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Returns P(a case with the Intention does the task) [n, m].

        `intentions` [n, d] and `tasks` [m, d] are before their maps; `rates` [m] are the shares in ]0, 1[ of all cases
        of the industry that do each task.
        """
        odds = np.log(rates / (1 - rates))
        cosines = self.intentions(intentions) @ self.tasks(tasks).T
        logits = self.logit[COSINE] * cosines + self.logit[RATE] * odds + self.logit[BIAS]
        return np.asarray(1 / (1 + np.exp(-logits)))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors [..., d] at length 1; a zero vector stays as it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


WEIGHTS = "model.safetensors"
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


def encoder_id(encoder: IntentionEncoder) -> str:
    """Returns the id of an encoder; equal weights have the same id."""
    return make_id("m", INTENTION, VERSION, *content_of(encoder.tensors()))


def save_encoder(encoder: IntentionEncoder, file: Path) -> None:
    """Writes the weights of an encoder as safetensors."""
    save_tensors(encoder.tensors(), file)


def read_encoder(file: Path) -> IntentionEncoder:
    """Reads the weights of an encoder. Raises OpusError where the file is damaged or is no encoder's."""
    return IntentionEncoder.of(read_tensors(file, "an encoder"))


def _write(encoder: IntentionEncoder, folder: Path) -> dict[str, Any]:
    save_encoder(encoder, folder / WEIGHTS)
    return {}


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> EncoderChampion:
    if card.get("version") != VERSION:
        raise LakeError(f"it is of version {card.get('version')}, and {VERSION} is used; run `opus train`")
    encoder = read_encoder(folder / WEIGHTS)
    if encoder_id(encoder) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return EncoderChampion(name, encoder, served_industries(card))


# The card of an encoder has `industries`: for each one an object with `serves`.
ENCODERS: ModelKind[IntentionEncoder, EncoderChampion] = ModelKind(INTENTION, VERSION, encoder_id, _write, _read)
