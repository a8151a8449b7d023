"""Lets one writer at a time change a lake in an object store: it works in its folder, and publishes at the end.

The working folder knows on which commit it is based. Whoever takes the lease brings the folder up to date; what an
earlier run on this machine had published in the folder, but could not bring to the store, is taken along where nobody
else has committed since, and is dropped, and made again by the next run, where somebody has.
"""

import fcntl
import logging
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.lock import mark_lost
from opus_pipelines.lake.object_store.bucket import Bucket
from opus_pipelines.lake.object_store.commits import (
    Head,
    read_files,
    read_head,
    write_commit,
    write_head,
)
from opus_pipelines.lake.object_store.files import (
    ADDED_WITHOUT_LOCK,
    STATE,
    ObjectGone,
    changed,
    download,
    facts_of,
    scan,
    upload,
)
from opus_pipelines.lake.object_store.folders import origin_in
from opus_pipelines.lake.object_store.lease import Lease, LeaseLost, lost_message
from opus_pipelines.lake.object_store.pruning import prune
from opus_pipelines.lake.object_store.reading import erase_trees, set_folder_times
from opus_pipelines.lake.object_store.states import read_state, write_state

_PRUNE_EACH = 10  # commits
_FENCE_ATTEMPTS = 5  # each finds that the holder before has just published
logger = logging.getLogger("opus_pipelines.lake.object_store")


class Working:
    """A working folder and the commit on which it is based."""

    def __init__(self, root: Path) -> None:
        origin = origin_in(root)
        if origin is None:
            raise LakeError(f"{root} belongs to no object store")
        self.root, self.bucket = root, Bucket(origin)
        self._state = root / STATE

    @property
    def name(self) -> str:
        """The name of this folder on this machine, which no other folder has."""
        file = self._state / "name"
        if not file.is_file():
            write_atomically(file, lambda path: path.write_text(uuid.uuid4().hex, "ascii"))
        return f"{socket.gethostname()}:{file.read_text('ascii')}"

    def is_adoptable(self, head: Head) -> bool:
        """Tells whether what the folder holds follows from the current commit."""
        return not self._resetting.exists() and read_state(self.root)[0] == head.commit

    def has_changes(self) -> bool:
        """Tells whether the folder holds what its commit does not have."""
        differ, removed = changed(scan(self.root), read_state(self.root)[1])
        return bool(differ or removed)

    def reset(self, head: Head) -> None:
        """Brings the folder to a commit; rows of runs that the commit does not have are kept."""
        files = read_files(self.bucket, head)
        if files is None:
            raise ObjectGone(f"{head.commit} of {self.bucket.origin.url} is missing in the store")
        fetched = self._state / "fetched"
        shutil.rmtree(fetched, ignore_errors=True)
        now = scan(self.root)
        wanted = [path for path, entry in files.items() if now.get(path) != facts_of(entry)]
        download(self.bucket, files, wanted, fetched)
        self._resetting.parent.mkdir(parents=True, exist_ok=True)
        self._resetting.touch()
        for path in sorted(wanted, key=lambda path: path.endswith("current.json")):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (fetched / path).replace(self.root / path)
        for path in sorted(path for path in now if path not in files and not path.startswith(ADDED_WITHOUT_LOCK)):
            (self.root / path).unlink(missing_ok=True)
            with suppress(OSError):  # a folder that is not empty stays
                for folder in (self.root / path).parents[: len(Path(path).parts) - 1]:
                    folder.rmdir()
        set_folder_times(self.root, files)
        write_state(self.root, head.commit, files)
        self._resetting.unlink()
        shutil.rmtree(fetched, ignore_errors=True)

    def push(self, head: Head, lease: Lease) -> Head:
        """Publishes what differs from the base as one commit after `head`; returns the head that is then current.

        Raises LeaseLost where another writer has taken over.
        """
        _, base = read_state(self.root)
        differ, removed = changed(scan(self.root), base)
        if not differ and not removed:
            return head
        entries = upload(self.bucket, self.root, differ, base, lease.token)
        files = {path: entry for path, entry in base.items() if path not in removed} | entries
        if not removed and all(path in base and base[path].sha256 == one.sha256 for path, one in entries.items()):
            write_state(self.root, head.commit, files)  # times alone
            return head
        lease.require()
        after = write_commit(self.bucket, head, files, lease.token)
        if after is None:
            raise LeaseLost(
                f"another writer has published to {self.bucket.origin.url} meanwhile; what was published before stays "
                "as it is. Run again"
            )
        write_state(self.root, after.commit, files)
        logger.info(
            "%s: commit %s with %s files, %s of them new",
            lease.bucket.origin.url,
            after.number,
            len(files),
            len(entries),
        )
        return after

    @property
    def _resetting(self) -> Path:
        return self._state / "resetting"


@contextmanager
def shared(root: Path, erase: bool = False) -> Iterator[None]:
    """Holds the lease of the lake whose working folder is `root`; brings it up to date first, and publishes at the end.

    The caller holds the local lock of the folder. `erase`: what the lake no longer has is removed from the store at
    once, without the time of grace for readers. Where the work fails, what it had published in the folder is published;
    where it is interrupted, the next run does so. Raises LakeHeld where another writer holds the lease, and LeaseLost
    where another writer took it over.
    """
    working = Working(root)
    lease = Lease(working.bucket, working.name, lambda: mark_lost(root, lost_message(working.bucket.origin.url)))
    lease.acquire()
    try:
        head = _fenced(working.bucket, lease) if lease.is_taken_over else read_head(working.bucket)
        if not working.is_adoptable(head):
            working.reset(head)
        try:
            yield
        except Exception:
            _push_after_failure(working, head, lease)
            raise
        after = working.push(head, lease)
        if erase or (after.number != head.number and after.number % _PRUNE_EACH == 0):
            prune(working.bucket, after, lease, 0.0 if erase else working.bucket.origin.grace_hours * 3600)
        if erase:
            erase_trees(root.parent)
    finally:
        lease.release()


def refresh(root: Path) -> None:
    """Brings a working folder up to date where no process of this machine writes in it, without taking the lease.

    A folder with changes that are not in the store yet is left as it is.
    """
    working = Working(root)
    head = read_head(working.bucket)
    handle = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not working.is_adoptable(head) and not working.has_changes():
            working.reset(head)
    except BlockingIOError:
        pass  # a run of this machine writes, and its folder is newer than the store
    finally:
        os.close(handle)


def _fenced(bucket: Bucket, lease: Lease) -> Head:
    """Raises the token of the head, so that the holder before, which may still live, can replace it no more."""
    for _ in range(_FENCE_ATTEMPTS):
        head = read_head(bucket)
        if (fenced := write_head(bucket, head, replace(head, token=lease.token))) is not None:
            return fenced
    raise LeaseLost(lost_message(bucket.origin.url))


def _push_after_failure(working: Working, head: Head, lease: Lease) -> None:
    try:
        working.push(head, lease)
    except OpusError as error:
        logger.warning("what the failed run had made was not brought to the store: %s", error)
