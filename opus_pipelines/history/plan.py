"""What lies in the history folder and which version of it: names, sizes and hashes only, so that an unchanged night stays cheap."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opus_pipelines import settings as common
from opus_pipelines import tables
from opus_pipelines.errors import InputError, SettingsError
from opus_pipelines.history.files import data_files, escape, printable
from opus_pipelines.history.formats import FORMATS, format_of
from opus_pipelines.history.source_settings import FILE_NAME, SourceSettings, load_source
from opus_pipelines.ids import digest, file_hash, make_id


@dataclass(frozen=True)
class FilePlan:
    """One file of a source: `refused` says why it must not be read."""

    path: str
    file: Path
    content_hash: str
    bytes: int
    format: str | None
    refused: str | None = None


@dataclass(frozen=True)
class SourcePlan:
    """One source: its settings (None where they cannot be followed, `refused` says why), its files and the hash of all that."""

    name: str
    folder: Path
    settings: SourceSettings | None
    refused: str | None
    files: tuple[FilePlan, ...]
    content: str


def plan_history(history: Path) -> list[SourcePlan]:
    """Every source of the history folder, by name; raises InputError where there is no such folder."""
    if not history.is_dir():
        raise InputError(f"{history}: no such history folder; make it, or say where it is with --history or OPUS_HISTORY")
    return [_plan_source(folder) for folder in sorted(history.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]


def strays(history: Path) -> list[str]:
    """A line for each data file that lies beside the sources instead of in one."""
    files = (f for f in sorted(history.iterdir()) if f.is_file() and not f.name.startswith(".") and format_of(f.name))
    return [f"{printable(f.relative_to(history))}: it lies in no source; put it into a folder of its own below {history}" for f in files]


def _plan_source(folder: Path) -> SourcePlan:
    settings, refused = None, None
    try:
        settings = load_source(folder)
    except SettingsError as error:
        refused = str(error)
    toml = folder / FILE_NAME
    stated = file_hash(toml) if toml.is_file() and settings is not None else ""
    files = tuple(_plan_file(path, folder, settings, stated) for path in data_files(folder))
    content = make_id("h", code_hash(), stated, refused or "", [(f.path, f.content_hash) for f in files])
    return SourcePlan(printable(Path(folder.name)), folder, settings, refused, files, content)


def _plan_file(path: Path, folder: Path, settings: SourceSettings | None, stated: str) -> FilePlan:
    name = printable(path.relative_to(folder))
    refused = escape(path, folder)
    kind = format_of(path.name, settings.format if settings else None)
    if refused is None and kind is None:
        known = ", ".join(s for f in FORMATS for s in f.suffixes)
        refused = f"its name tells no format that is read ({known}, each also with .gz); format in source.toml says which it has"
    if refused is not None:
        return FilePlan(name, path, digest("refused", refused, stated), 0, kind.name if kind else None, refused)
    return FilePlan(name, path, digest(stated, file_hash(path)), path.stat().st_size, kind.name if kind else None)


@cache
def code_hash() -> str:
    """Hash of the code that reads history and declares its tables: another version reads everything again."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), Path(str(common.__file__)), *sorted(Path(tables.__path__[0]).glob("history.py"))]
    return digest(*(part for file in files for part in (file.name, file.read_bytes())))
