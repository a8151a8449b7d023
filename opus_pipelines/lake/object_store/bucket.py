"""Reads and writes the objects of one lake in a bucket. Every error of the store becomes one LakeError.

Conditional writes are the only way in which an object is replaced: `put_new` and `put_over` say whether the condition
held, also where the answer to the first attempt was lost and a second attempt found the object changed by the first.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.formatting import clean
from opus_pipelines.lake.object_store.folders import Origin

if TYPE_CHECKING:
    from obstore.store import S3Store

PART_BYTES = 16 << 20  # larger files travel in parts of this size
_REQUEST_SECONDS = 60.0  # a request without an answer is given up after so long, and sent again


class StoreError(LakeError):
    """The object store did not do what was asked, also not when it was asked again."""


@dataclass(frozen=True)
class StoredObject:
    """The content of an object and its tag, by which the next write says what it replaces."""

    data: bytes
    tag: str


@dataclass(frozen=True)
class Listed:
    """An object in a list: its key, its size in bytes, and when it was written by the clock of the store."""

    key: str
    size: int
    written_at: datetime


@dataclass(frozen=True)
class Bucket:
    """The objects below the prefix of a lake."""

    origin: Origin

    def get(self, key: str) -> StoredObject | None:
        """Returns an object, None where there is none."""
        import obstore

        with self._named("reading", key):
            try:
                answer = obstore.get(self._store, key)
                return StoredObject(bytes(answer.bytes()), str(answer.meta["e_tag"]))
            except FileNotFoundError:
                return None

    def download(self, key: str, size: int, to: Path) -> bool:
        """Writes an object of this size to a file, in parts; tells whether there is such an object."""
        import obstore

        with self._named("reading", key), to.open("wb") as file:
            try:
                for start in range(0, max(size, 1), PART_BYTES):
                    length = min(PART_BYTES, size - start)
                    part = obstore.get_range(self._store, key, start=start, length=length) if length else b""
                    file.write(part)
            except FileNotFoundError:
                return False
        return True

    def upload(self, key: str, content: bytes | Path) -> None:
        """Writes an object, whatever was there before; a file in parts where it is large."""
        import obstore

        with self._named("writing", key):
            obstore.put(self._store, key, content, chunk_size=PART_BYTES, max_concurrency=4)

    def put_new(self, key: str, data: bytes) -> str | None:
        """Writes an object that is not there yet; returns its tag, None where it is there with another content."""
        return self._put_if(key, data, "create")

    def put_over(self, key: str, data: bytes, tag: str) -> str | None:
        """Replaces the object with this tag; returns the new tag, None where it has another tag by now."""
        return self._put_if(key, data, {"e_tag": tag})

    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects; those that are gone already do not matter."""
        import obstore

        for start in range(0, len(keys), 1000):
            with self._named("removing", keys[start]):
                obstore.delete(self._store, list(keys[start : start + 1000]))

    def listed(self, below: str) -> Iterator[Listed]:
        """Yields the objects below a prefix."""
        import obstore

        with self._named("listing", below):
            for some in obstore.list(self._store, below):
                yield from (Listed(one["path"], one["size"], one["last_modified"]) for one in some)

    def written_at(self, key: str) -> datetime | None:
        """Returns when an object was written by the clock of the store, None where there is none."""
        import obstore

        with self._named("looking at", key):
            try:
                return obstore.head(self._store, key)["last_modified"]
            except FileNotFoundError:
                return None

    def _put_if(self, key: str, data: bytes, mode: Any) -> str | None:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._named("writing", key):
            try:
                return str(obstore.put(self._store, key, data, mode=mode, use_multipart=False)["e_tag"])
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                pass
            except Exception:  # the answer may have been lost on its way back, after the store had written
                if (own := self._own_tag(key, data)) is not None:
                    return own
                raise
        return self._own_tag(key, data)

    def _own_tag(self, key: str, data: bytes) -> str | None:
        """Returns the tag of an object where it has this content. No two writers write the same content."""
        found = self.get(key)
        return found.tag if found is not None and found.data == data else None

    @cached_property
    def _store(self) -> "S3Store":
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        origin = self.origin
        stated: Any = {"endpoint": origin.endpoint} if origin.endpoint else {}
        try:
            return S3Store(
                origin.bucket,
                prefix=origin.prefix or None,
                checksum_algorithm="SHA256",
                client_options={
                    "allow_http": origin.endpoint.startswith("http://"),
                    "timeout": timedelta(seconds=min(_REQUEST_SECONDS, max(1.0, origin.retry_seconds))),
                    "connect_timeout": timedelta(seconds=5),
                },
                retry_config={
                    "max_retries": 1000,
                    "retry_timeout": timedelta(seconds=origin.retry_seconds),
                    "backoff": {
                        "init_backoff": timedelta(milliseconds=100),
                        "max_backoff": timedelta(seconds=5),
                        "base": 2,
                    },
                },
                **stated,
            )
        except BaseError as error:
            raise StoreError(f"{origin.url} cannot be opened: {_first_line(error)}") from None

    @contextmanager
    def _named(self, doing: str, key: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, PermissionError, ValueError) as error:
            raise StoreError(
                f"{doing} {key or 'the objects'} of {self.origin.url} failed: {_first_line(error)}. "
                "What was published before stays as it is; run again when the store answers"
            ) from None


def _first_line(error: Exception) -> str:
    return clean(str(error).strip().partition("\n")[0])[:300]
