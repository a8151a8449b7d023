"""Commands that only read: best, explain, export, graph, query, report, status, tasks.

None of them loads Dagster, Spark or torch.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, intakes_option
from opus_pipelines.core.registry import declared

if TYPE_CHECKING:
    import duckdb


# The built-in formats, which the help shows. They are named here again, because importing the formats costs every
# command some time; a test holds that they agree.
EXPORT_FORMATS = ("bpmn", "mermaid", "json", "yaml")


class _FormatName(click.Choice[str]):
    """The name of an export format: one of FORMS, or one that an installed distribution adds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in declared("export_formats") else super().convert(value, param, ctx)


@click.command()
@click.argument("workflow")
@click.option("--to", "form", type=_FormatName(EXPORT_FORMATS), help="Default: by the ending of --out, else yaml")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; without it, stdout."
)
@click.pass_obj
def export(options: Options, workflow: str, form: str | None, out: Path | None) -> None:
    """Write a ranked workflow as BPMN 2.0, Mermaid, or the JSON or YAML that `opus score` reads.

    WORKFLOW is an id that `opus best` shows, or the beginning of one.

    \b
    Example:
      opus export f3a9 --to bpmn --out claim.bpmn
      opus export f3a9 --out claim.yaml && opus score claim.yaml
    """
    from opus_pipelines.reporting.explain import find_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import read_workflow
    from opus_pipelines.workflow.formats.registry import exported, format_of_suffix

    connection = connect(options.lake())
    annotated = read_workflow(connection, find_workflow(connection, workflow))
    form = form or (format_of_suffix(out.suffix) if out else None) or "yaml"
    show.file(exported(annotated, form), out)


DERIVED = (
    ("workflows_earlier", "workflows_optimized of the earlier results that retention keeps"),
    ("process_cases", "one row, one executed case of history: its times, cost, outcome and tasks"),
    ("process_steps", "one row, one step of an executed case: who did it and when, its wait, working time and cost"),
)
PICTURE = click.Path(path_type=Path, dir_okay=False)
Command = TypeVar("Command", bound=Callable[..., Any])


def scoped(command: Command) -> Command:
    """Adds the options --client and --contract to a command."""
    return click.option("--client", help="Only this client.")(
        click.option("--contract", help="Only this contract.")(command)
    )


@click.command()
@scoped
@click.option("--intake", help="Only this intake (its folder's name).")
@click.option(
    "--top", type=click.IntRange(min=1), default=3, show_default=True, help="How many ranks of each Intention."
)
@click.option(
    "--wide", is_flag=True, help="All columns: intervals, what figures rest on, cost and time in history, constraints."
)
@click.option(
    "--truth",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The truth.json of a sample: a second table says what rank 1 really earns.",
)
@show.format_option
@click.pass_obj
def best(
    options: Options,
    client: str | None,
    contract: str | None,
    intake: str | None,
    top: int,
    wide: bool,
    truth: Path | None,
    form: str,
) -> None:
    """Show the ranked workflows of every intake.

    The table has the columns that decide; a workflow is named by the beginning of its id, which other commands take.
    The formats for programs always have every column.

    \b
    Example:
      opus best --client "Northwind Insurance" --top 1
    """
    from opus_pipelines.reporting import best as query_best
    from opus_pipelines.reporting.views import connect

    connection = connect(options.lake())
    rows = query_best.ranked(connection, client, contract, intake, top)
    if form != "table":
        show.relation(rows, form)
        return
    for title, columns, values in query_best.by_contract(rows, short=not wide):
        show.table(columns, values, title)
    if truth is not None:
        _earned(connection, truth)


def _earned(connection: "duckdb.DuckDBPyConnection", truth: Path) -> None:
    """Shows what rank 1 of each contract of a sample earns by its truth, and all of them together."""
    from opus_pipelines.quality.sample.earnings import COLUMNS, earnings, table_rows

    show.table(COLUMNS, table_rows(earnings(connection, truth)), "By the truth of the sample: USD for a piece of work")


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
    help="Its picture instead of text: one lane for each actor, time from top to bottom; - is stdout.",
)
@click.pass_obj
def explain(options: Options, workflow: str, evidence: str | None, limit: int, svg: Path | None) -> None:
    """Explain one workflow: its steps, the reasons for its rank, and the source of each figure.

    WORKFLOW is an id that `opus best` shows, or the beginning of one.

    \b
    Example:
      opus explain f3a9 --evidence "Check invoice"
      opus explain f3a9 --svg claim.svg
    """
    from opus_pipelines.reporting.explain import explanation, find_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import evidence_of, read_workflow

    connection = connect(options.lake())
    workflow_id = find_workflow(connection, workflow)
    if svg:
        from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg

        show.file(swimlane_svg(read_workflow(connection, workflow_id)).encode(), svg)
        return
    text = evidence_of(connection, workflow_id, evidence, limit) if evidence else explanation(connection, workflow_id)
    click.echo(text)


@click.command()
@click.argument("name_or_sql", required=False)
@click.option(
    "--set",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable that the SQL reads with getvariable('NAME').",
)
@click.option(
    "--views",
    is_flag=True,
    help="Print SQL that makes the views; of a lake in an object store over its objects, as they are now.",
)
@show.format_option
@click.pass_obj
def query(options: Options, name_or_sql: str | None, variables: tuple[str, ...], views: bool, form: str) -> None:
    """Run a shipped query by name, or SQL over the views. Without either, list the shipped queries and the views.

    \b
    Example:
      opus query saving_against_history --format csv
      opus query "SELECT title, implementations FROM wkg_tasks ORDER BY 2 DESC LIMIT 5"
    """
    from opus_pipelines.core.schemas import DATASETS
    from opus_pipelines.lake.object_store.folders import origin_of_root
    from opus_pipelines.reporting.querying import timed
    from opus_pipelines.reporting.views import connect, run, shipped_queries, store_views_sql, views_sql

    if views:
        lake = options.lake()
        origin = origin_of_root(lake.root)
        click.echo(views_sql(lake) if origin is None else store_views_sql(lake, origin), nl=False)
        return
    if name_or_sql is None:
        show.table(("query", "answers"), [(q.name, q.about) for q in shipped_queries().values()])
        show.table(("view", "holds"), [("", ""), *((d.view, d.about) for d in DATASETS.values()), *DERIVED])
        return
    pairs = dict(_pair(v) for v in variables)
    limits = options.settings().query
    connection = connect(options.lake())
    with timed(connection, limits) as spill:
        show.relation(run(connection, name_or_sql, pairs, limits, spill), form)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value


@click.command()
@intakes_option("Folder of intakes, client/contract/intake")
@show.format_option
@click.pass_obj
def status(options: Options, intakes: Path | None, form: str) -> None:
    """Show the snapshot, the sources, the contracts, which results are stale and why, and what failed.

    \b
    Example:
      opus status --intakes demo/intakes
    """
    from opus_pipelines.reporting import status as query_status
    from opus_pipelines.reporting.views import connect

    settings = options.settings(paths__intakes=intakes)
    lake = options.lake()
    connection = connect(lake)
    changed, declared = None, None
    if settings.paths.intakes.is_dir():
        from opus_pipelines.cli.current import changes, declared_tasks

        changed, declared = changes(settings), declared_tasks(settings)
    else:
        folder = settings.paths.intakes
        click.echo(
            f"{folder}: no such folder of intakes; only a newer snapshot tells what is stale, --intakes DIR tells all",
            err=True,
        )
    if form != "table":
        show.relation(query_status.contracts(connection, changed, declared), form)
        return
    for title, columns, values in query_status.report(connection, lake, changed, declared):
        show.table(columns, values, title)


_OTHER_PAGES = {
    "programs.html": "Better workflow programs",
    "flows.html": "Flows written from utterances",
    "nights.html": "The last night beside those before",
}


@click.command()
@scoped
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("report"),
    show_default=True,
    help="The folder to write.",
)
@click.pass_obj
def report(options: Options, client: str | None, contract: str | None, out: Path) -> None:
    """Write one self-contained HTML page for each contract, and one for each process of history.

    A page shows what to run, what it costs, how confident the ranking is, and what was refused and why. The command
    prints the files that it wrote, with an index.html where there are several pages. Where the lake has searches
    for better workflow programs, `programs.html` shows them with a program before and after. Where it has flows
    from utterances, `flows.html` lists them, with a page for each. `nights.html` shows the last rebuild beside up
    to thirty before it. A page `process__SOURCE.html` shows each process of history: its map, paths, waits, rework,
    cost and segments.

    \b
    Example:
      opus report --client "Northwind Insurance" --out pages
    """
    from opus_pipelines.lake.layout import slug
    from opus_pipelines.reporting.pages.contract import contract_pages
    from opus_pipelines.reporting.pages.nights import nights_page, render_nights
    from opus_pipelines.reporting.pages.process import process_pages, render_process
    from opus_pipelines.reporting.pages.programs import program_page, render_programs
    from opus_pipelines.reporting.pages.render import (
        flow_rows,
        render,
        render_flows,
        render_index,
    )
    from opus_pipelines.reporting.views import connect

    connection = connect(options.lake())
    everything = client is None and contract is None
    programs = program_page(connection) if everything else None
    nights = nights_page(connection) if everything else None
    flows = render_flows(flow_rows(connection, client, contract))
    flows_page = next(iter(flows), None)
    has_contracts = bool(connection.execute("SELECT count(*) FROM current_results").fetchall()[0][0])
    processes = process_pages(connection, client) if contract is None else []
    is_wanted = has_contracts or not (programs or flows or processes)
    pages = [
        (f"{slug(page.head['client'])}__{slug(page.head['contract'])}.html", page)
        for page in (contract_pages(connection, client, contract) if is_wanted else ())
    ]
    out.mkdir(parents=True, exist_ok=True)
    written = {name: render(page, flows_page) for name, page in pages} | flows
    if programs is not None:
        written["programs.html"] = render_programs(programs)
    if nights is not None:
        written["nights.html"] = render_nights(nights)
    written |= {page.name: render_process(page) for page in processes}
    others = [(name, title) for name, title in _OTHER_PAGES.items() if name in written]
    others += [(page.name, page.title) for page in processes]
    if len(pages) > 1 or processes:
        written["index.html"] = render_index(pages, others)
    for name, text in written.items():
        (out / name).write_text(text, "utf-8")
        click.echo(out / name)


@click.command()
@click.option(
    "--merged",
    is_flag=True,
    help="Only tasks with several names: each name by source, with the method and similarity of the merge.",
)
@click.option("--industry", help="Only tasks of this industry.")
@click.option("--like", metavar="TEXT", help="Only tasks with this text in one of their names.")
@show.format_option
@click.pass_obj
def tasks(options: Options, merged: bool, industry: str | None, like: str | None, form: str) -> None:
    """List the tasks of the Work Knowledge Graph: how often each was carried out, in which sources, under which names.

    --merged shows which names task resolution merged, for a person to judge; pins.toml next to the history folder
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
    lake.required_snapshot()
    connection = connect(lake)
    industry = find_industry(connection, industry) if industry else None
    rows = (query_tasks.merged if merged else query_tasks.tasks)(connection, industry, like)
    if form != "table":
        show.relation(rows, form)
    elif merged:
        click.echo(query_tasks.merged_text(rows))
    else:
        show.table(query_tasks.COLUMNS, query_tasks.lines(rows))


MAX_EDGES = 400


@click.command()
@click.option("--industry", help="Only tasks of this industry.")
@click.option("--around", metavar="TASK", help="Only the neighbourhood of this task (title or id).")
@click.option(
    "--hops", type=click.IntRange(1, 10), default=1, show_default=True, help="How many steps from the task of --around."
)
@click.option(
    "--edges",
    type=click.IntRange(1, MAX_EDGES),
    help="At most so many edges, the strongest. Default: graph.picture_edges, 40",
)
@click.option("-o", "--output", type=PICTURE, help="The SVG file to write; - is stdout.")
@click.pass_obj
def graph(
    options: Options, industry: str | None, around: str | None, hops: int, edges: int | None, output: Path | None
) -> None:
    """Draw a picture of the Work Knowledge Graph: its strongest edges, from left to right.

    The width of an edge shows its gamma, the colour of a task its community. Without -o the picture goes to stdout,
    or to wkg-SNAPSHOT.svg where stdout is a terminal.

    \b
    Example:
      opus graph --industry "insurance claims" --edges 60 -o claims.svg
      opus graph --around "Approve Payment" --hops 2 -o payment.svg
    """
    from opus_pipelines.reporting.graphs.svg import svg
    from opus_pipelines.reporting.tasks import find_industry, find_task
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.wkg_graph import GraphPart, GraphScale, strongest

    settings = options.settings()
    lake = options.lake()
    snapshot = lake.required_snapshot()
    connection = connect(lake)
    industry = find_industry(connection, industry) if industry else None
    task = find_task(connection, around, industry) if around else None
    scale = GraphScale.of(lake.manifest(snapshot))
    part = GraphPart(edges or settings.graph.picture_edges, industry, task, hops)
    picture = strongest(connection, snapshot, scale, part)
    if output is None and sys.stdout.isatty():
        output = Path(f"wkg-{snapshot}.svg")
    show.file(svg(picture).encode(), output, "the picture")
