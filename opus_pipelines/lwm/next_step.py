"""The network that tells the next step of a workflow, and the writing of sequences from what it tells.

Perceptrons give every candidate a score. The softmax of the scores over the candidates of one prefix is the probability
that a candidate is the next step. The loss is the cross-entropy of the true next step (listwise softmax, Cao et al.
2007). Several perceptrons, which differ by the seed of their training alone, make one network that gives the mean of
their scores, so that the draw of one's initial weights decides less. The activation is SiLU, which NumPy computes in a
quarter of the time of GELU. Torch trains the network; NumPy evaluates it, so that a process that only generates neither
loads torch nor starts its threads.

Sequences are written as a sample, which holds each next step as often as its probability says, so that its shares
estimate probabilities. The likeliest sequences alone, which a beam search would find, are too short where work is long:
many long sequences share a probability that none of them has. The next steps of all open prefixes are asked for at
once.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.language.embedding.encoder import one_thread

if TYPE_CHECKING:
    import torch


HIDDEN = 64
_EPOCHS = 10  # passes over the examples, at least
_LEAST_STEPS = 400  # gradient steps; few examples are passed over more often
BATCH = 128  # prefixes of one gradient step
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3
DROPOUT = 0.1
CLIP = 5.0  # largest absolute value of a standardised feature
LEAST_EXPONENT = 80.0  # e to its power is a float32
MASKED = -30.0  # score of a place that holds no candidate
_PARTS = ("center", "scale", "w1", "b1", "w2", "b2", "w3", "b3")


class TrainingError(OpusError):
    """A model cannot be trained: there are no examples, or the loss is not finite."""


@dataclass(frozen=True)
class Network:
    """Perceptrons with two hidden layers each.

    Attributes:
        center: mean of each feature [f] over the examples.
        scale: standard deviation of each feature [f].
        w1, b1, w2, b2, w3, b3: weights [perceptrons, in, out] and biases [perceptrons, out] of the three layers.
    """

    center: np.ndarray
    scale: np.ndarray
    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    w3: np.ndarray
    b3: np.ndarray

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Returns the scores [n] of candidates with these features [n, f]; a missing feature is NaN."""
        rows, total = self.standardised(features), np.zeros(len(features), np.float32)
        for w1, b1, w2, b2, w3, b3 in zip(self.w1, self.b1, self.w2, self.b2, self.w3, self.b3, strict=True):
            total += (_silu(_silu(rows @ w1 + b1) @ w2 + b2) @ w3 + b3)[:, 0]
        return np.asarray(total / np.float32(len(self.w1)))

    def standardised(self, features: np.ndarray) -> np.ndarray:
        """Returns the features [n, f] with mean 0 and deviation 1, clipped; a missing one is 0."""
        return _standardised(features, self.center, self.scale)

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name, for a file."""
        return {name: getattr(self, name) for name in _PARTS}

    @classmethod
    def of(cls, tensors: "dict[str, np.ndarray]") -> "Network":
        """Returns the network of these arrays.

        Raises OpusError where an array is missing, is not finite or does not fit the others.
        """
        missing = [name for name in _PARTS if name not in tensors]
        if missing:
            raise OpusError(f"the network lacks {', '.join(missing)}")
        parts = {name: np.asarray(tensors[name], np.float32) for name in _PARTS}
        if parts["center"].ndim != 1 or parts["b1"].ndim != 2 or not len(parts["b1"]):
            raise OpusError("the arrays of the network do not fit each other")
        broken = [name for name, part in parts.items() if not np.isfinite(part).all()]
        if broken:
            raise OpusError(f"the network has numbers that are not finite in {', '.join(broken)}")
        f, (count, hidden) = parts["center"].shape[0], parts["b1"].shape
        of_each = [(f, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, 1), (1,)]
        shapes = dict(zip(_PARTS, [(f,), (f,), *((count, *shape) for shape in of_each)], strict=True))
        if any(parts[name].shape != shape for name, shape in shapes.items()):
            raise OpusError("the arrays of the network do not fit each other")
        return cls(**parts)


@dataclass(frozen=True)
class Fitting:
    """How the weights are fitted.

    Attributes:
        seed: of the initial weights, of the order of the examples and of dropout; the next perceptron has the next one.
        report: called after every epoch with its number, from 1, and the mean loss in nats; the epochs of the next
            perceptron are counted on.
        learning_rate: the largest step of the one-cycle schedule.
        perceptrons: how many make the network.
    """

    seed: int = 0
    report: Callable[[int, float], None] | None = None
    learning_rate: float = LEARNING_RATE
    perceptrons: int = 1


def fit_network(lists: Sequence[np.ndarray], chosen: Sequence[int], how: Fitting = Fitting()) -> Network:
    """Trains a network on lists of candidates.

    Args:
        lists: for each prefix the features [candidates, f].
        chosen: for each prefix the place of the true next step in its list.
        how: how the weights are fitted.

    Raises TrainingError where there are no lists, or where the loss is not finite.
    """
    import torch

    if not lists:
        raise TrainingError("there is no example to train on")
    rows = np.concatenate(lists).astype(np.float32)
    present = np.isfinite(rows)
    count = np.maximum(1, present.sum(0))
    center = np.where(present, rows, 0.0).sum(0, dtype=np.float64) / count
    scale = np.sqrt(np.where(present, (rows - center) ** 2, 0.0).sum(0) / count) + 1e-6
    center, scale = center.astype(np.float32), scale.astype(np.float32)
    sizes = np.array([len(candidates) for candidates in lists])
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])
    places = np.full((len(lists), int(sizes.max())), len(rows))
    for n, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        places[n, :size] = np.arange(start, start + size)
    inputs = torch.from_numpy(
        np.concatenate([_standardised(rows, center, scale), np.zeros((1, rows.shape[1]), np.float32)])
    )
    with one_thread():
        examples = inputs, torch.from_numpy(places), torch.from_numpy(np.asarray(chosen))
        fitted = [_fitted(*examples, how, number) for number in range(how.perceptrons)]
    return Network(center, scale, *(np.stack(parts) for parts in zip(*fitted, strict=True)))


def _fitted(
    inputs: "torch.Tensor",
    places: "torch.Tensor",
    chosen: "torch.Tensor",
    how: Fitting,
    number: int,
) -> list[np.ndarray]:
    """Returns the weights [in, out] and biases [out] of the layers of the perceptron of this number.

    The last row of `inputs` is of no candidate.
    """
    import torch
    from torch import nn

    torch.manual_seed(how.seed + number)
    layers = [nn.Linear(inputs.shape[1], HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)]
    dropout, silu = nn.Dropout(DROPOUT), nn.SiLU()
    network = nn.Sequential(layers[0], silu, dropout, layers[1], silu, dropout, layers[2])
    optimizer = torch.optim.AdamW(network.parameters(), lr=how.learning_rate, weight_decay=WEIGHT_DECAY)
    batches = -(-len(places) // BATCH)
    epochs = max(_EPOCHS, -(-_LEAST_STEPS // batches))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, how.learning_rate, epochs * batches)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for batch in torch.randperm(len(places)).split(BATCH):
            of_batch = places[batch]
            scores = network(inputs[of_batch]).squeeze(-1).masked_fill(of_batch == len(inputs) - 1, MASKED)
            loss = nn.functional.cross_entropy(scores, chosen[batch])
            if not torch.isfinite(loss):
                raise TrainingError(f"the loss is not finite in epoch {epoch}; no model is written")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        if how.report is not None:
            how.report(number * epochs + epoch, total / len(places))
    return [p.detach().numpy().copy() for layer in layers for p in (layer.weight.T, layer.bias)]


def _standardised(rows: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.clip((rows - center) / scale, -CLIP, CLIP)).astype(np.float32)


def _silu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / (1 + np.exp(-np.maximum(x, -LEAST_EXPONENT))))


SAMPLE = 100  # sequences that are drawn for a request
_SAMPLE_SEED = 0
Prefix = tuple[int, ...]
# Probabilities [prefixes, candidates + 1] of the next step after each prefix; the last is of the end. A candidate that
# the prefix has is 0, and so is the end where the prefix is empty.
NextStep = Callable[[Sequence[Prefix]], np.ndarray]


@dataclass(frozen=True)
class Written:
    """A sequence of tasks and its probability among those of its request."""

    tasks: tuple[int, ...]
    probability: float


def sampled(next_step: NextStep, longest: int) -> list[Written]:
    """Return a systematic sample of sequences of at most `longest` steps, most frequent first; their shares sum to 1.

    Equal prefixes are continued together, so that the sample holds each next step as often as its probability says, up
    to one draw (systematic sampling, Madow 1949).
    """
    draw = np.random.default_rng(_SAMPLE_SEED)
    drawn: dict[Prefix, int] = {(): SAMPLE}
    ended: Counter[Prefix] = Counter()
    for _ in range(longest):
        longer: dict[Prefix, int] = {}
        for prefix, own in zip(drawn, next_step(list(drawn)), strict=True):
            for place, count in systematic(own, drawn[prefix], float(draw.random())):
                if place == len(own) - 1:
                    ended[prefix] += count
                else:
                    longer[*prefix, place] = count
        drawn = longer
        if not drawn:
            break
    ended.update(drawn)
    total = sum(ended.values())
    return [
        Written(chosen, count / total)
        for chosen, count in sorted(ended.items(), key=lambda sequence: (-sequence[1], sequence[0]))
    ]


def systematic(probabilities: np.ndarray, draws: int, start: float) -> list[tuple[int, int]]:
    """Return the places that are drawn, likeliest first, and how often.

    `probabilities` [k] sum to 1; `start` in [0, 1[ shifts the grid of `draws` equal steps.
    """
    order = np.argsort(-probabilities, kind="stable")
    reached = np.floor(probabilities[order].cumsum().clip(max=1.0) * draws + start)
    reached[-1] = draws  # the sum of the probabilities may miss 1 by rounding
    counts = np.diff(np.minimum(reached, draws), prepend=0.0).astype(int)
    return [(int(order[n]), int(counts[n])) for n in np.flatnonzero(counts)]
