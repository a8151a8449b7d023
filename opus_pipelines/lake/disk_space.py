"""Whether the disk has room for a run, asked before its work begins: a run that dies half-way costs a night."""

import os
import shutil
from pathlib import Path

from opus_pipelines.core.errors import LakeError

MB = 1_000_000


def require(root: Path, needed: int, reserve_mb: float, what: str) -> None:
    """Raises LakeError where the file system of `root` has not `needed` bytes and the reserve free; `what`: the run,
    for the message.
    """
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed + reserve_mb * MB:
        raise LakeError(
            f"{what} needs about {needed / MB:,.0f} MB, and {reserve_mb:,.0f} MB are to stay free ([disk] reserve_mb), but the disk of "
            f"{root} has {free / MB:,.0f} MB left; nothing was begun: free some, or keep less ([retention])"
        )


def size_of(folder: Path) -> int:
    """Bytes of every file below `folder`; 0 where it is not."""
    return sum(os.lstat(Path(place, name)).st_size for place, _, names in os.walk(folder) for name in names)
