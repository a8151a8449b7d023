"""Checkpoints of trainings: what a training that was interrupted goes on from, in the lake's folder of staged files.

A checkpoint is one file of torch, which is read without running code of it, and replaced after every epoch in one
rename. Its name is a hash of the data and of the settings of the training, so that one of other cases is never taken
up. It outlives a process that was killed, and goes when the training is published, and when a client is forgotten.

What a `Resumable` training keeps: weights, the states of the optimiser, of the schedule and of both random number
generators, and the losses so far. So a training that was interrupted ends with the weights that it would have had.
"""

import io
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    import torch


# Files of a folder, as many as one training makes and some more. The oldest goes first, so that trainings that never
# end do not fill the disk.
KEPT = 24
_ENDING, _DIGEST = ".torch", 32  # of a file; bytes of the hash before its content

logger = logging.getLogger("opus_pipelines.lwm.training")


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one training; `file` need not exist."""

    file: Path

    def read(self) -> dict[str, Any] | None:
        """Returns what was written last.

        Returns None where there is no file. Returns None also where the file is damaged; it is then removed, and a
        warning is logged.
        """
        import torch

        if not self.file.is_file():
            return None
        content = self.file.read_bytes()
        if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            state: dict[str, Any] = torch.load(io.BytesIO(content[_DIGEST:]), weights_only=True)
            return state
        logger.warning("checkpoint %s is damaged; the training starts anew", self.file.name)
        self.remove()
        return None

    def write(self, state: Mapping[str, Any]) -> None:
        """Replaces the checkpoint in one rename. Raises LakeError where the disk is full."""
        import torch

        torch.save(dict(state), whole := io.BytesIO())
        content = sha256(whole.getvalue()).digest() + whole.getvalue()
        write_atomically(self.file, lambda path: path.write_bytes(content))

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
        files = sorted(self.folder.glob(f"*{_ENDING}"), key=lambda file: file.stat().st_mtime)
        own = self.folder / f"{make_id('c', *content)}{_ENDING}"
        for old in [file for file in files if file != own][: max(0, len(files) + 1 - KEPT)]:
            old.unlink(missing_ok=True)
        return Checkpoint(own)

    def remove(self) -> None:
        """Removes all of them: the training has ended."""
        for file in self.folder.glob(f"*{_ENDING}"):
            file.unlink(missing_ok=True)


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
        import torch

        state = self.checkpoint.read() if self.checkpoint else None
        if state is None:
            return 0
        with torch.no_grad():
            for weight, kept in zip(self._weights(), state["weights"], strict=True):
                weight.copy_(kept)
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        if self.draw is not None:
            self.draw.bit_generator.state = json.loads(state["draw"])
        self.losses = state["losses"]
        for epoch, loss in enumerate(self.losses, 1):
            self._tell(epoch, loss)
        return len(self.losses)

    def ended(self, loss: float) -> None:
        """Keeps what an epoch led to, and reports its mean loss."""
        import torch

        self.losses.append(loss)
        if self.checkpoint is not None:
            self.checkpoint.write(
                {
                    "weights": [weight.detach() for weight in self._weights()],
                    "optimizer": self.optimizer.state_dict(),
                    "schedule": self.schedule.state_dict(),
                    "random": torch.get_rng_state(),
                    "draw": json.dumps(self.draw.bit_generator.state) if self.draw is not None else "",
                    "losses": self.losses,
                }
            )
        self._tell(len(self.losses), loss)

    def failed(self) -> None:
        """Removes the checkpoint of a training whose loss is not finite: it would fail again."""
        if self.checkpoint is not None:
            self.checkpoint.remove()

    def _weights(self) -> "Sequence[torch.Tensor]":
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def _tell(self, epoch: int, loss: float) -> None:
        if self.report is not None:
            self.report(epoch, loss)
