"""Checkpoints of trainings: what a training that was interrupted goes on from, in the lake's folder of staged files.

A checkpoint is one safetensors file that is replaced after every epoch in one rename. Its name is a hash of the data
and of the settings of the training, so that one of other cases is never taken up. It outlives a process that was
killed, and goes when the training is published, and when a client is forgotten.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.layout import Lake

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
