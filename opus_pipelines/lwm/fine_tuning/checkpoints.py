"""Checkpoints of trainings: what a training that was interrupted goes on from, in the lake's folder of staged files.

A checkpoint is one safetensors file that is replaced after every epoch in one rename. Its name is a hash of the data
and of the settings of the training, so that one of other cases is never taken up. It outlives a process that was
killed, and goes when the training is published, and when a client is forgotten.

What a `Resumable` training with torch keeps: weights, moments and rates of the optimiser, the place in the schedule,
the states of both random number generators, and the losses so far. So a training that was interrupted ends with the
weights that it would have had.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    import torch


# Files of a folder, as many as one training makes and some more. The oldest goes first, so that trainings that never
# end do not fill the disk.
KEPT = 24
_STATE = "state"  # key of the metadata

logger = logging.getLogger("opus_pipelines.lwm.training")


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one training; `file` need not exist."""

    file: Path

    def read(self) -> tuple[dict[str, np.ndarray], dict[str, str]] | None:
        """Returns the arrays and the texts that were written last.

        Returns None where there is no file. Returns None also where the file is damaged; it is then removed, and a
        warning is logged.
        """
        from safetensors import SafetensorError, safe_open

        if not self.file.is_file():
            return None
        try:
            with safe_open(self.file, "numpy") as opened:
                arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - it is no mapping
                state = json.loads((opened.metadata() or {})[_STATE])
            if state["content"] == _content(arrays, state["texts"]):
                return arrays, state["texts"]
            problem = "its content is not what was written"
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            problem = str(error) or type(error).__name__
        logger.warning("checkpoint %s is damaged (%s); the training starts anew", self.file.name, problem)
        self.remove()
        return None

    def write(self, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
        """Replaces the checkpoint in one rename. Raises LakeError where the disk is full."""
        from safetensors.numpy import save_file

        whole = {name: np.asarray(part, order="C") for name, part in arrays.items()}
        state = json.dumps({"texts": dict(texts), "content": _content(whole, texts)})
        write_atomically(self.file, lambda path: save_file(whole, path, {_STATE: state}))

    def remove(self) -> None:
        """Removes the checkpoint, where there is one."""
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of the parts of one training."""

    folder: Path

    @classmethod
    def of(cls, lake: Lake) -> "Checkpoints":
        """Returns the checkpoints in a lake."""
        return cls(lake.staged / "training")

    def at(self, *content: object) -> Checkpoint:
        """Returns the checkpoint of a training of this data with these settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(self.folder.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
        own = self.folder / f"{make_id('c', *content)}.safetensors"
        for old in [file for file in files if file != own][: max(0, len(files) + 1 - KEPT)]:
            old.unlink(missing_ok=True)
        return Checkpoint(own)

    def remove(self) -> None:
        """Removes all of them: the training has ended."""
        for file in self.folder.glob("*.safetensors"):
            file.unlink(missing_ok=True)


def _content(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> str:
    parts: list[object] = [dict(texts)]
    for name, array in sorted(arrays.items()):
        parts += [name, list(array.shape), str(array.dtype), array.tobytes()]
    return digest(*parts)


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
