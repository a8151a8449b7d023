"""Makes everything again in an empty lake and compares it with what is published (`opus rebuild --full`).

The empty lake is in the folder of staged files. Nothing that is published is used or changed; only the kept files (id
ledger, λ) are an input. The same inputs must give the same content. When they do not, nothing is published, and the
datasets that differ are named.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.schemas import SOURCES
from opus_pipelines.lake import file_lists
from opus_pipelines.lake.layout import PART, Lake, write_atomically
from opus_pipelines.language.embedding.cache import adopt_vectors
from opus_pipelines.wkg.task_matching.resolve import MERGES

_PARTS = ("history/rejects/*/*", "history/implementations/*/*", "aggregates/*/*")
logger = logging.getLogger(__name__)
_VECTOR_TOLERANCE = 1e-5  # a batch's make-up moves a vector's last digits: datasets.md, "The same bytes"


def lake_of(home: Lake) -> Lake:
    """Returns the lake in which everything of `home` is made again."""
    return Lake(home.staged / "full")


def begin_remake(home: Lake) -> Lake:
    """Makes an empty lake in the staged folder of `home`, with the kept files of `home`.

    What an earlier attempt left there is removed. Files that are computed are left out: vectors, and the outcome of
    task resolution.
    """
    scratch = lake_of(home)
    shutil.rmtree(scratch.root, ignore_errors=True)
    kept = (
        f
        for place in (home.kept, home.folder(SOURCES))
        for f in place.glob("*")
        if f.is_file() and f.name not in (MERGES, file_lists.NAME)
    )
    for file in kept:
        copy = scratch.root / file.relative_to(home.root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)  # with its mode: the private key is the owner's alone
    return scratch


def compare_remade(scratch: Lake, home: Lake, snapshot: str, staged: Path) -> None:
    """Compares what was made again with what is published; raises CheckFailed naming what differs."""
    pairs = [*_parts(scratch, home), (staged, home.snapshot_folder(snapshot))]
    if different := sorted(
        place for made, published in pairs if published.exists() for place in _differences(made, published, home.root)
    ):
        raise CheckFailed(
            f"the same inputs gave other content than what is published in {len(different)} files: "
            f"{', '.join(different[:5])}. Nothing was changed: compare them with a backup; without one, "
            f"remove the folders named and run `opus rebuild`"
        )
    published = sum(place.exists() for _, place in pairs)
    logger.info(
        "everything was made again: %s of %s parts were published before, with the same content", published, len(pairs)
    )


def adopt(scratch: Lake, home: Lake) -> None:
    """Publishes the parts that `home` does not have yet, and its history/sources."""
    for made, published in _parts(scratch, home):
        home.publish(made, published)
    for file in sorted(f for f in scratch.kept.glob("*") if f.is_file() and f.name != file_lists.NAME):
        _replace(home, home.kept / file.name, file)
    adopt_vectors(scratch.kept / "embeddings", home.kept / "embeddings")
    sources = scratch.folder(SOURCES) / PART
    if sources.is_file():
        _replace(home, home.folder(SOURCES) / PART, sources, copy=False)


def _replace(home: Lake, path: Path, by: Path, copy: bool = True) -> None:
    if path.is_file() and path.read_bytes() == by.read_bytes():
        return
    if by.name == MERGES:  # it is computed again where it is damaged
        write_atomically(path, lambda temporary: shutil.copy(by, temporary))
    else:
        home.replace(path, lambda temporary: shutil.copy(by, temporary), copy)


def _parts(scratch: Lake, home: Lake) -> list[tuple[Path, Path]]:
    made = sorted(folder for pattern in _PARTS for folder in scratch.root.glob(pattern))
    return [(folder, home.root / folder.relative_to(scratch.root)) for folder in made]


def _differences(made: Path, published: Path, root: Path) -> Iterator[str]:
    """Yields the tables with different content, as paths in the lake.

    The index is not compared, because it follows from the vectors; nor is the manifest, which has times.
    """
    names = {f.relative_to(folder) for folder in (made, published) for f in folder.rglob("*.parquet")}
    for name in sorted(names):
        files = [folder / name for folder in (made, published)]
        if not all(f.is_file() for f in files) or not _same(files):
            yield (published / name).relative_to(root).as_posix()


def _same(files: Iterable[Path]) -> bool:
    first, second = files
    if first.read_bytes() == second.read_bytes():
        return True
    try:
        one, other = (pq.ParquetFile(file).read() for file in (first, second))
    except (pa.ArrowInvalid, OSError):
        return False  # one of them is no Parquet file any more
    return (
        one.schema == other.schema
        and one.num_rows == other.num_rows
        and all(_columns_equal(one[c], other[c]) for c in one.column_names)
    )


def _columns_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if not pa.types.is_fixed_size_list(one.type):
        return one.equals(other)
    import numpy as np

    flat = [column.combine_chunks().flatten().to_numpy(zero_copy_only=False) for column in (one, other)]
    return bool(np.abs(flat[0] - flat[1]).max(initial=0) <= _VECTOR_TOLERANCE)
