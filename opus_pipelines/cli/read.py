"""Commands that only read: best, explain, query, status. None of them loads Dagster, Spark or torch."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.export import write
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    import duckdb

EARLIER = ("workflows_earlier", "workflows_optimized of the earlier results that retention keeps")
PICTURE = click.Path(path_type=Path, dir_okay=False)
Command = TypeVar("Command", bound=Callable[..., Any])


def scoped(command: Command) -> Command:
    """Adds --client and --contract."""
    return click.option("--client", help="Only this client.")(
        click.option("--contract", help="Only this contract.")(command)
    )


@click.command()
@scoped
@click.option("--intake", help="Only this intake (its folder's name).")
@click.option(
    "--top", type=click.IntRange(min=1), default=3, show_default=True, help="How many ranks of each Intention."
)
@show.format_option
@click.pass_obj
def best(options: Options, client: str | None, contract: str | None, intake: str | None, top: int, form: str) -> None:
    """The ranked workflows of every intake.

    \b
    Example:
      opus best --client "Northwind Insurance" --top 1
    """
    from opus_pipelines.reporting import best as query_best
    from opus_pipelines.reporting.views import connect

    rows = query_best.ranked(connect(options.lake()), client, contract, intake, top)
    if form != "table":
        show.relation(rows, form)
        return
    for title, columns, values in query_best.by_contract(rows):
        show.table(columns, values, title)


@click.command()
@click.argument("workflow")
@click.option("--evidence", metavar="TASK", help="List the cases of history behind this task (title or id).")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many cases --evidence lists."
)
@click.option(
    "--svg",
    type=PICTURE,
    metavar="FILE",
    help="Its picture instead of words: a lane an actor, time running down; - is stdout.",
)
@click.option("--mermaid", type=PICTURE, metavar="FILE", help="Its picture as Mermaid text; - is stdout.")
@click.pass_obj
def explain(
    options: Options, workflow: str, evidence: str | None, limit: int, svg: Path | None, mermaid: Path | None
) -> None:
    """One workflow: its steps, why it ranks where it does, and where each figure came from.

    WORKFLOW is an id that `opus best` shows, or the beginning of one.

    \b
    Example:
      opus explain f3a9 --evidence "Check invoice"
      opus explain f3a9 --svg claim.svg
    """
    from opus_pipelines.reporting.explain import explanation, find_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import evidence_of

    connection = connect(options.lake())
    workflow_id = find_workflow(connection, workflow)
    if svg or mermaid:
        _pictures(connection, workflow_id, svg, mermaid)
        return
    text = evidence_of(connection, workflow_id, evidence, limit) if evidence else explanation(connection, workflow_id)
    click.echo(text)


def _pictures(connection: "duckdb.DuckDBPyConnection", workflow: str, svg: Path | None, mermaid: Path | None) -> None:
    from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg
    from opus_pipelines.reporting.workflows import read_workflow
    from opus_pipelines.workflow.formats.mermaid import as_mermaid

    found = read_workflow(connection, workflow)
    for out, draw in ((svg, swimlane_svg), (mermaid, as_mermaid)):
        if out is not None:
            write(draw(found).encode(), out)


@click.command()
@click.argument("name_or_sql", required=False)
@click.option(
    "--set",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable that the SQL reads with getvariable('NAME').",
)
@show.format_option
@click.pass_obj
def query(options: Options, name_or_sql: str | None, variables: tuple[str, ...], form: str) -> None:
    """A shipped query by name, or SQL over the views. Without either, lists the shipped queries and the views.

    \b
    Example:
      opus query saving_against_history --format csv
      opus query "SELECT title, implementations FROM wkg_tasks ORDER BY 2 DESC LIMIT 5"
    """
    from opus_pipelines.core.schemas import DATASETS
    from opus_pipelines.reporting import views
    from opus_pipelines.reporting.views import connect

    if name_or_sql is None:
        show.table(("query", "answers"), [(q.name, q.about) for q in views.shipped().values()])
        show.table(("view", "holds"), [("", ""), *((d.view, d.about) for d in DATASETS.values()), EARLIER])
        return
    rows = views.run(connect(options.lake()), name_or_sql, dict(_pair(v) for v in variables))
    if rows is not None:
        try:
            show.relation(rows, form)
        except views.QueryError as error:
            raise InputError(f"the query failed: {error}") from None


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value


@click.command()
@click.option(
    "--intakes", type=click.Path(path_type=Path), help="Folder of intakes, client/contract/intake (or OPUS_INTAKES)."
)
@show.format_option
@click.pass_obj
def status(options: Options, intakes: Path | None, form: str) -> None:
    """Snapshot, sources, contracts, what is stale since what changed, and what failed.

    \b
    Example:
      opus status --intakes demo/intakes
    """
    from opus_pipelines.reporting import status as query_status
    from opus_pipelines.reporting.views import connect

    settings = options.settings(paths__intakes=intakes)
    lake = options.lake()
    connection = connect(lake)
    changed = None
    if settings.paths.intakes.is_dir():
        from opus_pipelines.cli.current import changes

        changed = changes(settings)
    else:
        folder = settings.paths.intakes
        click.echo(
            f"{folder}: no such folder of intakes; only a newer snapshot tells what is stale, --intakes DIR tells all",
            err=True,
        )
    if form != "table":
        show.relation(query_status.contracts(connection, changed), form)
        return
    for title, columns, values in query_status.report(connection, lake, changed):
        show.table(columns, values, title)
