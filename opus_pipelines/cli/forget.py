"""The command `opus forget`: removes a client from everything that the lake keeps, and proves it by a search."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.cli.show import note
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    from opus_pipelines.wkg.upkeep.erasure import ErasureWork


@click.command()
@click.option("--client", required=True, help="The client, as it is written in history and intakes.")
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="Folder of history, with one folder for each source (or OPUS_HISTORY).",
)
@click.option(
    "--intakes",
    type=click.Path(path_type=Path),
    help="Folder of intakes, to report which are the client's (or OPUS_INTAKES).",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--undo",
    is_flag=True,
    help="Let the client's files be read again from the next rebuild on. What was removed stays removed.",
)
@click.pass_obj
def forget(
    options: Options, client: str, history: Path | None, intakes: Path | None, dry_run: bool, yes: bool, undo: bool
) -> None:
    """Remove a client from everything that the lake keeps, and prove it by a search.

    History, results and older snapshots are cleaned. The files in history and intakes are yours and stay; the lake
    leaves out their cases of this client from now on. Where a run was interrupted, run the command again to finish.

    \b
    Example:
      opus --lake demo/lake forget --client "Northwind Insurance" --history demo/history
    """
    from opus_pipelines.wkg.upkeep import erasure

    settings = options.settings(paths__history=history, paths__intakes=intakes)
    lake = Lake(settings.paths.lake)
    if undo:
        erasure.undo(lake, client)
        note(f"{client} is read again from the next `opus rebuild` on")
        return
    work = erasure.look(lake, settings.paths.history, client)
    show.table(("what", "how much"), work.planned(), f"Of {client} in {lake.root}")
    if dry_run:
        return
    if not yes:
        click.confirm(f"Remove {client} from {lake.root} for good?", abort=True, err=True)
    _carry_out(lake, settings, work)


def _carry_out(lake: Lake, settings: Settings, work: "ErasureWork") -> None:
    """Erases and reports. In the rebuild without the client, drift and loss are not checked: they are meant."""
    from opus_pipelines.cli import forget_record, runs
    from opus_pipelines.lwm.training.tracking import Tracking
    from opus_pipelines.wkg.upkeep import erasure

    client = work.traces.client
    quiet = settings.model_copy(update={"checks": settings.checks.model_copy(update={"drift": "off"})})
    report = erasure.carry_out(
        lake,
        work,
        lambda: runs.rebuild(quiet, False, False, publish=True, allow_loss=True),
        lambda words: [
            *forget_record.clean_record(lake, client, words),
            ("trainings at MLflow's server", Tracking(lake, settings.mlflow).forget()),
        ],
    )
    if report.rebuild_problem:
        note(f"the rebuild said: {report.rebuild_problem}")
    verdict = "is not forgotten yet" if report.left else "is forgotten"
    show.table(("removed", "how much"), report.removed, f"{client} {verdict}")
    for name, contract in report.undecided:
        note(f"{name} / {contract}: decisions on workflows with tasks of {client} alone are removed")
    for name, contract in sorted({(result.client, result.contract) for result in report.resting}):
        note(f"{name} / {contract}: rested on cases of {client}; `opus generate` makes it again")
    for place in sorted({f"{found.file} {found.place}" for found in report.shared}):
        note(f"the name {client} stands in what other clients gave: {place}")
    intakes = settings.paths.intakes
    contracts = [c.folder for c in discover(intakes) if c.client == client] if intakes.is_dir() else []
    sources = [settings.paths.history / source for source in sorted(work.traces.sources)]
    for folder in (folder for folder in (*sources, *contracts) if folder.is_dir()):
        note(f"yours, and not touched: {folder} still holds {client}")
    if report.left:
        lines = [f"still there: {f.word.kind} {f.word.text!r} in {f.file} {f.place}".rstrip() for f in report.left[:20]]
        raise LakeError("\nopus: ".join(lines))
