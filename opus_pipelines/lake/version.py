"""Reads and writes the format version of a lake, and which input folders it was made from.

Reads and writes the format version of a lake. Older formats are taken over with a log line, newer ones are refused.
`<lake>/lake.json` has `format`, the layout of folders, pointers and kept files, and `schemas`, a hash of every
dataset's columns and of where the typed files without rows are. A lake without that file has format 1. Tables with
other columns need no migration: a missing column reads as NULL, by the typed files without rows that `write_empty`
writes.

Keeps in the lake which history and intakes folders it was made from, for commands that state none.
"""

import io
from functools import cache, partial
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.lake.atomic_files import read_json, write_atomically, write_json

FORMAT = 3  # raise it also where a file that is kept gets a field without which an older version misreads it
_NAME = "lake.json"
# A lake without lake.json has one of these folders; a folder without them is no lake yet.
_FOLDERS_OF_A_LAKE = ("wkg", "history", ".empty")


def schemas_hash() -> str:
    """Returns the hash of every dataset's columns and types, and of the place of its empty typed file."""
    return digest([(name, dataset.declaration, dataset.empty_file) for name, dataset in sorted(DATASETS.items())])


def format_of(root: Path) -> int | None:
    """Returns the format of the lake at `root`, or None where there is no lake yet.

    Raises LakeError where this version does not know the format.
    """
    known = read_json(root / _NAME)
    if known is None:
        return 1 if any((root / name).exists() for name in _FOLDERS_OF_A_LAKE) else None
    lake_format = known.get("format")
    if not isinstance(lake_format, int):
        raise LakeError(f"{root / _NAME} names no format; was it edited by hand?")
    if lake_format > FORMAT:
        raise LakeError(
            f"{root} is a lake of format {lake_format}; this version reads up to {FORMAT}: "
            f"install opus-pipelines {known.get('version', 'of that version')} or newer; nothing was written"
        )
    return lake_format


def has_these_columns(root: Path) -> bool:
    """Returns whether the empty typed files of the lake match the datasets that this version declares."""
    return (read_json(root / _NAME) or {}).get("schemas") == schemas_hash()


def stamp(root: Path, with_columns: bool = True) -> None:
    """Writes the format of this version to `lake.json`; `with_columns` says that the empty typed files are there."""
    from importlib.metadata import version  # it brings the e-mail parser, and most commands stamp nothing

    stated = {"format": FORMAT, "schemas": schemas_hash() if with_columns else None}
    write_json(root / _NAME, stated | {"version": version("opus-pipelines")})


def write_empty(folder: Path) -> None:
    """Writes an empty typed file for every dataset, named like its view, in folders of its partitions."""
    for file, content in _contents().items():
        write_atomically(folder / file, partial(Path.write_bytes, data=content))


@cache
def _contents() -> dict[str, bytes]:
    """The bytes of each file by its path in the folder: the same for every lake that this process writes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    contents = {}
    for dataset in DATASETS.values():
        written = io.BytesIO()
        pq.write_table(pa.Table.from_batches([], dataset.schema), written)
        contents[dataset.empty_file] = written.getvalue()
    return contents


_INPUTS = "folders.json"
INPUTS = ("history", "intakes")


def record_inputs(lake: Path, name: str, folder: Path) -> None:
    """Stores in the lake that it was made from `folder`; `name` is history or intakes.

    The caller holds the lake's lock.

    Raises ValueError for any other name.
    """
    if name not in INPUTS:
        raise ValueError(f"{name!r} is no input of a lake: {', '.join(INPUTS)}")
    known = read_json(lake / _INPUTS) or {}
    folders = {**known, name: str(folder.absolute())}
    if folders != known:
        write_json(lake / _INPUTS, folders)


def recorded_inputs(lake: Path) -> dict[str, Path]:
    """Returns the folders that the lake was last made from, by name, without those that no longer exist."""
    known = read_json(lake / _INPUTS) or {}
    return {name: Path(known[name]) for name in INPUTS if name in known and Path(known[name]).is_dir()}
