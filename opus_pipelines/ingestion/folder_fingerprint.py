"""Has the history folder changed? Answered from names, sizes and times of files, so that it can be asked every minute."""

from pathlib import Path

from opus_pipelines.core.ids import digest
from opus_pipelines.event_logs.files import data_files
from opus_pipelines.event_logs.source_settings import FILE_NAME


def fingerprint(history: Path) -> str:
    """Hash of path, size and modification time of every data file, settings file and pin; of an absent folder, that of
    an empty one.

    A file that goes away while it is looked at counts as gone. What really changed is for the rebuild to find out, by
    content.
    """
    folders = (
        sorted(f for f in history.iterdir() if f.is_dir() and not f.name.startswith(".")) if history.is_dir() else []
    )
    files = [file for folder in folders for file in (folder / FILE_NAME, *data_files(folder))]
    return digest([seen for file in (history.parent / "pins.toml", *files) if (seen := _seen(file, history.parent))])


def _seen(file: Path, root: Path) -> tuple[str, int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return file.relative_to(root).as_posix(), facts.st_size, facts.st_mtime_ns
