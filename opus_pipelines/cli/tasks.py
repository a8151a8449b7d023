"""`opus tasks`: the WKG's tasks, and what was merged in each. It only reads; neither Dagster nor Spark nor torch is
loaded.
"""

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import LakeError


@click.command()
@click.option(
    "--merged",
    is_flag=True,
    help="Only tasks of several names: each name by source, with how and how surely it was merged.",
)
@click.option("--industry", help="Only tasks of this industry.")
@click.option("--like", metavar="TEXT", help="Only tasks with this text in one of their names.")
@show.format_option
@click.pass_obj
def tasks(options: Options, merged: bool, industry: str | None, like: str | None, form: str) -> None:
    """The tasks of the Work Knowledge Graph: how often each was carried out, in which sources, under which names.

    --merged shows what task resolution made of names, for a person to judge; pins.toml beside the history folder
    overrules it.

    \b
    Example:
      opus tasks --industry "insurance claims" --like survey
      opus tasks --merged
    """
    from opus_pipelines.reporting import tasks as query_tasks
    from opus_pipelines.reporting.tasks import find_industry
    from opus_pipelines.reporting.views import connect

    lake = options.lake()
    if lake.current_snapshot() is None:
        raise LakeError(f"{lake.root} has no snapshot yet; `opus rebuild` makes one")
    connection = connect(lake)
    industry = find_industry(connection, industry) if industry else None
    found = (query_tasks.merged if merged else query_tasks.tasks)(connection, industry, like)
    if form != "table":
        show.relation(found, form)
    elif merged:
        click.echo(query_tasks.merged_text(found))
    else:
        show.table(query_tasks.COLUMNS, query_tasks.lines(found))
