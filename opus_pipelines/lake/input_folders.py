"""Keeps in the lake which history and intakes folders it was made from, for commands that state none."""

from pathlib import Path

from opus_pipelines.lake.atomic_files import read_json, write_json

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
