"""The command `opus forecast`: how running cases are expected to go on, and what to do now."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options, history_option
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.forecasts.publish import SourceForecast

MAX_REST, MAX_NEXT = 6, 3  # activities of the rest, and next activities, that the table shows
MS_PER_HOUR = 3_600_000.0


@click.command()
@click.argument("export", required=False, type=click.Path(path_type=Path))
@click.option("--source", help="Source of history to learn from. Default: the only one, or with no EXPORT all.")
@history_option("Folder of history")
@click.option(
    "--open",
    "open_rule",
    metavar="ATTRIBUTE[=VALUE]",
    help="Attribute of a case in history that says that it still runs. Default: told from the silence.",
)
@click.option("--limit-hours", type=click.FloatRange(min=0, min_open=True), help="Time that a case may take.")
@click.option("--limit-cost", type=click.FloatRange(min=0, min_open=True), help="Dollars that a case may cost.")
@click.option("--limit-steps", type=click.IntRange(min=1), help="Activities that a case may have.")
@click.option("--as-seen", is_flag=True, help="See each case at its last event, not at the newest event of the export.")
@click.option("--relative-dates", is_flag=True, help="Dates of EXPORT are not real: use no hours and weekdays.")
@click.option("--show", "shown", type=click.IntRange(min=0), default=20, show_default=True, help="Rows of the table.")
@click.pass_obj
def forecast(
    options: Options,
    export: Path | None,
    source: str | None,
    history: Path | None,
    open_rule: str | None,
    limit_hours: float | None,
    limit_cost: float | None,
    limit_steps: int | None,
    as_seen: bool,
    relative_dates: bool,
    shown: int,
) -> None:
    """Forecast running cases: next activities, the rest, remaining time and cost, success, and what to do now.

    EXPORT is a file or folder with running cases in the same format and columns as the source's history; the settings
    of the source read it. Without EXPORT the cases of history that are still open are forecast.

    The forecast is learnt from the history of the last rebuild. Intervals are 90 % intervals. A figure that history
    does not know (cost, success) is left empty. Rows go to the lake: views forecasts_cases, forecasts_next_steps and
    forecasts_limits.

    Limits of lead time, cost, steps and single activities are stated here, by the contract of a case, or in
    [forecasts.limits] for its source; of each kind the first of these counts.

    \b
    Example:
      opus forecast running.csv --source claims
      opus forecast --source claims --open status=running --limit-hours 72
      opus query forecasts
    """
    from opus_pipelines.forecasts.limits import COST, LEAD_TIME, STEPS, contract_limits, limits_of, stated
    from opus_pipelines.forecasts.publish import (
        ForecastOptions,
        LimitSources,
        forecast_source,
        publish,
        request_of,
        sources_of,
        stated_rule,
    )
    from opus_pipelines.forecasts.traces import export_records
    from opus_pipelines.wkg.estimates.next_activity import OpenRule

    if export is not None and not export.exists():
        raise InputError(f"{export}: no such file or folder; name an export of running cases")
    settings, lake = options.settings(paths__history=history), options.lake()
    known = sorted(sources_of(lake))
    if source is None and export is not None and len(known) > 1:
        raise click.UsageError(f"say with --source which of these sources EXPORT belongs to: {', '.join(known)}")
    if source is not None and export is not None and source not in known:
        raise InputError(f"no source {source!r} in the lake; there are: {', '.join(known) or 'none'}")
    names = known if source is None else [source]
    seconds = None if limit_hours is None else limit_hours * 3600
    whole = stated([(LEAD_TIME, seconds), (COST, limit_cost), (STEPS, limit_steps)])
    contracts = contract_limits(settings.paths.intakes)
    failed = []
    with lake.lock():
        for name in names:
            running, own = None, settings.forecasts.limits.get(name)
            limits = LimitSources(whole, contracts, limits_of(own) if own else ())
            rule = OpenRule.of(open_rule) if open_rule else stated_rule(lake, name, settings.forecasts)
            chosen = ForecastOptions(rule, limits, not relative_dates, not as_seen)
            if export is not None:
                folder = settings.paths.history / name
                running = export_records(lake, folder, export, settings.currency.usd_per_unit)
            try:
                made = forecast_source(lake, request_of(lake, name, running, chosen))
            except InputError as error:
                failed.append(f"{name}: {error}")
                continue
            publish(lake, made)
            _print(made, shown)
    if len(failed) == len(names):
        raise InputError("; ".join(failed) or "the lake has no source")
    for line in failed:
        click.echo(f"left out: {line}", err=True)


def _print(made: "SourceForecast", shown: int) -> None:
    steps: dict[str, list[dict[str, Any]]] = {}
    for row in made.next_steps:
        steps.setdefault(row["case_id"], []).append(row)
    rows = [
        (
            row["case_id"],
            row["last_activity"],
            ", ".join(f"{s['activity'] or 'end'} {s['probability']:.0%}" for s in steps[row["case_id"]][:MAX_NEXT]),
            _rest(row["rest"]),
            _interval(row, "remaining_ms", _time),
            _interval(row, "remaining_cost_usd", _usd),
            _share(row["p_success"]),
            _share(row["p_limit"]),
            _advice(row),
        )
        for row in made.cases[:shown]
    ]
    columns = (
        "case",
        "last step",
        "next",
        "rest",
        "remaining time",
        "remaining cost $",
        "success",
        "over limit",
        "do now",
    )
    show.table(columns, rows, f"{made.source}: {len(made.cases):,} running cases")
    if len(made.cases) > shown:
        click.echo(f"and {len(made.cases) - shown:,} more; the view forecasts_cases has all", err=True)


def _advice(row: dict[str, Any]) -> str:
    if row["do_next"] is None:
        return "nothing: it seems to have ended"
    return f"{row['do_next']} ({row['do_next_reason']})"


def _rest(rest: list[str]) -> str:
    more = f" and {len(rest) - MAX_REST} more" if len(rest) > MAX_REST else ""
    return " > ".join(rest[:MAX_REST]) + more


def _interval(row: dict[str, Any], name: str, text: Any) -> str:
    if row[name] is None:
        return "-"
    return f"{text(row[name])} [{text(row[f'{name}_low'])}, {text(row[f'{name}_high'])}]"


def _time(value_ms: float) -> str:
    if value_ms < MS_PER_HOUR:
        return f"{value_ms / 60_000:.0f} min"
    return (
        f"{value_ms / MS_PER_HOUR:.1f} h"
        if value_ms < 48 * MS_PER_HOUR
        else f"{timedelta(milliseconds=value_ms).days} d"
    )


def _usd(value: float) -> str:
    return f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
