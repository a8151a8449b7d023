"""Lets one writer at a time change a lake in an object store: it works in its folder, and publishes at the end.

The working folder knows on which commit it is based. Whoever takes the lease brings the folder up to date; what an
earlier run on this machine had published in the folder, but could not bring to the store, is taken along where nobody
else has committed since, and is dropped, and made again by the next run, where somebody has.

A commit costs time and bytes that grow with the files of the lake. So a command of many runs holds one lease for all of
them, and commits less often the longer a commit takes (`Batch`).
"""

import fcntl
import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.lake import lock
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.object_store.bucket import Bucket, StoreError
from opus_pipelines.lake.object_store.commits import (
    Head,
    prune,
    read_files,
    read_head,
    read_state,
    write_commit,
    write_head,
    write_state,
)
from opus_pipelines.lake.object_store.files import (
    ADDED_WITHOUT_LOCK,
    ObjectGone,
    changed,
    download,
    facts_of,
    scan,
    upload,
)
from opus_pipelines.lake.object_store.folders import STATE, origin_in
from opus_pipelines.lake.object_store.lease import Lease, LeaseLost, lost_message
from opus_pipelines.lake.object_store.trees import erase_trees, set_folder_times

_PRUNE_EACH = 10  # commits
_FENCE_ATTEMPTS = 5  # each finds that the holder before has just published
_REST = 9.0  # in a batch, so many times as long as the last commit took passes before the next
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


class Batch:
    """The runs of one process that share a lease. `head` is the commit that the next one follows.

    A commit is due after a run where `_REST` times as long as the last commit took has passed since it ended. So
    commits take at most a tenth of the time, whatever the number of runs and of files.
    """

    def __init__(self, working: Working, lease: Lease, head: Head) -> None:
        self.working, self.lease, self.head = working, lease, head
        self._is_unsure = False
        self._due = time.monotonic()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Publishes at the end of a run where a commit is due; what the store does not take waits for the next."""
        yield
        if time.monotonic() >= self._due:
            try:
                self.push()
            except StoreError as error:
                logger.warning("published later in this command, because the store did not answer: %s", error)

    def push(self) -> None:
        """Publishes what the runs have made so far. Raises LeaseLost where another writer has taken over."""
        began = time.monotonic()
        try:
            if self._is_unsure:
                self._look_again()
            self.head = self.working.push(self.head, self.lease)
            self._is_unsure = False
        except StoreError:
            self._is_unsure = True
            raise
        finally:
            now = time.monotonic()
            self._due = now + _REST * (now - began)

    def _look_again(self) -> None:
        """Finds whether the last commit arrived although no answer to it came."""
        head = read_head(self.working.bucket)
        if head.commit != self.head.commit and head.token == self.lease.token:
            files = read_files(self.working.bucket, head)
            if files is not None:
                write_state(self.working.root, head.commit, files)
                self.head = head


_batches: dict[Path, Batch] = {}


@contextmanager
def shared(root: Path, erase: bool = False, is_batch: bool = False) -> Iterator[None]:
    """Holds the lease of the lake whose working folder is `root`; brings it up to date first, and publishes at the end.

    The caller holds the local lock of the folder. `erase`: what the lake no longer has is removed from the store at
    once, without the time of grace for readers. `is_batch`: the runs of this process within the block share the lease
    (`batch_of`). Where the work fails, what it had published in the folder is published; where it is interrupted, the
    next run does so. Raises LakeHeld where another writer holds the lease, and LeaseLost where another writer took it
    over.
    """
    working = Working(root)
    lease = Lease(working.bucket, working.name, lambda: lock.mark_lost(root, lost_message(working.bucket.origin.url)))
    lease.acquire()
    try:
        head = _fenced(working.bucket, lease) if lease.is_taken_over else read_head(working.bucket)
        if not working.is_adoptable(head):
            working.reset(head)
        batch = Batch(working, lease, head)
        if is_batch:
            _batches[root] = batch
        try:
            yield
        except Exception:
            _push_after_failure(batch)
            raise
        finally:
            _batches.pop(root, None)
        batch.push()
        if erase or batch.head.number // _PRUNE_EACH != head.number // _PRUNE_EACH:
            prune(working.bucket, batch.head, lease, 0.0 if erase else working.bucket.origin.grace_hours * 3600)
        if erase:
            erase_trees(root.parent)
    finally:
        lease.release()


@contextmanager
def writer_batch(root: Path) -> Iterator[None]:
    """Holds the local lock and the lease of a working folder for several runs of this process.

    Raises LakeHeld where another process or another machine writes.
    """
    with lock.batch(root / ".lock", root), shared(root, is_batch=True):
        yield


def batch_of(root: Path) -> Batch | None:
    """Returns the batch of this process that holds the lease of a working folder."""
    return _batches.get(root)


def refresh(root: Path) -> None:
    """Brings a working folder up to date where no process of this machine writes in it, without taking the lease.

    A folder with changes that are not in the store yet is left as it is.
    """
    working = Working(root)
    head = read_head(working.bucket)
    with _nobody_writes(root) as is_ours:  # where one does, its folder is newer than the store
        if is_ours and not working.is_adoptable(head) and not working.has_changes():
            working.reset(head)


def is_ahead_of_store(root: Path) -> bool:
    """Tells whether a working folder, in which no process of this machine writes, holds what its commit lacks.

    Rows of runs do not count: they are written after the commit of their run, and come with the next one.
    """
    with _nobody_writes(root) as is_ours:
        if not is_ours:
            return False
        differ, removed = changed(scan(root), read_state(root)[1])
        return not all(path.startswith(ADDED_WITHOUT_LOCK) for path in (*differ, *removed))


@contextmanager
def _nobody_writes(root: Path) -> Iterator[bool]:
    """Holds the local lock of a working folder where it is free, and tells whether it was."""
    handle = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _fenced(bucket: Bucket, lease: Lease) -> Head:
    """Raises the token of the head, so that the holder before, which may still live, can replace it no more."""
    for _ in range(_FENCE_ATTEMPTS):
        head = read_head(bucket)
        if (fenced := write_head(bucket, head, replace(head, token=lease.token))) is not None:
            return fenced
    raise LeaseLost(lost_message(bucket.origin.url))


def _push_after_failure(batch: Batch) -> None:
    try:
        batch.push()
    except OpusError as error:
        logger.warning("what the failed run had made was not brought to the store: %s", error)
