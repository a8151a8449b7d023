"""Fits the upper layers of a sentence encoder on pairs of texts that belong together, with hard negatives.

The loss is that of Henderson et al. 2017 ("Efficient natural language response suggestion for Smart Reply", section 4)
with the wrong texts of Karpukhin et al. 2020 ("Dense passage retrieval", section 3.2): the cross-entropy of the right
text among all texts of the batch, which are the right and the wrong ones of all its questions. The lower layers stay as
they are, so their states are computed once.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.language.embedding.torch_threads import one_thread
from opus_pipelines.lwm.fine_tuning.task_reader import upper_states
from opus_pipelines.lwm.fine_tuning.training import FineTuningError

if TYPE_CHECKING:
    import torch

MOST_TOKENS = 64  # of a text; what follows is not read
SEED = 0
WARM_UP = 0.1  # share of the steps in which the rate rises
SCHEDULED = 20  # steps that the schedule has at least: with fewer, no step would be left in which the rate rises
STEEPEST = 1.0  # norm of a gradient


@dataclass(frozen=True)
class TextPairs:
    """Questions, the texts that may answer them, and which one does.

    Attributes:
        questions: what is asked.
        answers: all texts that may answer.
        right: place of the right answer of each question [questions].
        wrong: places of hard negatives of each question [questions, w]; none may equal the right text.
        importance: weight of each question in the loss [questions].
    """

    questions: Sequence[str]
    answers: Sequence[str]
    right: np.ndarray
    wrong: np.ndarray
    importance: np.ndarray


@dataclass(frozen=True)
class PairTraining:
    """How pairs are learnt: layers that change, passes, questions of a batch, wrong answers of each, and the loss."""

    layers: int = 2
    epochs: int = 2
    batch: int = 16
    negatives: int = 3
    rate: float = 3e-5
    scale: float = 20.0  # of the cosines in the softmax


def fit_pairs(
    pairs: TextPairs,
    encoder: Encoder,
    how: PairTraining | None = None,
    report: Callable[[int, float], None] | None = None,
) -> dict[str, np.ndarray]:
    """Returns the weights of the upper layers by the names that the checkpoint gives them.

    `report` is called after each epoch with its number, from 1, and the mean loss in nats of a question. The same pairs
    give the same weights. Raises FineTuningError where there is no pair or the loss is not finite, and SettingsError
    where the encoder cannot be fine-tuned.
    """
    if not len(pairs.questions):
        raise FineTuningError("no pair of a question and its answer: there is nothing to fine-tune the encoder on")
    with one_thread():  # the order of sums, and so the weights, would depend on the number of threads
        return _fitted(pairs, encoder, how or PairTraining(), report)


def _fitted(
    pairs: TextPairs, encoder: Encoder, how: PairTraining, report: Callable[[int, float], None] | None
) -> dict[str, np.ndarray]:
    import torch

    torch.manual_seed(SEED)
    draw = np.random.default_rng(SEED)
    layers = deepcopy(encoder.layers(how.layers)).train()
    texts = list(dict.fromkeys([*pairs.questions, *pairs.answers]))
    states = dict(zip(texts, encoder.token_states(texts, MOST_TOKENS, how.layers), strict=True))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=how.rate, weight_decay=0.01)
    batches = -(-len(pairs.questions) // how.batch)
    steps = max(SCHEDULED, how.epochs * batches)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, how.rate, total_steps=steps, pct_start=WARM_UP)
    for epoch in range(1, how.epochs + 1):
        total = 0.0
        order = draw.permutation(len(pairs.questions))
        for begin in range(0, len(order), how.batch):
            rows = order[begin : begin + how.batch]
            loss = _loss(pairs, rows, (layers, states), how, draw)
            if not torch.isfinite(loss):
                raise FineTuningError(f"the loss is not finite in epoch {epoch}; nothing is written")
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(layers.parameters(), STEEPEST)
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        if report is not None:
            report(epoch, total / len(order))
    first = len(encoder.layers(0)) - how.layers
    found = {}
    for name, part in layers.state_dict().items():
        number, _, rest = name.partition(".")
        found[f"encoder.layer.{first + int(number)}.{rest}"] = part.numpy().copy()
    return found


def _loss(
    pairs: TextPairs,
    rows: np.ndarray,
    model: "tuple[torch.nn.ModuleList, Mapping[str, np.ndarray]]",
    how: PairTraining,
    draw: np.random.Generator,
) -> "torch.Tensor":
    """The mean cross-entropy of the right answers of some questions, weighted by their importance."""
    import torch

    layers, states = model
    answers = list(dict.fromkeys(int(place) for place in pairs.right[rows]))
    for row in rows:
        if pairs.wrong.shape[1]:
            answers += draw.choice(pairs.wrong[row], min(how.negatives, pairs.wrong.shape[1]), replace=False).tolist()
    answers = list(dict.fromkeys(answers))
    texts = [pairs.questions[row] for row in rows] + [pairs.answers[place] for place in answers]
    tokens, mask = upper_states(layers, [states[text] for text in texts])
    summed = (tokens * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    vectors = torch.nn.functional.normalize(summed, dim=1)
    cosines = vectors[: len(rows)] @ vectors[len(rows) :].T
    wanted = torch.tensor([answers.index(int(place)) for place in pairs.right[rows]])
    losses = torch.nn.functional.cross_entropy(how.scale * cosines, wanted, reduction="none")
    weights = torch.from_numpy(pairs.importance[rows].astype(np.float32))
    return (losses * weights).sum() / weights.sum()
