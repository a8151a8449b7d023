"""Writes a training with torch to its checkpoint after every epoch, and goes on from there where it was interrupted.

What is kept: weights, moments and rates of the optimiser, the place in the schedule, the states of both random number
generators, and the losses so far. So a training that was interrupted ends with the weights that it would have had.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoint

if TYPE_CHECKING:
    import torch

_WEIGHT, _RANDOM, _LOSSES = "weight", "random", "losses"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of AdamW
_PLACE, _RATES, _DRAW = "place", "rates", "draw"


@dataclass
class Resumable:
    """A training by AdamW with a one-cycle schedule.

    Attributes:
        checkpoint: where it is kept; None: nowhere.
        optimizer: the optimiser, which has all weights.
        schedule: its schedule.
        draw: the NumPy generator that the training draws from, None where it draws from torch alone.
        report: called after every epoch with its number, from 1, and the mean loss; for earlier epochs as well.
        losses: the mean loss of every epoch that has ended.
    """

    checkpoint: Checkpoint | None
    optimizer: "torch.optim.AdamW"
    schedule: "torch.optim.lr_scheduler.OneCycleLR"
    draw: np.random.Generator | None = None
    report: Callable[[int, float], None] | None = None
    losses: list[float] = field(default_factory=list)

    def resume(self) -> int:
        """Takes up the checkpoint, where there is one, and returns how many epochs have ended."""
        found = self.checkpoint.read() if self.checkpoint else None
        if found is None:
            return 0
        arrays, texts = found
        self._take(arrays, texts)
        self.losses = arrays[_LOSSES].tolist()
        for epoch, loss in enumerate(self.losses, 1):
            self._tell(epoch, loss)
        return len(self.losses)

    def ended(self, loss: float) -> None:
        """Keeps what an epoch led to, and reports its mean loss."""
        import torch

        self.losses.append(loss)
        if self.checkpoint is not None:
            arrays = {_RANDOM: torch.get_rng_state().numpy(), _LOSSES: np.array(self.losses)}
            for n, weight in enumerate(self._weights()):
                arrays[f"{_WEIGHT} {n}"] = _array(weight)
                arrays |= {f"{name} {n}": _array(part) for name, part in self.optimizer.state[weight].items()}
            rates = [[group["lr"], *group["betas"]] for group in self.optimizer.param_groups]
            texts = {_PLACE: json.dumps(self.schedule.last_epoch), _RATES: json.dumps(rates)}
            if self.draw is not None:
                texts[_DRAW] = json.dumps(self.draw.bit_generator.state)
            self.checkpoint.write(arrays, texts)
        self._tell(len(self.losses), loss)

    def failed(self) -> None:
        """Removes the checkpoint of a training whose loss is not finite: it would fail again."""
        if self.checkpoint is not None:
            self.checkpoint.remove()

    def _take(self, arrays: dict[str, np.ndarray], texts: dict[str, str]) -> None:
        import torch

        for n, weight in enumerate(self._weights()):
            with torch.no_grad():
                weight.copy_(torch.from_numpy(arrays[f"{_WEIGHT} {n}"]))
            if f"{_MOMENTS[0]} {n}" in arrays:
                parts = {name: torch.from_numpy(arrays[f"{name} {n}"]).clone() for name in _MOMENTS}
                on = {name: part if name == _MOMENTS[0] else part.to(weight.device) for name, part in parts.items()}
                self.optimizer.state[weight] = on
        place, rates = json.loads(texts[_PLACE]), json.loads(texts[_RATES])
        self.schedule.load_state_dict(
            self.schedule.state_dict()
            | {"last_epoch": place, "_step_count": place + 1, "_last_lr": [rate for rate, *_ in rates]}
        )
        for group, (rate, *betas) in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"], group["betas"] = rate, tuple(betas)
        torch.set_rng_state(torch.from_numpy(arrays[_RANDOM].copy()))
        if self.draw is not None:
            self.draw.bit_generator.state = json.loads(texts[_DRAW])

    def _weights(self) -> "Sequence[torch.Tensor]":
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def _tell(self, epoch: int, loss: float) -> None:
        if self.report is not None:
            self.report(epoch, loss)


def _array(part: "torch.Tensor") -> np.ndarray:
    return np.asarray(part.detach().cpu().numpy())
