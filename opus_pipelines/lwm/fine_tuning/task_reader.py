"""A task reader: which tasks the tokens of a request ask for, by a sentence encoder whose upper layers were fine-tuned.

Each task attends over the tokens of the request and is scored by what it finds there (label-wise attention: Mullenbach
et al. 2018, "Explainable prediction of medical codes from clinical text", equations 2 to 4). A mean over all tokens, as
other vectors of texts are, has one place for all that a request asks for; here every task looks at its own words. The
query and the weights of a task begin as the vector of its text, and training adds to them. Of a task that training did
not see it says nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.language.embedding.torch_threads import one_thread

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
