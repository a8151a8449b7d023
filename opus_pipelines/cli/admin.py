"""Commands that look after the lake: rollback. They write under the lake's lock and load neither Dagster nor torch."""

from datetime import UTC, datetime

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.cli.write import note


@click.command()
@click.argument("snapshot", required=False)
@click.pass_obj
def rollback(options: Options, snapshot: str | None) -> None:
    """Make an earlier snapshot the current one again. Without SNAPSHOT, lists those there are.

    SNAPSHOT is an id that the list shows, or the beginning of one. Nothing is removed; a rebuild publishes again when
    history, settings or code have changed, and not before (`opus rebuild --publish` does at once).

    \b
    Example:
      opus rollback w3f9
    """
    from opus_pipelines.wkg import retention as back

    lake = options.lake()
    if snapshot is None:
        names = ("wkg/tasks", "wkg/edges", "wkg/cases")
        rows = [
            (c.snapshot, c.published_at, *map(c.counts.get, names), c.is_current, len(c.contracts))
            for c in back.choices(lake)
        ]
        title = "Snapshots" if rows else "No snapshot yet; `opus rebuild` makes one"
        show.table(
            ("snapshot", "published", "tasks", "edges", "cases", "current", "contracts made from it"), rows, title
        )
        return
    back.chosen(lake, snapshot)  # what is not there is said before a lake is made or a lock waited for
    with lake.lock():
        before, choice = back.roll_back(lake, snapshot, datetime.now(UTC))
    note(
        f"snapshot {choice.snapshot} is current"
        + (" as it was" if before == choice.snapshot else f", and {before} no more")
    )
    if stale := back.stale(lake):
        note(f"made from another snapshot: {', '.join(stale)}; `opus generate` makes them anew")
