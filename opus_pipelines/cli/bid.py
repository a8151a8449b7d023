"""The command `opus bid`: what a client's contracts cost in a year, at which price, with whom and how surely."""

from pathlib import Path

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options


@click.command()
@click.option("--client", required=True, help="The client for whom the bid is made.")
@click.option("--contract", help="Only this contract.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 0.95),
    default=0.2,
    show_default=True,
    help="Share of the price that is to be left.",
)
@click.option(
    "--volume",
    "stated",
    multiple=True,
    metavar="[INTAKE=]N",
    help="Cases a month like the intake in the folder INTAKE; without INTAKE, like each intake not named. Default: the "
    "cases of the client's history that are most like its workflow.",
)
@click.option(
    "--hours",
    type=click.FloatRange(1, 744),
    default=130,
    show_default=True,
    help="Hours that one person works on cases in a month.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), help="A folder for bid.html, .parquet and .xlsx."
)
@show.format_option
@click.pass_obj
def bid(
    options: Options,
    client: str,
    contract: str | None,
    margin: float,
    stated: tuple[str, ...],
    hours: float,
    out: Path | None,
    form: str,
) -> None:
    """Make a bid for a client: cost, price, people and risk of a year's work.

    Each intake of the contracts stands for a kind of work, and its best workflow says what a case costs: the steps,
    and what similar cases paid for carrying steps out again. The price leaves the margin. Draws of the costs and of
    the number of cases give the interval of the margin and the risk of a loss. The assumptions that matter most stand
    last, each with what a year would lose. The other formats than table have the lines alone; --out writes everything.

    \b
    Example:
      opus bid --client "Northwind Insurance" --margin 0.25 --out bid
      opus bid --client "Northwind Insurance" --contract Claims --volume 200 --volume storm-damage=40
    """
    import duckdb
    import pyarrow as pa

    from opus_pipelines.core.formatting import number, usd
    from opus_pipelines.reporting.bid import HEADS, Terms, cells, render_bid, sentences
    from opus_pipelines.reporting.bid import bid as bid_for
    from opus_pipelines.reporting.spreadsheets import as_xlsx
    from opus_pipelines.reporting.views import connect

    offer = bid_for(connect(options.lake()), client, contract, Terms(margin, _volumes(stated), hours))
    lines = pa.Table.from_pylist(list(offer.lines))
    if form != "table":
        show.relation(duckdb.connect().from_arrow(lines), form)
    else:
        show.table(HEADS, map(cells, offer.lines))
        for sentence in sentences(offer):
            click.echo(sentence)
        show.table(
            ("group", "hours a month", "people"),
            [(row["group"], number(row["hours_a_month"], 1), number(row["people"])) for row in offer.people],
        )
        show.table(
            ("assumption", "if instead", "a year"),
            [(row["assumption"], row["otherwise"], usd(row["year_usd"])) for row in offer.assumptions[:3]],
        )
    if out is not None:
        import pyarrow.parquet as pq

        out.mkdir(parents=True, exist_ok=True)
        (out / "bid.html").write_text(render_bid(offer), "utf-8")
        pq.write_table(lines, out / "bid.parquet")
        (out / "bid.xlsx").write_bytes(as_xlsx(offer.sheets)[0])
        for name in ("bid.html", "bid.parquet", "bid.xlsx"):
            show.note(str(out / name))


def _volumes(stated: tuple[str, ...]) -> dict[str, float]:
    """Returns the cases a month by intake; "" stands for all others. Raises a usage error where one is no number."""
    volumes = {}
    for text in stated:
        intake, _, number = text.rpartition("=")
        try:
            volumes[intake] = float(number)
        except ValueError:
            volumes[intake] = -1.0
        if not 0 <= volumes[intake] < 1e9:
            raise click.BadParameter(
                f"{text!r} is not N or INTAKE=N with a number of cases a month", param_hint="--volume"
            )
    return volumes
