"""Notes in a folder on which commit it is based."""

from pathlib import Path

from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.object_store.commits import Entry, packed, unpacked
from opus_pipelines.lake.object_store.files import STATE


def read_state(root: Path) -> tuple[str, dict[str, Entry]]:
    """Returns the commit on which a folder is based, empty for none, and its files."""
    try:
        commit, _, data = (root / STATE / "base").read_bytes().partition(b"\n")
        return commit.decode(), unpacked(data)
    except FileNotFoundError:
        return "", {}


def write_state(root: Path, commit: str, files: dict[str, Entry]) -> None:
    """Notes on which commit a folder is based."""
    data = commit.encode() + b"\n" + packed(files)
    write_atomically(root / STATE / "base", lambda path: path.write_bytes(data))
