"""The command `opus graph`: draws a picture of the WKG.

It only reads, and loads neither Dagster nor Spark nor torch.
"""

import sys
from pathlib import Path

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

PICTURE_FORMATS = {"svg": ".svg", "mermaid": ".mmd"}
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
@click.option("--to", "form", type=click.Choice([*PICTURE_FORMATS]), help="Default: by the ending of -o, else svg")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; - is stdout.")
@click.pass_obj
def graph(
    options: Options,
    industry: str | None,
    around: str | None,
    hops: int,
    edges: int | None,
    form: str | None,
    output: Path | None,
) -> None:
    """Draw a picture of the Work Knowledge Graph: its strongest edges, from left to right.

    The width of an edge shows its gamma, the colour of a task its community. Without -o the picture goes to stdout,
    or to wkg-SNAPSHOT.svg where stdout is a terminal.

    \b
    Example:
      opus graph --industry "insurance claims" --edges 60 -o claims.svg
      opus graph --around "Approve Payment" --hops 2 --to mermaid
    """
    from opus_pipelines.reporting.graphs.mermaid import mermaid
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
    form = form or _form(output)
    _write(svg(picture) if form == "svg" else mermaid(picture), output, f"wkg-{snapshot}{PICTURE_FORMATS[form]}")


def _form(output: Path | None) -> str:
    """Returns the format by the file's ending."""
    return "mermaid" if output is not None and output.suffix.casefold() in (".mmd", ".mermaid") else "svg"


def _write(text: str, output: Path | None, otherwise: str) -> None:
    if output is None and sys.stdout.isatty():
        output = Path(otherwise)
    if output is None or str(output) == "-":
        click.echo(text.encode(), nl=False)  # bytes: a terminal's encoding may lack a title's letters
        return
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output.absolute().parent}: no such folder for the picture")
    output.write_text(text, "utf-8")
    click.echo(f"written: {output}", err=True)
