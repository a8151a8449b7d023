"""The commits of a lake in an object store: each lists every file of the lake, and `head.json` names the current one.

Files are objects of their own that nobody changes: their key has the path, the token of the writer that wrote them and
the beginning of their hash, so that no two writers ever write the same key. A commit is visible from the moment in
which the head names it, and the head is replaced only by whoever read the one before.

Removes from the store what no commit has that a reader may still be fetching.
"""

import gzip
import hashlib
import itertools
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.object_store.bucket import Bucket, Listed
from opus_pipelines.lake.object_store.folders import STATE

if TYPE_CHECKING:
    from opus_pipelines.lake.object_store.lease import Lease


_COMMIT_FORMAT = 1
HEAD_FILE = "head.json"
COMMITS = "commits"
FILES = "files"


@dataclass(frozen=True)
class Entry:
    """A file of a commit: size in bytes, SHA-256, time of modification in ns, and the token of who uploaded it."""

    bytes: int
    sha256: str
    mtime_ns: int
    token: int


Files = Mapping[str, Entry]


@dataclass(frozen=True)
class Head:
    """What `head.json` says: the current commit and the token of the lease under which it was written.

    `tag` is the tag of the object, empty before there is one. `commit` is empty before the first commit.
    """

    number: int = 0
    commit: str = ""
    sha256: str = ""
    token: int = 0
    tag: str = ""

    @property
    def name(self) -> str:
        """The name of the commit, as its object has it."""
        return PurePosixPath(self.commit).name.partition(".")[0]


def key_of(path: str, entry: Entry) -> str:
    """Returns the key of the object that holds a file of a commit."""
    place = PurePosixPath(path)
    return str(FILES / place.parent / f"{entry.token}-{entry.sha256[:16]}-{place.name}")


def read_head(bucket: Bucket) -> Head:
    """Returns the head of a lake, one of no commit where the store has none.

    Raises LakeError where a newer version wrote it, or where it is no head.
    """
    stored = bucket.get(HEAD_FILE)
    if stored is None:
        return Head()
    try:
        value = json.loads(stored.data)
        lake_format = value.pop("format")
        head = Head(**value, tag=stored.tag)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise LakeError(f"{HEAD_FILE} of {bucket.origin.url} names no commit; was it edited by hand?") from None
    if lake_format != _COMMIT_FORMAT:
        raise LakeError(
            f"{bucket.origin.url} has format {lake_format}; this version reads {_COMMIT_FORMAT}: install the newer"
        )
    return head


def write_head(bucket: Bucket, before: Head, after: Head) -> Head | None:
    """Replaces the head `before`; returns the new one with its tag, None where another writer replaced it."""
    value = {name: part for name, part in asdict(after).items() if name != "tag"}
    data = json.dumps({**value, "format": _COMMIT_FORMAT}, sort_keys=True).encode()
    tag = bucket.put_over(HEAD_FILE, data, before.tag) if before.tag else bucket.put_new(HEAD_FILE, data)
    return None if tag is None else replace(after, tag=tag)


def read_files(bucket: Bucket, head: Head) -> dict[str, Entry] | None:
    """Returns the files of the commit that a head names, None where the commit is gone from the store.

    Raises LakeError where it does not have the hash that the head states, if the head states one.
    """
    if not head.commit:
        return {}
    stored = bucket.get(head.commit)
    if stored is None:
        return None
    if head.sha256 and hashlib.sha256(stored.data).hexdigest() != head.sha256:
        raise LakeError(f"{head.commit} of {bucket.origin.url} is damaged: it does not have the hash of the head")
    return unpacked_commit(stored.data)[0]


def write_commit(bucket: Bucket, before: Head, files: Files, token: int) -> Head | None:
    """Writes a commit after `before` and lets the head name it; returns the new head.

    Returns None where another writer has replaced the head: the commit is then visible to nobody.
    """
    data = packed_commit(files)
    number = before.number + 1
    commit = f"{COMMITS}/{number:010d}-{token}-{uuid.uuid4().hex[:8]}.json.gz"
    bucket.upload(commit, data)
    return write_head(bucket, before, Head(number, commit, hashlib.sha256(data).hexdigest(), token))


def packed_commit(files: Files, **facts: str) -> bytes:
    """Returns the list of files and further values, such as the name of a commit, as compressed JSON."""
    rows = {path: [one.bytes, one.sha256, one.mtime_ns, one.token] for path, one in sorted(files.items())}
    return gzip.compress(json.dumps({**facts, "files": rows}).encode(), compresslevel=5, mtime=0)


def unpacked_commit(data: bytes) -> tuple[dict[str, Entry], dict[str, str]]:
    """Returns the list of files that `packed` wrote, and the further values."""
    facts: dict[str, Any] = json.loads(gzip.decompress(data))
    return {path: Entry(*row) for path, row in facts.pop("files").items()}, facts


BASE = "base.json.gz"  # a name that says how it is compressed: the search for a client's name reads it


def read_state(root: Path) -> tuple[str, dict[str, Entry]]:
    """Returns the commit on which a folder is based, empty for none, and its files."""
    try:
        files, facts = unpacked_commit((root / STATE / BASE).read_bytes())
    except FileNotFoundError:
        return "", {}
    return facts["commit"], files


def write_state(root: Path, commit: str, files: dict[str, Entry]) -> None:
    """Notes on which commit a folder is based."""
    data = packed_commit(files, commit=commit)
    write_atomically(root / STATE / BASE, lambda path: path.write_bytes(data))


def prune(bucket: Bucket, head: Head, lease: "Lease", grace_seconds: float) -> int:
    """Removes commits that were replaced longer ago than the time of grace, and objects that no other commit has.

    All times are the store's. Objects of a later writer are left alone, so a writer whose lease was taken over removes
    nothing that anybody needs. With a time of grace, nothing is removed while fewer commits can go than must be read
    because they stay: so each commit is read about once, however many the time of grace covers. Returns how many
    objects were removed.
    """
    now = bucket.written_at(HEAD_FILE)
    if now is None or not head.commit:
        return 0
    oldest = now - timedelta(seconds=grace_seconds)
    commits = sorted(bucket.listed(COMMITS), key=lambda one: one.key)
    kept = {head.commit}
    if grace_seconds:  # a list has finer times than the head, so without grace no time is compared
        kept |= {one.key for one, after in itertools.pairwise(commits) if after.written_at > oldest}
    if grace_seconds and len(commits) - len(kept) < len(kept):
        return 0
    needed = set[str]()
    for commit in sorted(kept):
        files = read_files(bucket, head if commit == head.commit else Head(commit=commit)) or {}
        needed.update(key_of(path, entry) for path, entry in files.items())
    lease.require()
    gone = [one.key for one in commits if one.key not in kept and _token_of_commit(one.key) <= lease.token]
    gone += [one.key for one in _unneeded(bucket, needed, lease.token) if not grace_seconds or one.written_at < oldest]
    bucket.delete(gone)
    return len(gone)


def _unneeded(bucket: Bucket, needed: set[str], token: int) -> Iterator[Listed]:
    yield from (one for one in bucket.listed(FILES) if one.key not in needed and _token_of_file(one.key) <= token)


def _token_of_file(key: str) -> int:
    return int(PurePosixPath(key).name.partition("-")[0])


def _token_of_commit(key: str) -> int:
    return int(PurePosixPath(key).name.split("-")[1])
