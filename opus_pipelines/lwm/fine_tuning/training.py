"""Fits a task reader: the upper layers of a sentence encoder, and the heads of the tasks, by cross-entropy.

The lower layers stay as they are, so their states are computed once. Batches hold requests of similar length. The cases
of one set of tasks weigh together less than their number says: each of them teaches the same tasks together, so that
the words of one task would be read as asking for the others, too.

Where the CPU multiplies numbers of 16 bits (AVX512-BF16), the layers multiply those (mixed precision: Micikevicius et
al. 2018, with bfloat16), which takes 19 ms of CPU for a request instead of 31; weights, gradients and steps stay
float32. So the same cases give the same bytes on CPUs of one kind, and a slightly different reader on another kind.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.language.embedding.torch_threads import one_thread
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoint, Checkpoints
from opus_pipelines.lwm.fine_tuning.resuming import Resumable
from opus_pipelines.lwm.fine_tuning.task_reader import (
    ANSWERS,
    BIASES,
    LAYERS,
    MOST_TOKENS,
    QUERIES,
    SCALES,
    TRAINED_LAYERS,
    Heads,
    TaskReader,
    log_odds,
    upper_states,
)

_EPOCHS = 10  # passes over the cases, at least
_LEAST_STEPS = 300  # gradient steps; few cases are passed over more often
MOST_READS = 24_000  # requests in all passes together, at most; one takes 20 to 30 ms on one core
_BATCH = 32  # requests
LAYER_RATE, HEAD_RATE, BIAS_RATE = 1e-4, 3e-3, 1e-2  # largest steps of layers, of heads, and of biases and scales
_WEIGHT_DECAY = 0.01  # of the layers
WARM_UP = 0.15  # share of the steps in which the rate rises
STEEPEST = 1.0  # norm of a gradient of the layers
SHARPNESS, SCORE = 8.0, 10.0  # of attention and score before training
SET_POWER = 0.5  # a case of a set of tasks that n cases have weighs 1 / n to this power
SPREAD = 6.0  # tokens by which lengths are blurred, so that batches differ between epochs
_SEED = 0


class FineTuningError(OpusError):
    """A task reader cannot be trained: there are no cases, or the loss is not finite."""


@dataclass(frozen=True)
class ReadCases:
    """Requests and what was done.

    Attributes:
        texts: the requests.
        holds: whether the case did the task [cases, tasks].
        tasks: ids of the tasks.
        vectors: unit vectors [tasks, d] of their texts.
    """

    texts: Sequence[str]
    holds: np.ndarray
    tasks: tuple[str, ...]
    vectors: np.ndarray

    def among(self, cases: Sequence[int]) -> "ReadCases":
        """Return these cases only."""
        return ReadCases([self.texts[n] for n in cases], self.holds[list(cases)], self.tasks, self.vectors)


@dataclass(frozen=True)
class ReaderFitting:
    """How a task reader is fitted.

    Attributes:
        report: called after each epoch with its number, from 1, and the mean loss in nats of a case.
        epochs: None for `EPOCHS`, as many as make `LEAST_STEPS`, or as few as make `MOST_READS`.
        layer_rate: the largest step of the layers.
        checkpoints: where an interrupted training goes on from; None: it starts anew.
        bfloat16: whether the layers multiply numbers of 16 bits; None: where the CPU does (`has_bfloat16`).
    """

    report: Callable[[int, float], None] | None = None
    epochs: int | None = None
    layer_rate: float = LAYER_RATE
    checkpoints: Checkpoints | None = None
    bfloat16: bool | None = None

    @property
    def is_mixed(self) -> bool:
        """Whether the layers multiply in bfloat16."""
        return has_bfloat16() if self.bfloat16 is None else self.bfloat16


def fit_reader(cases: ReadCases, encoder: Encoder, how: ReaderFitting = ReaderFitting()) -> TaskReader:
    """Return a task reader that learnt from the cases.

    Raises FineTuningError where there is no case with a task, or the loss is not finite.
    """
    if not len(cases.texts) or not cases.holds.any():
        raise FineTuningError("no case with a text and a task: there is nothing to fine-tune the encoder on")
    with one_thread():
        return _fitted(cases, encoder, how)


def _fitted(cases: ReadCases, encoder: Encoder, how: ReaderFitting) -> TaskReader:
    import torch

    torch.manual_seed(_SEED)
    draw = np.random.default_rng(_SEED)
    states = encoder.token_states(cases.texts, MOST_TOKENS, TRAINED_LAYERS)
    lengths = np.array([len(one) for one in states])
    layers = deepcopy(encoder.layers(TRAINED_LAYERS)).train()
    vectors = torch.from_numpy(np.asarray(cases.vectors, np.float32))
    holds = torch.from_numpy(cases.holds.astype(np.float32))
    shares = weights_by_set(cases.holds)
    weight = torch.from_numpy(shares)
    learnt = {name: torch.nn.Parameter(torch.zeros_like(vectors)) for name in (QUERIES, ANSWERS)}
    learnt[BIASES] = torch.nn.Parameter(torch.from_numpy(log_odds(np.average(cases.holds, axis=0, weights=shares))))
    learnt[SCALES] = torch.nn.Parameter(torch.tensor([SHARPNESS, SCORE]))
    groups = [
        {"params": list(layers.parameters()), "weight_decay": _WEIGHT_DECAY},
        {"params": [learnt[QUERIES], learnt[ANSWERS]], "weight_decay": 0.0},
        {"params": [learnt[BIASES], learnt[SCALES]], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=how.layer_rate)
    batches = -(-len(states) // _BATCH)
    epochs = how.epochs or _passes(len(states), batches)
    rates = [how.layer_rate, HEAD_RATE, BIAS_RATE]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=epochs * batches, pct_start=WARM_UP)
    state = Resumable(_checkpoint(cases, encoder, how, epochs), optimizer, schedule, draw, how.report)
    for epoch in range(state.resume() + 1, epochs + 1):
        total = 0.0
        for batch in _batches(lengths, draw):
            heads = Heads(vectors + learnt[QUERIES], vectors + learnt[ANSWERS], learnt[BIASES], learnt[SCALES])
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how.is_mixed):
                upper, mask = upper_states(layers, [states[n] for n in batch])
            logits = heads.logits(upper.float(), mask)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, holds[batch], reduction="none")
            loss = losses.sum(1) @ weight[batch]
            if not torch.isfinite(loss):
                state.failed()
                raise FineTuningError(f"the loss is not finite in epoch {epoch}; nothing is written")
            optimizer.zero_grad()
            (loss / len(batch)).backward()
            torch.nn.utils.clip_grad_norm_(layers.parameters(), STEEPEST)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        state.ended(total / len(states))
    weights = {f"{LAYERS}{name}": part.numpy().copy() for name, part in layers.state_dict().items()}
    weights |= {name: part.detach().numpy().copy() for name, part in learnt.items()}
    return TaskReader(encoder.name, cases.tasks, weights)


def has_bfloat16() -> bool:
    """Return whether this CPU multiplies numbers of 16 bits; one that only imitates it is slower than with float32."""
    import torch

    return bool(torch.cpu._is_avx512_bf16_supported())  # noqa: SLF001 - PyTorch has no public name for it


def weights_by_set(holds: np.ndarray) -> np.ndarray:
    """Return the weight [cases] of each case in the loss, by the number of cases with its tasks; their mean is 1.

    `holds` [cases, tasks] tells which case did which task.
    """
    _, own, counts = np.unique(holds > 0, axis=0, return_inverse=True, return_counts=True)
    weights = counts[own.ravel()] ** -SET_POWER
    return np.asarray(weights / weights.mean(), np.float32)


def _passes(cases: int, batches: int) -> int:
    """Return the passes over so many cases."""
    return max(1, min(max(_EPOCHS, -(-_LEAST_STEPS // batches)), MOST_READS // cases))


def _checkpoint(cases: ReadCases, encoder: Encoder, how: ReaderFitting, epochs: int) -> Checkpoint | None:
    """Return the checkpoint of a training on these cases, None where none is kept."""
    if how.checkpoints is None:
        return None
    fixed = [
        encoder.name,
        epochs,
        how.layer_rate,
        HEAD_RATE,
        BIAS_RATE,
        _WEIGHT_DECAY,
        _BATCH,
        _SEED,
        TRAINED_LAYERS,
        SET_POWER,
        how.is_mixed,
    ]
    arrays = [np.ascontiguousarray(part).tobytes() for part in (cases.holds, cases.vectors)]
    return how.checkpoints.at("task reader", fixed, list(cases.texts), list(cases.tasks), *arrays)


def _batches(lengths: np.ndarray, draw: np.random.Generator) -> list[list[int]]:
    """Return the cases of each batch, in a random order; those of a batch are about equally long."""
    order = np.argsort(lengths + draw.random(len(lengths)) * SPREAD, kind="stable")
    batches = [order[n : n + _BATCH].tolist() for n in range(0, len(order), _BATCH)]
    return [batches[n] for n in draw.permutation(len(batches)).tolist()]
