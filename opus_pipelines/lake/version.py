"""Which form a lake has: older ones are taken over with a line, newer ones are refused, none is misread.

`<lake>/lake.json` says `format`, the layout of folders, pointers and kept files, and `schemas`, a hash of every
dataset's columns. A lake without that file has format 1. Tables of other columns need no migration: what a file lacks
reads as NULL.
"""

from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.lake.atomic_files import read_json, write_json

FORMAT = 2
NAME = "lake.json"
# What tells a lake that has no lake.json from a folder that is none yet.
_OF_A_LAKE = ("wkg", "history", ".empty")


def schemas_hash() -> str:
    """Hash of every dataset's columns and types."""
    return digest([(name, str(dataset.schema)) for name, dataset in sorted(DATASETS.items())])


def format_of(root: Path) -> int | None:
    """The format of the lake at `root`, None where there is no lake yet; LakeError where this version does not know
    it.
    """
    known = read_json(root / NAME)
    if known is None:
        return 1 if any((root / name).exists() for name in _OF_A_LAKE) else None
    found = known.get("format")
    if not isinstance(found, int):
        raise LakeError(f"{root / NAME} names no format; was it edited by hand?")
    if found > FORMAT:
        raise LakeError(
            f"{root} is a lake of format {found}; this version reads up to {FORMAT}: install the newer version that wrote it"
        )
    return found


def has_these_columns(root: Path) -> bool:
    """Were the lake's empty typed files written for the datasets as this version declares them?"""
    return (read_json(root / NAME) or {}).get("schemas") == schemas_hash()


def stamp(root: Path, with_columns: bool = True) -> None:
    """Say that the lake has this version's form, and that its empty typed files are there."""
    write_json(root / NAME, {"format": FORMAT, "schemas": schemas_hash() if with_columns else None})
