"""Lists the files of the history folder and the version of each source.

It uses names, sizes and hashes only, so that a run without changes is cheap. `fingerprint` does not even read the
files, so that it can be computed every minute.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.core.schemas import SOURCES
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.records.files import data_files, folder_values, printable, unsafe_path_reason
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import LOG_FORMATS, format_of, log_formats
from opus_pipelines.history.records.money import shipped_prices
from opus_pipelines.history.records.redaction import Redactor
from opus_pipelines.history.records.source_settings import FILE_NAME, Redact, SourceSettings, TokenPrice, load_source
from opus_pipelines.lake.layout import Lake, read_table

_TRIES = 3  # readings of a settings file that changes meanwhile
LINKED = "the source's folder is a link; put the folder itself there, or mount what it leads to"


FileState = tuple[int, int, int, int, int]  # device, inode, size, and the times of modification and change (ns)


@dataclass(frozen=True)
class FilePlan:
    """One file of a source. `refused` is the reason why it must not be read.

    `folders` has the values that its folders state. `own_hash` is the hash of the file alone, and `seen` its state
    before it was hashed.
    """

    path: str
    file: Path
    content_hash: str
    bytes: int
    format: str | None
    refused: str | None = None
    own_hash: str = ""
    seen: FileState | None = None
    folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_changed(self) -> bool:
        """Tells whether the file has other content than when it was hashed. It is hashed again where that may be."""
        if self.seen is None:
            return False
        try:
            return state_of(self.file) != self.seen and file_hash(self.file) != self.own_hash
        except OSError:
            return True


def state_of(path: Path) -> FileState:
    """Returns the state of a file, which differs after each write and each replacement."""
    facts = path.stat()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


@dataclass(frozen=True)
class SourcePlan:
    """One source: its settings, its files and the hash of both.

    `settings` is None if they are invalid, and `refused` has the reason. `content` hashes `without_rates` and the
    exchange rates of the currencies in which the source's amounts are; these are known after reading.
    """

    name: str
    folder: Path
    settings: SourceSettings | None
    refused: str | None
    files: tuple[FilePlan, ...]
    content: str
    without_rates: str = ""
    of_all: str = ""  # the hash if no client is left out

    def leaving_out(self, forgotten: Forgotten) -> "SourcePlan":
        """Returns the plan without the cases of the forgotten clients that the source is known to contain."""
        content = forgotten.content(self.name, self.of_all)
        return replace(self, content=content, without_rates=content)

    def in_currencies(self, currencies: Iterable[str]) -> "SourcePlan":
        """Returns the plan for a source whose amounts are in these currencies, apart from the dollar."""
        rates = (
            [(code, self.settings.usd_per_unit.get(code)) for code in sorted(set(currencies))] if self.settings else []
        )
        return replace(self, content=make_id("h", self.without_rates, rates) if rates else self.without_rates)


def plan_history(
    history: Path, usd_per_unit: Mapping[str, float] | None = None, lake: Lake | None = None
) -> list[SourcePlan]:
    """Returns the plan of every source of the history folder, by name.

    `usd_per_unit` has the exchange rates of opus.toml; a source's own rates take precedence. `lake` has the currencies
    of the files' amounts and the forgotten clients; a source that belongs to such a client is left out. Raises
    InputError if there is no such folder.
    """
    if not history.is_dir():
        raise InputError(
            f"{history}: no such history folder; make it, or say where it is with --history or OPUS_HISTORY"
        )
    currencies = _known_currencies(lake) if lake is not None else {}
    folders = [folder for folder in sorted(history.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    forgotten = Forgotten.of(lake) if lake is not None else Forgotten()
    plans = [plan_source(folder, usd_per_unit or {}, forgotten.key).leaving_out(forgotten) for folder in folders]
    plans = [p for p in plans if p.settings is None or not forgotten.holds(p.settings.constant("client"))]
    return [
        p.in_currencies(code for f in p.files for code in currencies.get((p.name, f.path, f.content_hash), ()))
        for p in plans
    ]


def _known_currencies(lake: Lake) -> dict[tuple[str, str, str], list[str]]:
    """Returns, by source, path and hash, the foreign currencies of a file's amounts.

    A lake of an older version has none.
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
    """Returns a message for each data file that lies directly in the history folder instead of in a source."""
    files = (f for f in sorted(history.iterdir()) if f.is_file() and not f.name.startswith(".") and format_of(f.name))
    return [
        f"{printable(f.relative_to(history))}: it lies in no source; put it into a folder of its own below {history}"
        for f in files
    ]


def plan_source(
    folder: Path, usd_per_unit: Mapping[str, float], key: bytes = b"", hard_links: bool = False
) -> SourcePlan:
    """Returns the plan of the source in this folder. A folder that is a link is refused, and nothing in it is read.

    `key` is that of hashed attributes; `hard_links`: files may be hard links, because this program made them.
    """
    settings, stated, refused = None, "", LINKED if folder.is_symlink() else None
    try:
        if refused is None:
            settings, stated = settings_of(folder)
            settings = settings.model_copy(update={"usd_per_unit": {**usd_per_unit, **settings.usd_per_unit}})
    except SettingsError as error:
        refused = str(error)
    redactor = Redactor(settings.redact if settings else Redact(), key)
    paths = [] if folder.is_symlink() else data_files(folder)
    files = tuple(
        replace(
            _plan_file(
                redactor.identity(printable(path.relative_to(folder))),
                path,
                settings,
                stated,
                unsafe_path_reason(path, folder, hard_links),
            ),
            folders=folder_values(path.relative_to(folder)),
        )
        for path in paths
    )
    content = make_id("h", reading_version(), stated, refused or "", [(f.path, f.content_hash) for f in files])
    return SourcePlan(printable(Path(folder.name)), folder, settings, refused, files, content, content, content)


def settings_of(folder: Path, load: Callable[[Path], SourceSettings] = load_source) -> tuple[SourceSettings, str]:
    """Returns the settings of a source, and the hash of the very file that `load` read them from.

    Raises SettingsError where the file is invalid, or changes each time it is read.
    """
    toml = folder / FILE_NAME
    for _ in range(_TRIES):
        before = file_hash(toml) if toml.is_file() else ""
        settings = load(folder)
        if before == (file_hash(toml) if toml.is_file() else ""):
            return settings, before
    raise SettingsError(f"{toml} changes while it is read; the next rebuild tries again")


def _plan_file(name: str, path: Path, settings: SourceSettings | None, stated: str, refused: str | None) -> FilePlan:
    """Returns the plan of one file; `stated` is the hash of source.toml, `refused` why the path must not be read."""
    kind = format_of(path.name, settings.stated_format if settings else None)
    if refused is None and kind is None:
        known = ", ".join(s for f in log_formats() for s in f.suffixes)
        refused = (
            f"its name tells no format that is read ({known}, each also with .gz); format in source.toml says "
            "which it has"
        )
    own, seen = "", None
    if refused is None:
        try:
            seen = state_of(path)
            own = file_hash(path)
        except OSError as error:
            refused = f"it cannot be opened: {error.strerror}"
    if refused is not None or seen is None:
        refused = refused or "it cannot be opened"
        return FilePlan(name, path, digest("refused", refused, stated), 0, kind.name if kind else None, refused)
    reader = LOG_FORMATS.origin(kind.name) if kind else ""  # another version of an added reader reads the file again
    content = digest(stated, own, *([reader] if reader else []))
    return FilePlan(name, path, content, seen[2], kind.name if kind else None, None, own, seen)


def reading_version(prices: Mapping[str, TokenPrice] | None = None) -> str:
    """Hashes what the reading of every source depends on: the algorithm version and the token prices.

    The prices are those shipped with the package where none are given.
    """
    known = shipped_prices() if prices is None else prices
    return digest(versions_of("history"), {model: price.model_dump(mode="json") for model, price in known.items()})


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
