"""`opus report`: a page a contract. It only reads; neither Dagster nor Spark nor torch is loaded."""

from pathlib import Path

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.cli.read import scoped


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
    """One HTML page a contract, needing nothing else: what to run, what it costs, how sure that is, what was refused
    and why.

    Prints the files that it wrote, index.html among them where there are several.

    \b
    Example:
      opus report --client "Northwind Insurance" --out pages
    """
    from opus_pipelines.lake.layout import slug
    from opus_pipelines.reporting.page.contract import contract_pages
    from opus_pipelines.reporting.page.render import render, render_index
    from opus_pipelines.reporting.views import connect

    pages = [
        (f"{slug(page.head['client'])}__{slug(page.head['contract'])}.html", page)
        for page in contract_pages(connect(options.lake()), client, contract)
    ]
    out.mkdir(parents=True, exist_ok=True)
    written = {name: render(page) for name, page in pages}
    if len(pages) > 1:
        written["index.html"] = render_index(pages)
    for name, text in written.items():
        (out / name).write_text(text, "utf-8")
        click.echo(out / name)
