"""The command `opus whatif`: the intakes of a contract answered again under a scenario."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, intakes_option
from opus_pipelines.cli.read import scoped
from opus_pipelines.core import formatting

_HEADS = ("contract", "intake", "change", "reward", "cost", "success", "lead time", "what differs")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False, exists=True))
@scoped
@click.option("--intake", help="Only the intake in this folder.")
@click.option("--set", "stated", metavar="KEY=VALUE", multiple=True, help="One key of the scenario; VALUE as in TOML.")
@intakes_option("Folder of intakes, client/contract/intake")
@show.format_option
@click.pass_obj
def whatif(
    options: Options,
    file: Path | None,
    client: str | None,
    contract: str | None,
    intake: str | None,
    stated: tuple[str, ...],
    intakes: Path | None,
    form: str,
) -> None:
    """Answer intakes again under a scenario, and show what becomes best beside today's answer.

    FILE is a TOML file with keys of contract.toml (prices, constraints, review, calendar, gain_usd), sections of
    opus.toml, and tables [tasks."TITLE"] with p, q and cost (a factor on its cost). They count over what is stated
    today. Both answers are made now from the current snapshot; nothing is published. In the other formats than table
    all figures have a column of their own, with the ending _today for today's answer.

    \b
    Example:
      opus whatif --client "Northwind Insurance" --set prices.usd_per_hour.SUPERVISOR=90
      opus whatif --set 'constraints.must_not_contain=["Ask employee"]'
      opus whatif --set 'tasks."Approve Payment".p=0.9' --set constraints.max_lead_time_hours=48
      opus whatif scenario.toml --format csv
    """
    import duckdb
    import pyarrow as pa

    from opus_pipelines.cli.evaluate import context_of
    from opus_pipelines.core.errors import InputError
    from opus_pipelines.core.formatting import Ticker
    from opus_pipelines.generation.contracts import contracts_of
    from opus_pipelines.lake.layout import Lake
    from opus_pipelines.quality.what_if import Lookups, Scenario, compare

    scenario = Scenario.of(_stated(file, stated), str(file or "--set"))
    settings = options.settings(paths__intakes=intakes)
    wanted = [
        replace(one, intakes=tuple(folder for folder in one.intakes if intake in (None, folder.name)))
        for one in contracts_of(Lake(settings.paths.lake), settings.paths.intakes)
        if one.problem is None and client in (None, one.client) and contract in (None, one.contract)
    ]
    if not wanted:
        raise InputError(
            f"no contract of client {client or 'any'}, contract {contract or 'any'} in {settings.paths.intakes}"
        )
    context = context_of(settings)
    lookups = Lookups(context.index, context.encoder, context.model)
    ticker = Ticker("intakes answered twice", show.note)
    rows = compare(wanted, scenario, settings, lookups, ticker)
    if form == "table":
        show.table(_HEADS, map(_cells, rows))
    else:
        show.relation(duckdb.connect().from_arrow(pa.Table.from_pylist(rows)), form)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a row; a figure that stays stands once."""

    def both(name: str, shown: Callable[[float | None], str]) -> str:
        today, then = shown(row[f"{name}_today"]), shown(row[name])
        return then if today == then else f"{today} → {then}"

    differs = [
        f"{what} {row[name]}"
        for name, what in (
            ("steps_added", "with"),
            ("steps_left_out", "without"),
            ("done_by", "by"),
            ("broken", "breaks"),
        )
        if row[name]
    ]
    figures = (
        both("reward_usd", formatting.usd),
        both("cost_usd", formatting.usd),
        both("success", formatting.share),
        both("lead_hours_p50", lambda value: "-" if value is None else formatting.hours(3_600_000 * value)),
    )
    return (row["contract"], row["intake"], row["change"], *figures, row["reason"] or "; ".join(differs))


def _stated(file: Path | None, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Returns the tables of the file with the pairs over them. Raises a usage error that names the defect."""
    from opus_pipelines.quality.what_if import over

    try:
        text = file.read_text("utf-8") if file else ""
        merged: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    for pair in pairs:
        try:
            one = tomllib.loads(pair)
        except tomllib.TOMLDecodeError as error:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE as in TOML: {error}", param_hint="--set") from None
        merged = over(merged, one)
    return merged
