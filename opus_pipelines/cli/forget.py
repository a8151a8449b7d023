"""The command `opus forget`: removes a client from everything that the lake keeps, and proves it by a search."""

from pathlib import Path

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.lake.layout import Lake


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
    from opus_pipelines.cli import forget_work

    settings = options.settings(paths__history=history, paths__intakes=intakes)
    lake = Lake(settings.paths.lake)
    if undo:
        forget_work.undo(lake, client)
        return
    work = forget_work.look(lake, settings, client)
    show.table(("what", "how much"), work.planned(), f"Of {client} in {lake.root}")
    if dry_run:
        return
    if not yes:
        click.confirm(f"Remove {client} from {lake.root} for good?", abort=True, err=True)
    forget_work.carry_out(lake, settings, work)
