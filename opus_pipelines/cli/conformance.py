"""The command `opus conformance`: how far history conforms to a model of the process."""

from pathlib import Path

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.cli.read import scoped


@click.command()
@click.argument("model")
@click.option("--source", help="Only the cases of this source of history.")
@scoped
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A Parquet file to write: each case with its fitness and its deviations.",
)
@show.format_option
@click.pass_obj
def conformance(
    options: Options,
    model: str,
    source: str | None,
    client: str | None,
    contract: str | None,
    out: Path | None,
    form: str,
) -> None:
    """Show how far finished cases conform to a model, and what the others do instead.

    MODEL is a BPMN file, a flow in any format of `opus flow`, or the id of a ranked workflow. Every variant is aligned
    with it: the table has a row for each step that cases leave out or add, with the success, cost and lead time of
    these cases; the first row has the cases that conform. Sentences below tell fitness, precision and generalisation.

    \b
    Example:
      opus conformance claim.bpmn --client "Northwind Insurance"
      opus conformance f3a9 --source claims -o cases.parquet
    """
    import duckdb
    import pyarrow as pa

    from opus_pipelines.core.formatting import share
    from opus_pipelines.reporting.conformance import conformance as conformance_of
    from opus_pipelines.reporting.conformance import in_words
    from opus_pipelines.reporting.views import connect

    found = conformance_of(connect(options.lake()), model, {"source": source, "client": client, "contract": contract})
    if form == "table":
        shown = [row | {name: share(row[name]) for name in ("share", "success_share")} for row in found.deviations]
        show.table(list(shown[0]), [list(row.values()) for row in shown])
    else:
        show.relation(duckdb.connect().from_arrow(pa.Table.from_pylist(list(found.deviations))), form)
    for sentence in in_words(found):
        (click.echo if form == "table" else show.note)(sentence)
    if out is not None:
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(list(found.cases)), out)
        show.note(f"written: {out}")
