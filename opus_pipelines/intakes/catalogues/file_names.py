"""Which files of a contract declare its tools, by their names; nothing is read, and no parser is loaded."""

from pathlib import Path

from opus_pipelines.intakes.elements import is_hidden

NAME = "catalogue"


TABLES = {".csv", ".tsv"}


STRUCTURED = {".json", ".yaml", ".yml"}


LINES = {".jsonl", ".ndjson"}


def catalogue_files(folder: Path) -> list[Path]:
    """Returns the files of a contract's folder that may be of its catalogue, by name; sub-folders are not looked at."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if not is_hidden(Path(p.name)) and not p.is_dir() and _may_be(p))


def _may_be(path: Path) -> bool:
    suffix = path.suffix.casefold()
    return suffix in STRUCTURED or (suffix in TABLES | LINES and path.stem.casefold().startswith(NAME))
