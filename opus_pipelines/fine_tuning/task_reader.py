"""A task reader: P(task) from the tokens of a request, by a sentence encoder whose upper layers were fine-tuned.

Each task attends over the tokens of the request and is scored by what it finds there (label-wise attention: Mullenbach
et al. 2018, "Explainable prediction of medical codes from clinical text", equations 2 to 4). A mean over all tokens, as
other vectors of texts are, has one place for all that a request asks for; here every task looks at its own words. The
query and the weights of a task begin as the vector of its text, and training adds to them. A task that training did not
see has the vector alone, and the share of all cases that do it.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.embedding.torch_threads import one_thread

if TYPE_CHECKING:
    import torch

TRAINED_LAYERS = 3  # of the encoder, the upper ones; those below stay as they are
MOST_TOKENS = 128  # of a request; what follows is not read
QUERIES, ANSWERS, BIASES, SCALES = "queries", "answers", "biases", "scales"
LAYERS = "layers."  # prefix of the names of the upper layers' weights
AT_ONCE = 64  # requests of a batch


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

    def load(self) -> None:
        """Load the encoder now, before a process is forked that reads with it."""
        self._upper  # noqa: B018 - it is kept

    def probabilities(
        self, texts: Sequence[str], tasks: Sequence[str], vectors: np.ndarray, rates: np.ndarray
    ) -> np.ndarray:
        """Return P(a case with this request does the task) [texts, tasks].

        `vectors` [tasks, d] are those of the tasks' texts, `rates` [tasks] the shares of cases that do each of them.
        """
        import torch

        places = {task: n for n, task in enumerate(self.tasks)}
        rows = np.array([places.get(task, -1) for task in tasks])
        known = rows >= 0
        queries, answers = np.asarray(vectors, np.float32).copy(), np.asarray(vectors, np.float32).copy()
        biases = log_odds(rates)
        for name, found in ((QUERIES, queries), (ANSWERS, answers)):
            found[known] += self.weights[name][rows[known]]
        biases[known] = self.weights[BIASES][rows[known]]
        heads = Heads(*map(torch.from_numpy, (queries, answers, biases, self.weights[SCALES])))
        read: list[np.ndarray] = []
        with one_thread(), torch.inference_mode():
            for begin in range(0, len(texts), AT_ONCE):
                states = self._lower.token_states(texts[begin : begin + AT_ONCE], MOST_TOKENS, TRAINED_LAYERS)
                read.append(torch.sigmoid(heads.logits(*upper_states(self._upper, states))).numpy())
        return np.concatenate(read)

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
