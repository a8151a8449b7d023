"""Keeps in the lake which history and intakes folders it was made from, for commands that state none."""

from pathlib import Path

from opus_pipelines.lake.atomic_files import read_json, write_json

NAME = "folders.json"
INPUTS = ("history", "intakes")


def record(lake: Path, name: str, folder: Path) -> None:
    """Stores in the lake that it was made from `folder`; `name` is history or intakes.

    The caller holds the lake's lock.

    Raises ValueError for any other name.
    """
    if name not in INPUTS:
        raise ValueError(f"{name!r} is no input of a lake: {', '.join(INPUTS)}")
    known = read_json(lake / NAME) or {}
    folders = {**known, name: str(folder.absolute())}
    if folders != known:
        write_json(lake / NAME, folders)


def recorded(lake: Path) -> dict[str, Path]:
    """Returns the folders that the lake was last made from, by name, without those that no longer exist."""
    known = read_json(lake / NAME) or {}
    return {name: Path(known[name]) for name in INPUTS if name in known and Path(known[name]).is_dir()}
