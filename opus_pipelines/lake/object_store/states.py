"""Notes in a folder on which commit it is based."""

from pathlib import Path

from opus_pipelines.lake.atomic_files import write_atomically
from opus_pipelines.lake.object_store.commits import Entry, packed, unpacked
from opus_pipelines.lake.object_store.files import STATE

BASE = "base.json.gz"  # a name that says how it is compressed: the search for a client's name reads it


def read_state(root: Path) -> tuple[str, dict[str, Entry]]:
    """Returns the commit on which a folder is based, empty for none, and its files."""
    try:
        files, facts = unpacked((root / STATE / BASE).read_bytes())
    except FileNotFoundError:
        return "", {}
    return facts["commit"], files


def write_state(root: Path, commit: str, files: dict[str, Entry]) -> None:
    """Notes on which commit a folder is based."""
    data = packed(files, commit=commit)
    write_atomically(root / STATE / BASE, lambda path: path.write_bytes(data))
