"""The folders of this machine for a lake in an object store: one in which writers work, and trees for readers.

`<base>/<name>/work` is a lake as any other; whoever holds its lock and the lease of the store may write to it. What
readers see lies in `<base>/<name>/trees/<commit>`, one tree for each commit, which nobody changes.
"""

import os
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings_sections import ObjectStore
from opus_pipelines.lake.atomic_files import read_json, write_json

ORIGIN = ".origin.json"  # in a working folder: which object store it belongs to
STATE = ".object_store"  # a folder of a working folder: which commit it is based on
_URL = re.compile(r"s3:/{1,2}(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")


@dataclass(frozen=True)
class Origin:
    """An object store and how it is used. It holds no credentials, which stand in the environment alone."""

    bucket: str
    prefix: str
    endpoint: str
    lease_seconds: float
    grace_hours: float
    parallel: int
    retry_seconds: float

    @property
    def url(self) -> str:
        """The address of the lake."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def is_remote(lake: Path | str) -> bool:
    """Tells whether the path of a lake is an address in an object store. A `Path` has lost the second slash of it."""
    return str(lake).startswith("s3:/")


def origin_of(lake: Path | str, settings: ObjectStore) -> Origin:
    """Returns the store of an address. Raises LakeError where it names no bucket."""
    match = _URL.fullmatch(str(lake))
    prefix = ((match and match["prefix"]) or "").strip("/")
    if match is None or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise LakeError(f"{lake} is no address of a lake in an object store; write s3://bucket/prefix")
    options = settings.model_dump(include={"lease_seconds", "grace_hours", "parallel", "retry_seconds"})
    stated = (os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = settings.endpoint or next(filter(None, stated), "")
    if "@" in endpoint:
        raise LakeError("the address of the object store holds credentials; they stand in variables of their own")
    return Origin(match["bucket"], prefix, endpoint, **options)


def folder_of(origin: Origin, base: Path) -> Path:
    """Returns the folder of this machine for a lake in an object store."""
    return base / f"{origin.bucket}-{digest([origin.url, origin.endpoint])[:12]}"


def origin_in(root: Path) -> Origin | None:
    """Returns the store that a lake's folder belongs to, None for a lake that lies in its folder alone."""
    known = read_json(root / ORIGIN)
    try:
        return None if known is None else Origin(**known)
    except TypeError:
        raise LakeError(f"{root / ORIGIN} names no object store; remove the folder, it is made again") from None


def origin_of_root(root: Path) -> Origin | None:
    """Returns the store of a working folder or of a tree for readers, None for a lake that lies in its folder alone."""
    return origin_in(root) or (origin_in(root.parent.parent / "work") if root.parent.name == "trees" else None)


def local_root(lake: Path | str, settings: ObjectStore, reads_only: bool = False) -> Path:
    """Returns the folder in which a command finds the lake of an address, brought up to date from the store.

    `reads_only`: a tree of the latest commit, which stays as it is while this process lives. Otherwise the working
    folder. Raises LakeError where the store cannot be reached.
    """
    if find_spec("obstore") is None:
        raise LakeError(f"{lake}: an object store needs the extra: pip install 'opus-pipelines[object-store]'")
    origin = origin_of(lake, settings)
    folder = folder_of(origin, settings.working_folder.expanduser().absolute())
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # it holds the data of clients
    work = folder / "work"
    work.mkdir(exist_ok=True)
    if origin_in(work) != origin:
        write_json(work / ORIGIN, asdict(origin))
    if reads_only:
        from opus_pipelines.lake.object_store.trees import current_tree

        return current_tree(origin, folder)
    from opus_pipelines.lake.object_store.writing import refresh

    refresh(work)
    return work


def root_without_store(lake: Path | str, settings: ObjectStore) -> Path:
    """Returns the working folder of an address, as it is; nothing is asked of the store."""
    return folder_of(origin_of(lake, settings), settings.working_folder.expanduser().absolute()) / "work"


def has_unpublished(root: Path) -> bool:
    """Tells whether a working folder holds what its store lacks, because an earlier run could not bring it there.

    False for any other folder, and while a process of this machine writes, which publishes at its end.
    """
    if not (root / ORIGIN).is_file():
        return False
    from opus_pipelines.lake.object_store.writing import is_ahead_of_store

    return is_ahead_of_store(root)


def published_to_store(root: Path, erase: bool) -> AbstractContextManager[None]:
    """Returns a context at whose end the lake of a working folder is published; of any other folder one of no effect.

    The caller holds the local lock of the folder. `erase`: as in `writing.shared`. Within a batch of this process the
    lake is published where that is due.
    """
    if not (root / ORIGIN).is_file():
        return nullcontext()
    from opus_pipelines.lake.object_store.writing import batch_of, shared

    if (batch := batch_of(root)) is None:
        return shared(root, erase)
    if erase:
        raise LakeError(f"{root}: nothing is erased from the store within a batch of runs")
    return batch.run()


def batch_to_store(root: Path) -> AbstractContextManager[None]:
    """Returns a context within which the runs of this process share one lock and one lease of a working folder.

    They are published together, as `writing.Batch` says. For any other folder the context has no effect.
    """
    if not (root / ORIGIN).is_file():
        return nullcontext()
    from opus_pipelines.lake.object_store.writing import writer_batch

    return writer_batch(root)
