"""What the store has of the files of a lake: their addresses for analysts, whether they are there, and sound copies."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from opus_pipelines.lake.object_store.bucket import Bucket
from opus_pipelines.lake.object_store.commits import FILES, key_of, read_files, read_head
from opus_pipelines.lake.object_store.files import download
from opus_pipelines.lake.object_store.folders import Origin, origin_in
from opus_pipelines.lake.object_store.reading import erase_trees
from opus_pipelines.lake.object_store.states import read_state, write_state


def addresses(root: Path, origin: Origin) -> dict[str, str]:
    """Returns the address `s3://…` of every file of the commit that a tree or a working folder is based on."""
    _, files = read_state(root)
    return {path: f"{origin.url}/{key_of(path, entry)}" for path, entry in files.items()}


def missing(root: Path) -> list[tuple[str, str]]:
    """Returns the files of the current commit that the store lacks, or has with another size, each with a reason."""
    bucket = _bucket(root)
    files = read_files(bucket, read_head(bucket)) or {}
    sizes = {one.key: one.size for one in bucket.listed(FILES)}
    found = ((path, entry.bytes, sizes.get(key_of(path, entry))) for path, entry in sorted(files.items()))
    return [
        (path, "is missing in the store" if size is None else f"has {size:,} bytes in the store instead of {stated:,}")
        for path, stated, size in found
        if size != stated
    ]


def mend(root: Path, damaged: Iterable[str], lacking: Iterable[str]) -> list[str]:
    """Fetches damaged files of a working folder again, and lets the next publication send what the store lacks.

    Trees for readers are removed: the next reader makes a new one. The caller does not hold the lock, but takes it
    afterwards. Returns the files that were fetched.
    """
    bucket, (commit, files) = _bucket(root), read_state(root)
    gone = set(lacking)
    wanted = [path for path in damaged if path in files and path not in gone]
    fetched = root / ".staged" / "fetched"
    try:
        download(bucket, files, wanted, fetched)
        for path in wanted:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (fetched / path).replace(root / path)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
    write_state(root, commit, {path: entry for path, entry in files.items() if path not in gone})
    erase_trees(root.parent)
    return wanted


def _bucket(root: Path) -> Bucket:
    origin = origin_in(root)
    assert origin is not None
    return Bucket(origin)
