"""What lies in the history folder and which version of it: names, sizes and hashes only, so that an unchanged night
stays cheap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.core.schemas import SOURCES
from opus_pipelines.core.versions import versions_of
from opus_pipelines.event_logs.costing import shipped_prices
from opus_pipelines.event_logs.files import data_files, printable, unsafe_path_reason
from opus_pipelines.event_logs.forgotten_clients import Forgotten
from opus_pipelines.event_logs.formats import LOG_FORMATS, format_of, log_formats
from opus_pipelines.event_logs.redaction import Redactor
from opus_pipelines.event_logs.source_settings import FILE_NAME, Redact, SourceSettings, load_source
from opus_pipelines.lake.layout import Lake, read_table


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
    """One source: its settings (None where they cannot be followed, `refused` says why), its files and the hash of all
    that.

    `content` is `without_rates` and the common rates of the currencies that the source's amounts are in: which they
    are, is known once it is read.
    """

    name: str
    folder: Path
    settings: SourceSettings | None
    refused: str | None
    files: tuple[FilePlan, ...]
    content: str
    without_rates: str = ""
    of_all: str = ""  # the hash where no client is left out

    def leaving_out(self, forgotten: Forgotten) -> "SourcePlan":
        """The same plan with the clients left out that are known to be forgotten in it."""
        content = forgotten.content(self.name, self.of_all)
        return replace(self, content=content, without_rates=content)

    def in_currencies(self, currencies: Iterable[str]) -> "SourcePlan":
        """The same plan for a source whose amounts are in these currencies, dollars apart."""
        rates = (
            [(code, self.settings.usd_per_unit.get(code)) for code in sorted(set(currencies))] if self.settings else []
        )
        return replace(self, content=make_id("h", self.without_rates, rates) if rates else self.without_rates)


def plan_history(
    history: Path, usd_per_unit: Mapping[str, float] | None = None, lake: Lake | None = None
) -> list[SourcePlan]:
    """Every source of the history folder, by name; raises InputError where there is no such folder.

    `usd_per_unit`: the rates of opus.toml, behind a source's own. `lake` tells in which currencies the amounts of its
    files are, and which clients are forgotten: a source that says it is such a client's is left out.
    """
    if not history.is_dir():
        raise InputError(
            f"{history}: no such history folder; make it, or say where it is with --history or OPUS_HISTORY"
        )
    met = _met(lake) if lake is not None else {}
    folders = [folder for folder in sorted(history.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    forgotten = Forgotten.of(lake) if lake is not None else Forgotten()
    plans = [_plan_source(folder, usd_per_unit or {}, forgotten.key).leaving_out(forgotten) for folder in folders]
    plans = [p for p in plans if p.settings is None or not forgotten.holds(p.settings.constant("client"))]
    return [
        p.in_currencies(code for f in p.files for code in met.get((p.name, f.path, f.content_hash), ())) for p in plans
    ]


def _met(lake: Lake) -> dict[tuple[str, str, str], list[str]]:
    """Source, path and hash → currencies that the file's amounts are in, of the files that have any (a lake of an
    older version: none).
    """
    rows = (
        read_table(SOURCES, lake.folder(SOURCES))
        .drop_columns([c.name for c in SOURCES.columns if c.type_name == "ts"])
        .to_pylist()
    )
    return {
        (row["source"], row["path"], row["content_hash"]): row["currencies"] for row in rows if row.get("currencies")
    }


def strays(history: Path) -> list[str]:
    """A line for each data file that lies beside the sources instead of in one."""
    files = (f for f in sorted(history.iterdir()) if f.is_file() and not f.name.startswith(".") and format_of(f.name))
    return [
        f"{printable(f.relative_to(history))}: it lies in no source; put it into a folder of its own below {history}"
        for f in files
    ]


def _plan_source(folder: Path, usd_per_unit: Mapping[str, float], key: bytes) -> SourcePlan:
    settings, refused = None, None
    try:
        settings = load_source(folder)
        settings = settings.model_copy(update={"usd_per_unit": {**usd_per_unit, **settings.usd_per_unit}})
    except SettingsError as error:
        refused = str(error)
    toml = folder / FILE_NAME
    stated = file_hash(toml) if toml.is_file() and settings is not None else ""
    redactor = Redactor(settings.redact if settings else Redact(), key)
    files = tuple(_plan_file(path, folder, settings, stated, redactor) for path in data_files(folder))
    content = make_id("h", reading_version(), stated, refused or "", [(f.path, f.content_hash) for f in files])
    return SourcePlan(printable(Path(folder.name)), folder, settings, refused, files, content, content, content)


def _plan_file(path: Path, folder: Path, settings: SourceSettings | None, stated: str, redactor: Redactor) -> FilePlan:
    name = redactor.identity(printable(path.relative_to(folder)))
    refused = unsafe_path_reason(path, folder)
    kind = format_of(path.name, settings.format if settings else None)
    if refused is None and kind is None:
        known = ", ".join(s for f in log_formats() for s in f.suffixes)
        refused = f"its name tells no format that is read ({known}, each also with .gz); format in source.toml says which it has"
    if refused is not None:
        return FilePlan(name, path, digest("refused", refused, stated), 0, kind.name if kind else None, refused)
    reader = LOG_FORMATS.origin(kind.name) if kind else ""  # another version of an added reader reads the file again
    content = digest(stated, file_hash(path), *([reader] if reader else []))
    return FilePlan(name, path, content, path.stat().st_size, kind.name if kind else None)


def reading_version() -> str:
    """Hash of what every source's reading depends on beside its files: the algorithm version and the shipped prices of
    tokens.
    """
    return digest(
        versions_of("history"), {model: price.model_dump(mode="json") for model, price in shipped_prices().items()}
    )
