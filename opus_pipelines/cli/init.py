"""The commands `opus init`, `opus check` and `opus discover`: a client's export in seconds, without Spark."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, history_option
from opus_pipelines.core.errors import CheckFailed, InputError, UnclearColumn
from opus_pipelines.core.formatting import share
from opus_pipelines.core.settings import Settings

if TYPE_CHECKING:
    from opus_pipelines.history.discovery.discover import Discovered
    from opus_pipelines.history.ingestion.onboarding.trial import Trial


_FILE = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="The source's folder (default: a new one below the history folder).",
)
@click.option("--yes", is_flag=True, help="Write without asking; a doubtful reading is not written.")
@click.option("--accept-doubts", is_flag=True, help="With --yes: write the reading in spite of its doubts.")
@click.option("--industry", help="Industry of the source.")
@click.option("--client", help="Client of the source.")
@click.option("--name", help="Name of the contract that its cases belong to.")
@click.option("--timezone", help="Zone of times that state none, e.g. Europe/Berlin.")
@click.option("--case", help="Column of the case's id, where it is not detected.")
@click.option("--activity", help="Column of the activity.")
@click.option("--time", help="Column of the time.")
@click.option("--actor", help="Column of who did it.")
@click.option("--scope", help="Column within which ids of cases are given, such as the client; none: there is none.")
@click.option("--rows", multiple=True, metavar="COLUMN=VALUE", help="Read only the rows with this value.")
@click.option(
    "--transition",
    "transitions",
    multiple=True,
    metavar="WORD=MEANING",
    help="What a word of the life cycle means: start, complete, suspend, resume, abort, other (no work) or step.",
)
@click.option("--sheet", help="Sheet of a workbook, where it is not detected.")
@click.pass_obj
def init(
    options: Options,
    files: tuple[Path, ...],
    to: Path | None,
    yes: bool,
    accept_doubts: bool,
    industry: str | None,
    client: str | None,
    name: str | None,
    timezone: str | None,
    case: str | None,
    activity: str | None,
    time: str | None,
    actor: str | None,
    scope: str | None,
    rows: tuple[str, ...],
    transitions: tuple[str, ...],
    sheet: str | None,
) -> None:
    """Read a client's export, propose its source.toml, show what was understood, and write both on yes.

    FILES are the files of one export, or a folder of them. Folders such as client=Acme state a value of all rows in it.

    \b
    Example:
      opus init export.csv
      opus init export.csv --to history/claims --industry insurance --yes
    """
    columns = {"case": case, "activity": activity, "time": time, "actor": actor, "scope": scope}
    given = {"industry": industry, "client": client, "contract": name, "timezone": timezone, "sheet": sheet}
    told = {role: column for role, column in columns.items() if column}
    agreed = accept_doubts if yes else None
    while True:
        try:
            _source(options, files, to, agreed, given, told, _rows_of(rows), _meanings(transitions))
            return
        except UnclearColumn as unclear:
            if yes or unclear.role in told:
                raise
            click.echo(f"opus: {unclear}", err=True)
            told[unclear.role] = click.prompt("Column", type=click.Choice(unclear.columns), err=True)


def _rows_of(rows: tuple[str, ...]) -> dict[str, list[str]]:
    """Returns the values by column that were given as COLUMN=VALUE."""
    only: dict[str, list[str]] = {}
    for row in rows:
        column, equals, value = row.partition("=")
        if not equals:
            raise click.UsageError(f"--rows {row!r} is not COLUMN=VALUE")
        only.setdefault(column.strip(), []).append(value.strip())
    return only


@click.command()
@click.argument("source")
@history_option("Folder of history, where SOURCE is a name")
@click.pass_obj
def check(options: Options, source: str, history: Path | None) -> None:
    """Show what a rebuild would read from a source (its folder, or its name in the history folder), in seconds.

    Of a contract's folder, show what its catalogue declares, and which of its utterances can be read.

    \b
    Example:
      opus check history/claims
      opus check claims
      opus check intakes/northwind/claims
    """
    if _is_contract(Path(source)):
        _check_catalogue(Path(source))
        return
    from opus_pipelines.history.ingestion.onboarding.columns import column_doubts_of
    from opus_pipelines.history.ingestion.onboarding.life_cycles import transition_doubts_of
    from opus_pipelines.history.ingestion.onboarding.propose import kind_of
    from opus_pipelines.history.ingestion.onboarding.report import complaints, report
    from opus_pipelines.history.ingestion.onboarding.trial import findings_of, reading

    settings = options.settings(paths__history=history)
    with reading(_folder(settings, source), settings.currency.usd_per_unit) as trial:
        used = [row["path"] for row in trial.files if row["status"] != "rejected"]
        files = [_folder(settings, source) / path for path in used]
        kinds, roles = [kind_of(file) for file in files], trial.settings.columns.model_dump()
        doubts = column_doubts_of(files, kinds, roles)
        doubts += transition_doubts_of(files, kinds, trial.settings)
        doubts += _open_cases(trial, settings.forecasts.stated(trial.name))
        for line in report(trial, findings_of(trial), doubts):
            click.echo(line)
        if trial.folder is None or trial.failed:
            raise CheckFailed("\nopus: ".join(complaints(trial) or [f"{source}: no case can be read of it"]))
        for line in complaints(trial):
            click.echo(line, err=True)


def _open_cases(trial: "Trial", stated: tuple[str, ...]) -> list[tuple[str, str]]:
    """Returns the share of the cases that are taken to run still, and how that is told; no row for process models."""
    from opus_pipelines.wkg.estimates.next_activity import OpenRule
    from opus_pipelines.wkg.rebuild.cases import open_share

    if trial.folder is None:
        return []
    count, cases, basis = open_share(trial.folder, OpenRule.of(*(stated or trial.settings.forecasts.stated)))
    return [("open cases", f"{count:,} of {cases:,} ({share(count / cases)}) still run: {basis}")] if cases else []


@click.command()
@click.argument("log")
@history_option("Folder of history, where LOG is a name")
@click.option("--timezone", help="Zone of the file's times that state none, e.g. Europe/Berlin. Default: UTC")
@click.option("--case", help="Column of the case's id, where it is not detected.")
@click.option("--activity", help="Column of the activity.")
@click.option("--time", help="Column of the time.")
@click.option("--tasks", "of_tasks", is_flag=True, help="Rows of tasks instead of edges, in the formats for programs.")
@click.option("--top", type=click.IntRange(min=1), default=30, show_default=True, help="How many rows a table shows.")
@show.format_option
@click.pass_obj
def discover(
    options: Options,
    log: str,
    history: Path | None,
    timezone: str | None,
    case: str | None,
    activity: str | None,
    time: str | None,
    of_tasks: bool,
    top: int,
    form: str,
) -> None:
    """Show which steps follow each other in a log that nobody prepared, and how often, without a rebuild.

    LOG is a file, or a source with its settings (its folder, or its name in the history folder). Flat logs (CSV,
    Parquet) are counted without making implementations of them, in seconds for ten million events. The counts are
    those of mining before task resolution: names that differ are different tasks.

    \b
    Example:
      opus discover export.parquet
      opus discover export.csv --timezone Europe/Berlin --format csv > edges.csv
      opus discover claims --history history --tasks --format json
    """
    from opus_pipelines.history.discovery.discover import headline, set_aside, tables

    columns = {role: column for role, column in (("case", case), ("activity", activity), ("time", time)) if column}
    found = _discovered(options, log, history, timezone, columns)
    if not found.counts.implementations:
        raise CheckFailed("\nopus: ".join(set_aside(found) or [f"{log}: no case can be read of it"]))
    if form == "table":
        click.echo(headline(log, found))
        for title, names, rows in tables(found, top):
            show.table(names, rows, title)
    else:
        import duckdb

        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            show.relation(connection.from_arrow(found.tasks if of_tasks else found.edges), form)
    for line in set_aside(found):
        click.echo(line, err=True)


def _discovered(
    options: Options, log: str, history: Path | None, timezone: str | None, columns: dict[str, str]
) -> "Discovered":
    from opus_pipelines.history.discovery.discover import discover as discover_source
    from opus_pipelines.history.discovery.discover import discover_file, settings_of_file
    from opus_pipelines.history.ingestion.onboarding.report import Stated
    from opus_pipelines.history.records.formats import LOG_FORMATS

    if not Path(log).is_file():
        if columns or timezone:
            raise click.UsageError(
                "--case, --activity, --time and --timezone are for a file; a source has its settings"
            )
        settings = options.settings(paths__history=history)
        return discover_source(_folder(settings, log), settings.currency.usd_per_unit)
    guessed, notes = settings_of_file(Path(log), Stated(timezone=timezone, columns=columns))
    for line in notes:
        click.echo(line, err=True)
    return discover_file(Path(log), LOG_FORMATS.get(str(guessed.format)), guessed)


def _is_contract(folder: Path) -> bool:
    from opus_pipelines.flows.batches.inputs import utterance_files
    from opus_pipelines.intakes.intake import FLOWS

    return (folder / "contract.toml").is_file() or bool(utterance_files(folder / FLOWS))


def _check_catalogue(folder: Path) -> None:
    from opus_pipelines.flows.batches.inputs import check_folder
    from opus_pipelines.intakes.catalogues.entries import catalogue_complaints, catalogue_lines
    from opus_pipelines.intakes.catalogues.files import read_catalogue
    from opus_pipelines.intakes.intake import FLOWS

    catalogue = read_catalogue(folder)
    for line in catalogue_lines(catalogue) or [f"{folder}: the contract has no catalogue; history names its tasks"]:
        click.echo(line)
    flow_lines, flow_complaints = check_folder(folder / FLOWS)
    for line in flow_lines:
        click.echo(line)
    set_aside = [*catalogue_complaints(catalogue), *flow_complaints]
    if catalogue.files and not catalogue:
        raise CheckFailed("\nopus: ".join(set_aside))
    for line in set_aside:
        click.echo(line, err=True)


def _folder(settings: Settings, source: str) -> Path:
    places = [Path(source), settings.paths.history / source]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise InputError(f"{source} is neither a folder nor a source in {settings.paths.history}")
    return folder


def _source(
    options: Options,
    files: tuple[Path, ...],
    to: Path | None,
    agreed: bool | None,
    stated: dict[str, str | None],
    columns: dict[str, str],
    rows: dict[str, list[str]],
    transitions: dict[str, list[str]],
) -> None:
    """Writes a source. `agreed` is None where a person is asked, else whether a doubtful reading is written, too."""
    from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
    from opus_pipelines.history.ingestion.onboarding.report import Stated, complaints, report
    from opus_pipelines.history.records.files import data_files, placed
    from opus_pipelines.history.records.source_settings import FILE_NAME

    settings = options.settings()
    folder = to or settings.paths.history / _name_of(files[0])
    files = tuple(file for given in files for file in (data_files(given) if given.is_dir() else [given]))
    if not files:
        raise InputError("the folder has no data file")
    names = [placed(file) for file in files]
    if len(set(names)) < len(names):
        raise InputError("two of the files have the same name; a source's folder holds each name once")
    if (folder / FILE_NAME).exists():
        raise InputError(
            f"{folder / FILE_NAME} is there already; `opus check {folder}` shows what it gives; "
            "remove it for a new proposal"
        )
    with propose_settings(
        folder.name,
        files,
        Stated(**stated, columns=columns, rows=rows, transitions=transitions, rates=settings.currency.usd_per_unit),
    ) as proposal:
        doubts = [("doubt", text) for text in proposal.doubts]
        for line in [
            *report(proposal.trial, proposal.findings, [*_assumed(proposal.draft.notes), *doubts]),
            "",
            str(folder / FILE_NAME),
        ]:
            click.echo(line)
        click.echo("".join(f"  {line}\n" for line in proposal.toml.splitlines()), nl=False)
        for line in complaints(proposal.trial):
            click.echo(f"opus: {line}", err=True)
        if proposal.doubts and agreed is False:
            raise CheckFailed(
                "nothing was written, because the reading above is doubtful: "
                + "; ".join(proposal.doubts)
                + "; state what is right, or write it with --accept-doubts"
            )
        question = f"Write {FILE_NAME} and the files to {folder}?"
        if agreed is None and not click.confirm(question, default=not proposal.doubts, err=True):
            click.echo("nothing was written", err=True)
            return
        _write(proposal.files, folder, proposal.toml)
    click.echo(f"written: {folder}; next: opus rebuild --history {folder.parent}", err=True)


def _meanings(transitions: tuple[str, ...]) -> dict[str, list[str]]:
    """Returns the words of `--transition WORD=MEANING` by meaning."""
    found: dict[str, list[str]] = {}
    for stated in transitions:
        word, _, meaning = stated.rpartition("=")
        if not word:
            raise click.UsageError(f"--transition {stated} is not of the form WORD=MEANING, as in Erfasst=start")
        found.setdefault(meaning, []).append(word)
    return found


def _assumed(notes: dict[str, str]) -> list[tuple[str, str]]:
    """Returns the settings that are guesses, with their reasons."""
    return [
        (key, reason)
        for key, reason in notes.items()
        if key == "known later" or any(word in reason for word in ("assumed", "guess", "mixes"))
    ]


def _write(files: tuple[Path, ...], folder: Path, toml: str) -> None:
    """Copies the files first and writes source.toml last, so that a folder with source.toml is complete."""
    from opus_pipelines.history.records.files import placed
    from opus_pipelines.history.records.source_settings import FILE_NAME
    from opus_pipelines.lake.atomic_files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        target = folder / placed(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.samefile(file):
            continue
        if target.exists():
            raise InputError(f"{target} is there already; move it away, or give the file another name")
        shutil.copyfile(file, target)
    write_atomically(folder / FILE_NAME, lambda path: path.write_text(toml, "utf-8"))


def _name_of(file: Path) -> str:
    """Returns a source's folder name from an export's file name."""
    return re.sub(r"[^\w-]+", "_", file.name.split(".")[0]).strip("_").lower() or "export"
