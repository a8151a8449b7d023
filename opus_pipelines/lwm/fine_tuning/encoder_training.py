"""Fits the Intention encoder to cases and the tasks that they did, contrastively and with PyTorch.

The loss has two terms. InfoNCE (van den Oord et al. 2018): a task that the case did against all tasks of the industry
that it did not do; these hold the hard negatives, the tasks of the most similar work. Cross-entropy of each task keeps
P(task) calibrated. In a part of each batch two cases are made one, with the tasks of both (a mixed intake), and context
or output are left out (an incomplete one), so that the encoder learns to read such intakes. Weight decay holds the maps
near the identity, which they are before training.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.intakes.requirements.intention_encoder import CONTEXT, INPUT, OUTPUT, SHARPNESS, IntentionEncoder
from opus_pipelines.language.embedding.encoder import one_thread

if TYPE_CHECKING:
    import torch

STEPS = 100  # gradient steps; twice as many recall less of held-out tasks on the sample and no more on SOPBench
ROUND = 50  # of them, after which the mean loss is reported
ENCODER_BATCH = 128  # cases of one step
ENCODER_RATE = 3e-3
ENCODER_DECAY = 1e-2
CONTRAST = 0.2  # weight of InfoNCE beside the cross-entropy
MIXED = 0.3  # share of a batch that is made of two cases
NO_CONTEXT, NO_OUTPUT = 0.2, 0.5  # shares of a batch without that part
MOST_PASSAGES = 12  # of one part of one case
STRANGER = 0.3  # share of a batch that is taught with the shares of all clients, as an intake of a new client has
OWN_CASES = 5  # cases of a client that weigh as much as those of all in its shares of the tasks
ENCODER_SEED = 0


class EncoderTrainingError(OpusError):
    """An encoder cannot be trained: there are no cases, or the loss is not finite."""


@dataclass(frozen=True)
class TaughtCases:
    """The cases of one industry as they are taught.

    Attributes:
        inputs: unit vectors [n, d] of the requests.
        passages: unit vectors [p, d] of all passages of contexts and outputs.
        contexts, outputs: for each case the rows of its passages.
        tasks: unit vectors [m, d] of the tasks of the industry.
        done: whether the case did the task [n, m].
        groups: the client of each case, by number [n].
        rates: share of all cases of the industry, in ]0, 1[, that do each task; then that of each client's [1 + c, m].
    """

    inputs: np.ndarray
    passages: np.ndarray
    contexts: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[int]]
    tasks: np.ndarray
    done: np.ndarray
    groups: np.ndarray
    rates: np.ndarray

    def parts(self, case: int) -> dict[str, np.ndarray]:
        """Returns the vectors of one case by part, as `IntentionEncoder.composed` takes them."""
        return {
            "input": self.inputs[case][None],
            "context": self.passages[list(self.contexts[case])],
            "output": self.passages[list(self.outputs[case])],
        }

    def among(self, cases: Sequence[int]) -> "TaughtCases":
        """Returns these cases only; the shares of the tasks are those of these cases."""
        done, groups = self.done[list(cases)], self.groups[list(cases)]
        return TaughtCases(
            self.inputs[list(cases)],
            self.passages,
            [self.contexts[n] for n in cases],
            [self.outputs[n] for n in cases],
            self.tasks,
            done,
            groups,
            rates_of(done, groups, len(self.rates) - 1),
        )


def rates_of(done: np.ndarray, groups: np.ndarray, clients: int) -> np.ndarray:
    """Returns the smoothed shares of cases [n, m] that do each task, of all and of each client [1 + clients, m].

    A client's shares are drawn towards those of all, by `OWN_CASES` cases.
    """
    rates = [(done.sum(0) + 0.5) / (len(done) + 1)]
    for client in range(clients):
        own = done[groups == client]
        rates.append((own.sum(0) + OWN_CASES * rates[0]) / (len(own) + OWN_CASES))
    return np.stack(rates)


@one_thread()
def fit_encoder(
    industries: Sequence[TaughtCases],
    report: Callable[[int, float], None] | None = None,
    steps: int = STEPS,
) -> IntentionEncoder:
    """Returns an encoder that was trained on the cases of all industries.

    `report` is called with the number of each `ROUND` steps, from 1, and their mean loss in nats for each task done.
    Raises EncoderTrainingError where there are no cases or the loss is not finite.
    """
    import torch

    usable = [one for one in industries if len(one.inputs) and one.done.any()]
    if not usable:
        raise EncoderTrainingError("no case with a text and a task: an Intention encoder has nothing to learn from")
    draw = np.random.default_rng(ENCODER_SEED)
    start = IntentionEncoder.untrained(usable[0].inputs.shape[1], ENCODER_SEED)
    weights = {name: torch.nn.Parameter(torch.from_numpy(part.copy())) for name, part in start.tensors().items()}
    groups = [
        {"params": [part for name, part in weights.items() if part.ndim == 2], "weight_decay": ENCODER_DECAY},
        {"params": [part for name, part in weights.items() if part.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=ENCODER_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, ENCODER_RATE, total_steps=steps)
    sizes = np.sqrt([len(one.inputs) for one in usable])
    for number, round_begin in enumerate(range(0, steps, ROUND), 1):
        losses: list[float] = []
        for _ in range(round_begin, min(round_begin + ROUND, steps)):
            taught = usable[int(draw.choice(len(usable), p=sizes / sizes.sum()))]
            loss = _loss(weights, _Batch.of(taught, draw), taught)
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise EncoderTrainingError("the loss of the Intention encoder is not finite; nothing is written")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if report is not None:
            report(number, float(np.mean(losses)))
    return IntentionEncoder.of({name: part.detach().numpy() for name, part in weights.items()})


@dataclass(frozen=True)
class _Batch:
    """A batch: vectors of requests, passages with their places in the batch, and the tasks done."""

    inputs: np.ndarray
    context: np.ndarray
    output: np.ndarray
    done: np.ndarray
    rates: np.ndarray
    partners: np.ndarray

    @classmethod
    def of(cls, taught: TaughtCases, draw: np.random.Generator) -> "_Batch":
        """Return some cases, some of them joined with another one, and some without context or output."""
        rows = draw.choice(len(taught.inputs), min(ENCODER_BATCH, len(taught.inputs)), replace=False)
        context = _padded([taught.contexts[n] for n in rows], draw.random(len(rows)) < NO_CONTEXT)
        output = _padded([taught.outputs[n] for n in rows], draw.random(len(rows)) < NO_OUTPUT)
        partners = np.where(draw.random(len(rows)) < MIXED, draw.permutation(len(rows)), np.arange(len(rows)))
        done = taught.done[rows] | taught.done[rows[partners]]
        known = np.where(draw.random(len(rows)) < STRANGER, 0, 1 + taught.groups[rows])
        return cls(taught.inputs[rows], context, output, done, taught.rates[known], partners)


def _padded(rows: Sequence[Sequence[int]], left_out: np.ndarray) -> np.ndarray:
    """Return the rows of passages [n, most]; -1 where there is none."""
    kept = [() if gone else tuple(one)[:MOST_PASSAGES] for one, gone in zip(rows, left_out, strict=True)]
    padded = np.full((len(kept), max((len(one) for one in kept), default=0)), -1)
    for n, one in enumerate(kept):
        padded[n, : len(one)] = one
    return padded


def _loss(weights: "dict[str, torch.nn.Parameter]", batch: _Batch, taught: TaughtCases) -> "torch.Tensor":
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, normalize

    passages = torch.from_numpy(taught.passages)
    inputs = torch.from_numpy(batch.inputs)
    inputs = normalize(inputs + inputs[torch.from_numpy(batch.partners)], dim=1)
    parts = weights["attention"].exp()
    total = parts[INPUT] * inputs
    for rows, place in ((batch.context, CONTEXT), (batch.output, OUTPUT)):
        if rows.shape[1]:
            known = torch.from_numpy(rows >= 0)
            values = passages[torch.from_numpy(np.maximum(rows, 0))]
            scores = parts[SHARPNESS] * torch.einsum("npd,nd->np", values, inputs)
            share = torch.softmax(scores.masked_fill(~known, -1e9), 1)
            value = normalize(torch.einsum("np,npd->nd", share, values), dim=1)
            total = total + parts[place] * value * known.any(1, keepdim=True)
    total = normalize(total, dim=1)
    intentions = normalize(total + total @ weights["intention_in"] @ weights["intention_out"].T, dim=1)
    tasks = torch.from_numpy(taught.tasks)
    tasks = normalize(tasks + tasks @ weights["task_in"] @ weights["task_out"].T, dim=1)
    odds = torch.from_numpy(np.log(batch.rates / (1 - batch.rates)).astype(np.float32))
    scale, rate, bias = weights["logit"]
    cosines = scale * intentions @ tasks.T
    done = torch.from_numpy(batch.done.astype(np.float32))
    entropy = binary_cross_entropy_with_logits(cosines + rate * odds + bias, done, reduction="sum")
    others = torch.logsumexp(cosines.masked_fill(done > 0, -1e9), 1, keepdim=True)
    contrast = (torch.logaddexp(cosines, others) - cosines) * done
    return (entropy + CONTRAST * contrast.sum()) / done.sum()
