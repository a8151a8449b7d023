"""The folders that a lake was made from: which history and which intakes, kept in the lake for commands that are not
told.
"""

from pathlib import Path

from opus_pipelines.lake.atomic_files import read_json, write_json

NAME = "folders.json"
INPUTS = ("history", "intakes")


def record(lake: Path, name: str, folder: Path) -> None:
    """Remember that the lake was made from this folder: `name` is history or intakes. The lake's lock must be held."""
    if name not in INPUTS:
        raise ValueError(f"{name!r} is no input of a lake: {', '.join(INPUTS)}")
    known = read_json(lake / NAME) or {}
    found = {**known, name: str(folder.absolute())}
    if found != known:
        write_json(lake / NAME, found)


def recorded(lake: Path) -> dict[str, Path]:
    """The folders that the lake was made from last, by name; those that are not there any more are left out."""
    known = read_json(lake / NAME) or {}
    return {name: Path(known[name]) for name in INPUTS if name in known and Path(known[name]).is_dir()}
