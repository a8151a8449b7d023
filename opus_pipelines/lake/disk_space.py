"""Checks that the disk has enough space for a run before it begins, because a run that fails half-way costs a night."""

import os
import shutil
from pathlib import Path

from opus_pipelines.core.errors import LakeError

MB = 1_000_000


def require_free_space(root: Path, needed: int, reserve_mb: float, what: str) -> None:
    """Raises LakeError where the file system of `root` has less than `needed` bytes plus the reserve free.

    `what` names the run in the message.
    """
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed + reserve_mb * MB:
        raise LakeError(
            f"{what} needs about {needed / MB:,.0f} MB, and {reserve_mb:,.0f} MB are to stay free "
            f"([disk] reserve_mb), but the disk of {root} has {free / MB:,.0f} MB left; nothing was begun: "
            "free some, or keep less ([retention])"
        )


def bytes_below(folder: Path) -> int:
    """Returns the bytes of all files below `folder`, 0 where there is no such folder."""
    return sum(os.lstat(Path(place, name)).st_size for place, _, names in os.walk(folder) for name in names)
