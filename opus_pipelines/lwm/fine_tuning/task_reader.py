"""A task reader: which tasks the tokens of a request ask for, by a sentence encoder whose upper layers were fine-tuned.

Each task attends over the tokens of the request and is scored by what it finds there (label-wise attention: Mullenbach
et al. 2018, "Explainable prediction of medical codes from clinical text", equations 2 to 4). A mean over all tokens, as
other vectors of texts are, has one place for all that a request asks for; here every task looks at its own words. The
query and the weights of a task begin as the vector of its text, and training adds to them. Of a task that training did
not see it says nothing.

`fit_reader` fits the upper layers and the heads of the tasks by cross-entropy. The lower layers stay as they are, so
their states are computed once. Batches hold requests of similar length. The cases of one set of tasks weigh together
less than their number says: each of them teaches the same tasks together, so that the words of one task would be read
as asking for the others, too.

Where the CPU multiplies numbers of 16 bits (AVX512-BF16), the layers multiply those (mixed precision: Micikevicius et
al. 2018, with bfloat16), which takes 19 ms of CPU for a request instead of 31; weights, gradients and steps stay
float32. So the same cases give the same bytes on CPUs of one kind, and a slightly different reader on another kind.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding.encoder import Encoder, one_thread

if TYPE_CHECKING:
    import torch


TRAINED_LAYERS = 3  # of the encoder, the upper ones; those below stay as they are
MOST_TOKENS = 128  # of a request; what follows is not read
QUERIES, ANSWERS, BIASES, SCALES = "queries", "answers", "biases", "scales"
LAYERS = "layers."  # prefix of the names of the upper layers' weights
AT_ONCE = 64  # requests of a batch
MOST_LOG_ODDS = 6.9  # P(task) counts as between .001 and .999


@dataclass(frozen=True)
class TaskReader:
    """The weights of a task reader.

    Attributes:
        encoder: name of the sentence encoder whose lower layers it reads with.
        tasks: ids of the tasks that it learnt.
        weights: `queries` and `answers` [tasks, d], what was learnt beside the vectors of the tasks; `biases` [tasks];
            `scales` [2] of attention and score; and the weights of the upper layers.
    """

    encoder: str
    tasks: tuple[str, ...]
    weights: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        """Raises OpusError where weights are missing, are not finite or do not fit the tasks."""
        if missing := [name for name in (QUERIES, ANSWERS, BIASES, SCALES) if name not in self.weights]:
            raise OpusError(f"the task reader lacks {', '.join(missing)}")
        if broken := [name for name, part in self.weights.items() if not np.isfinite(part).all()]:
            raise OpusError(f"the task reader has numbers that are not finite in {', '.join(broken)}")
        shape = len(self.tasks), self.weights[QUERIES].shape[-1]
        expected = {QUERIES: shape, ANSWERS: shape, BIASES: shape[:1], SCALES: (2,)}
        if any(self.weights[name].shape != size for name, size in expected.items()):
            raise OpusError("the arrays of the task reader do not fit its tasks")

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each task that it learnt in `tasks`."""
        return {task: n for n, task in enumerate(self.tasks)}

    def among(self, tasks: Collection[str]) -> "TaskReader":
        """Return the reader of these of its tasks only."""
        kept = [n for n, task in enumerate(self.tasks) if task in tasks]
        heads = {name: self.weights[name][kept] for name in (QUERIES, ANSWERS, BIASES)}
        return TaskReader(self.encoder, tuple(self.tasks[n] for n in kept), {**self.weights, **heads})

    def load(self) -> None:
        """Load the encoder now, before a process is forked that reads with it."""
        self._upper  # noqa: B018 - it is kept

    def log_odds(self, texts: Sequence[str], tasks: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return the log-odds [texts, tasks] that a case with this request does the task, 0 where it was not learnt.

        `vectors` [tasks, d] are those of the tasks' texts. What is read is within `MOST_LOG_ODDS` of 0.
        """
        import torch

        found = np.zeros((len(texts), len(tasks)))
        known = np.array([n for n, task in enumerate(tasks) if task in self.places], np.int64)
        if not len(known):
            return found
        rows, own = [self.places[tasks[n]] for n in known], np.asarray(vectors, np.float32)[known]
        queries, answers = (own + self.weights[name][rows] for name in (QUERIES, ANSWERS))
        heads = Heads(*map(torch.from_numpy, (queries, answers, self.weights[BIASES][rows], self.weights[SCALES])))
        with one_thread(), torch.inference_mode():
            for begin in range(0, len(texts), AT_ONCE):
                states = self._lower.token_states(texts[begin : begin + AT_ONCE], MOST_TOKENS, TRAINED_LAYERS)
                read = heads.logits(*upper_states(self._upper, states)).numpy()
                found[begin : begin + AT_ONCE, known] = np.clip(read, -MOST_LOG_ODDS, MOST_LOG_ODDS)
        return found

    @cached_property
    def _lower(self) -> Encoder:
        return Encoder(EncoderSettings(model=self.encoder))

    @cached_property
    def _upper(self) -> "torch.nn.ModuleList":
        import torch

        layers = deepcopy(self._lower.layers(TRAINED_LAYERS))
        state = {
            name.removeprefix(LAYERS): torch.from_numpy(np.asarray(part))
            for name, part in self.weights.items()
            if name.startswith(LAYERS)
        }
        try:
            layers.load_state_dict(state)
        except RuntimeError as error:
            raise OpusError(f"the task reader does not fit the encoder {self.encoder!r}: {error}") from None
        return layers.eval()


@dataclass(frozen=True)
class Heads:
    """Query, weights and bias of each task, and the scales, as tensors."""

    queries: "torch.Tensor"
    answers: "torch.Tensor"
    biases: "torch.Tensor"
    scales: "torch.Tensor"

    def logits(self, states: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        """Return the logits [texts, tasks] of tokens [texts, n, d], of which `mask` [texts, n] is 1 where one is."""
        import torch

        tokens = torch.nn.functional.normalize(states, dim=-1)
        scores = self.scales[0] * torch.einsum("bnd,md->bmn", tokens, self.queries)
        share = scores.masked_fill(mask[:, None] == 0, -1e9).softmax(-1)
        worth = torch.einsum("bnd,md->bmn", tokens, self.answers)
        return self.scales[1] * (share * worth).sum(-1) + self.biases


def upper_states(
    layers: "Iterable[torch.nn.Module]", states: Sequence[np.ndarray]
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Return the tokens [texts, n, d] after the upper layers, and the mask [texts, n]; `states` are those before."""
    import torch

    longest = max(len(one) for one in states)
    padded, mask = np.zeros((len(states), longest, states[0].shape[1]), np.float32), torch.zeros(len(states), longest)
    for n, one in enumerate(states):
        padded[n, : len(one)] = one
        mask[n, : len(one)] = 1.0
    hidden, hides = torch.from_numpy(padded), ((1.0 - mask) * -1e9)[:, None, None, :]
    for layer in layers:
        made = layer(hidden, attention_mask=hides)
        hidden = made[0] if isinstance(made, tuple) else made
    return hidden, mask


def log_odds(rates: np.ndarray) -> np.ndarray:
    """Return the log-odds [n] of shares in [0, 1]; 0 and 1 are drawn inside."""
    inside = np.clip(rates, 1e-3, 1 - 1e-3)
    return np.log(inside / (1 - inside)).astype(np.float32)


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
        bfloat16: whether the layers multiply numbers of 16 bits; None: where the CPU does (`has_bfloat16`).
    """

    report: Callable[[int, float], None] | None = None
    epochs: int | None = None
    layer_rate: float = LAYER_RATE
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
    epochs = how.epochs or max(1, min(max(_EPOCHS, -(-_LEAST_STEPS // batches)), MOST_READS // len(states)))
    rates = [how.layer_rate, HEAD_RATE, BIAS_RATE]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=epochs * batches, pct_start=WARM_UP)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for batch in _batches(lengths, draw):
            heads = Heads(vectors + learnt[QUERIES], vectors + learnt[ANSWERS], learnt[BIASES], learnt[SCALES])
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how.is_mixed):
                upper, mask = upper_states(layers, [states[n] for n in batch])
            logits = heads.logits(upper.float(), mask)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, holds[batch], reduction="none")
            loss = losses.sum(1) @ weight[batch]
            if not torch.isfinite(loss):
                raise FineTuningError(f"the loss is not finite in epoch {epoch}; nothing is written")
            optimizer.zero_grad()
            (loss / len(batch)).backward()
            torch.nn.utils.clip_grad_norm_(layers.parameters(), STEEPEST)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        if how.report is not None:
            how.report(epoch, total / len(states))
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


def _batches(lengths: np.ndarray, draw: np.random.Generator) -> list[list[int]]:
    """Return the cases of each batch, in a random order; those of a batch are about equally long."""
    order = np.argsort(lengths + draw.random(len(lengths)) * SPREAD, kind="stable")
    batches = [order[n : n + _BATCH].tolist() for n in range(0, len(order), _BATCH)]
    return [batches[n] for n in draw.permutation(len(batches)).tolist()]
