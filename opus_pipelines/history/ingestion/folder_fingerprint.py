"""Detects changes of the history folder from names, sizes and times of files.

This is cheap enough to be done every minute.
"""

from pathlib import Path

from opus_pipelines.core.ids import digest
from opus_pipelines.history.records.files import data_files
from opus_pipelines.history.records.source_settings import FILE_NAME


def fingerprint(history: Path) -> str:
    """Hashes path, size and modification time of every data file, settings file and pin.

    An absent folder has the hash of an empty one. A file that disappears meanwhile counts as absent. The rebuild then
    compares the contents.
    """
    folders = (
        sorted(f for f in history.iterdir() if f.is_dir() and not f.name.startswith(".")) if history.is_dir() else []
    )
    # a folder that is a link is refused, and its files are not looked at
    files = [f for d in folders for f in ((d,) if d.is_symlink() else (d / FILE_NAME, *data_files(d)))]
    return digest([seen for file in (history.parent / "pins.toml", *files) if (seen := _seen(file, history.parent))])


def _seen(file: Path, root: Path) -> tuple[str, int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return file.relative_to(root).as_posix(), facts.st_size, facts.st_mtime_ns
