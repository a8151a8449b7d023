"""Removes from the store what no commit has that a reader may still be fetching."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from pathlib import PurePosixPath

from opus_pipelines.lake.object_store.bucket import Bucket, Listed
from opus_pipelines.lake.object_store.commits import COMMITS, FILES, HEAD, Head, key_of, read_files
from opus_pipelines.lake.object_store.lease import Lease


def prune(bucket: Bucket, head: Head, lease: Lease, grace_seconds: float) -> int:
    """Removes commits that were replaced longer ago than the time of grace, and objects that no other commit has.

    All times are the store's. Objects of a later writer are left alone, so a writer whose lease was taken over removes
    nothing that anybody needs. With a time of grace, nothing is removed while fewer commits can go than must be read
    because they stay: so each commit is read about once, however many the time of grace covers. Returns how many
    objects were removed.
    """
    now = bucket.written_at(HEAD)
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
