"""The right to write to a lake in an object store: one lease at a time, with a token that grows with every holder.

The holder renews the lease in a thread of its own. Whether a lease has run out is told by the clock of the store alone:
the time at which the lease was written last against the time of an object that is written now. No clock of a machine is
compared with another's. A writer whose lease was taken over cannot publish: the new holder raises the token in the
head, so the conditional write of the old one fails, whatever it believes of its lease.
"""

import json
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.lake.object_store.bucket import Bucket, StoredObject, StoreError
from opus_pipelines.lake.object_store.commits import read_head

LEASE = "lease.json"
_CLOCKS = "clocks"  # objects that are written to read the clock of the store
_MARGIN_SECONDS = 1.0  # the store's times are whole seconds, so their difference is off by less than one
logger = logging.getLogger("opus_pipelines.lake.object_store")


class LeaseLost(LakeError):
    """Another writer has taken over the lease of this one."""


@dataclass
class Lease:
    """A lease that this process takes and holds. `folder` names its working folder on its machine.

    Whoever holds the local lock of that folder may take over a lease of the same folder at once: its holder is dead.
    """

    bucket: Bucket
    folder: str
    on_loss: Callable[[], object] = lambda: None
    token: int = 0
    is_taken_over: bool = False
    _tag: str = ""
    _renewal: int = 0
    _is_lost: bool = False
    _owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    _mutex: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def acquire(self) -> None:
        """Takes the lease, and begins to renew it. `is_taken_over`: its holder before had not given it back.

        Raises LakeHeld where another writer holds it.
        """
        stored = self.bucket.get(LEASE)
        known = _content(stored)
        if stored is not None and not known.get("is_released", False):
            if known.get("folder") != self.folder and not self._has_run_out(known):
                raise LakeHeld(_held_by(self.bucket.origin.url, known))
            self.is_taken_over = True
        if stored is None:
            self._require_conditions()
        before = read_head(self.bucket).token if stored is None else known.get("token", 0)
        self.token = int(before) + 1
        data = self._data()
        tag = self.bucket.put_new(LEASE, data) if stored is None else self.bucket.put_over(LEASE, data, stored.tag)
        if tag is None:
            raise LakeHeld(_held_by(self.bucket.origin.url, _content(self.bucket.get(LEASE))))
        self._tag = tag
        threading.Thread(target=self._renew_until_stopped, name="lease", daemon=True).start()

    def require(self) -> None:
        """Renews the lease now. Raises LeaseLost where another writer has taken it over."""
        self._renew()
        if self._is_lost:
            raise LeaseLost(lost_message(self.bucket.origin.url))

    @property
    def is_lost(self) -> bool:
        """Whether another writer has taken over the lease, as far as this one knows."""
        return self._is_lost

    def stop(self) -> None:
        """Ends the renewal; the lease then runs out by itself."""
        self._stop.set()

    def release(self) -> None:
        """Stops to renew the lease and gives it back; where the store does not answer, it runs out by itself."""
        self.stop()
        with self._mutex:
            if self._is_lost:
                return
            try:
                self.bucket.put_over(LEASE, self._data(is_released=True), self._tag)
            except StoreError as error:
                logger.warning("the lease was not given back and runs out by itself: %s", error)

    def _renew(self) -> None:
        with self._mutex:
            if self._is_lost or self._stop.is_set():
                return
            self._renewal += 1
            tag = self.bucket.put_over(LEASE, self._data(), self._tag)
            if tag is None and (stored := self.bucket.get(LEASE)) is not None and self._wrote(stored):
                tag = self.bucket.put_over(LEASE, self._data(), stored.tag)  # no answer had come to an earlier renewal
            if tag is not None:
                self._tag = tag
                return
            self._is_lost = True
        logger.warning("another writer has taken over %s: this run cannot publish", self.bucket.origin.url)
        self.on_loss()

    def _wrote(self, stored: StoredObject) -> bool:
        return _content(stored).get("owner") == self._owner

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(self.bucket.origin.lease_seconds / 3):
            try:
                self._renew()
            except StoreError as error:
                logger.warning("the lease could not be renewed: %s", error)
            if self._is_lost:
                return

    def _has_run_out(self, known: Mapping[str, Any]) -> bool:
        """Tells by the clock of the store whether a lease has run out."""
        key = f"{_CLOCKS}/{self._owner}"
        self.bucket.upload(key, b"")
        now, written = self.bucket.written_at(key), self.bucket.written_at(LEASE)
        self.bucket.delete([key])
        if now is None or written is None:
            return False
        return (now - written).total_seconds() > float(known.get("seconds", 0)) + _MARGIN_SECONDS

    def _require_conditions(self) -> None:
        """Raises LakeError where the store ignores the conditions of writes, as some S3 servers do without a word."""
        key = f"{_CLOCKS}/{self._owner}"
        tag = self.bucket.put_new(key, b"first")
        is_ignored = self.bucket.put_new(key, b"second") is not None or tag is None
        is_ignored = is_ignored or self.bucket.put_over(key, b"third", '"another"') is not None
        self.bucket.delete([key])
        if is_ignored:
            raise LakeError(
                f"{self.bucket.origin.url}: the store ignores the conditions of writes (If-None-Match, If-Match), so "
                "two writers could overwrite each other; keep the lake in a store that has them"
            )

    def _data(self, is_released: bool = False) -> bytes:
        value = {
            "token": self.token,
            "owner": self._owner,
            "folder": self.folder,
            "host": socket.gethostname(),
            "process": os.getpid(),
            "seconds": self.bucket.origin.lease_seconds,
            "renewal": self._renewal,
            "is_released": is_released,
        }
        return json.dumps(value, sort_keys=True).encode()


def lost_message(url: str) -> str:
    """Returns the line for a writer whose lease another one has taken over."""
    return (
        f"another writer has taken over {url}, because this one did not renew its lease in time; nothing more of this "
        "run is published, and what was published before stays as it is. Run again"
    )


def _content(stored: StoredObject | None) -> dict[str, Any]:
    if stored is None:
        return {}
    try:
        value = json.loads(stored.data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise LakeError(f"{LEASE} is no lease; was it edited by hand?")
    return value


def _held_by(url: str, known: Mapping[str, Any]) -> str:
    who = f"process {known.get('process', 'unknown')} on {known.get('host', 'another machine')}"
    return (
        f"another run ({who}) is writing to {url}; wait for it to end. If it was killed, its lease ends by itself "
        f"within {known.get('seconds', 0):.0f} s"
    )
