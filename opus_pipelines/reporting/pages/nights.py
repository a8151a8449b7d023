"""Renders the page on the nights: the last rebuild beside up to thirty before it, and what failed."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.reporting.pages.render import environment, inline
from opus_pipelines.reporting.tasks import Row, dicts, rows
from opus_pipelines.reporting.views import shipped_queries

WIDTH, HEIGHT, MARGIN = 640, 140, 24
MOST_DAYS = 8  # written below the bars: more would overlap


@dataclass(frozen=True)
class NightsPage:
    """Rows of the shipped query `nights`, newest first, and the figures of the last night beside those before."""

    nights: Sequence[Row]
    figures: Sequence[Row]

    @property
    def last(self) -> Row:
        """The newest night."""
        return self.nights[0]

    @property
    def failed(self) -> Sequence[Row]:
        """The nights that failed, newest first."""
        return [row for row in self.nights if row["status"] != "success"]


def nights_page(connection: duckdb.DuckDBPyConnection) -> NightsPage | None:
    """Returns the content of the page; None where no rebuild was recorded."""
    nights = dicts(connection.sql(shipped_queries()["nights"].sql))
    return NightsPage(nights, rows(connection, "nights")) if nights else None


def render_nights(page: NightsPage) -> str:
    """Returns the HTML of the page; equal rows give equal text."""
    chart = Markup(bars_svg(page.nights[::-1]))
    template = environment().get_template("nights.html")
    return template.render(page=page, chart=chart, number=formatting.number, **inline())


def bars_svg(nights: Sequence[Row]) -> str:
    """Returns the seconds of each night as bars over the day on which it began, the oldest on the left."""
    most = max((row["seconds"] or 0.0 for row in nights), default=0.0) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(len(nights), 1)
    every = -(-len(nights) // MOST_DAYS)  # the newest night has its day, and each `every`th one before it
    bars = []
    for place, row in enumerate(nights):
        seconds, day = row["seconds"] or 0.0, f"{row['started_at']:%Y-%m-%d}"
        height = (HEIGHT - 2 * MARGIN) * seconds / most
        x, y = MARGIN + place * step, HEIGHT - MARGIN - height
        kind, word = ("mine", "succeeded") if row["status"] == "success" else ("failed", "failed")
        bars.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{height:.1f}">'
            f"<title>{day}: {seconds:.1f} s, {word}</title></rect>"
        )
        if (len(nights) - 1 - place) % every == 0:
            middle = x + step * 0.4
            bars.append(
                f'<text x="{middle:.1f}" y="{HEIGHT - 8}" font-size="10" text-anchor="middle" fill="currentColor">'
                f"{day}</text>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>Seconds of each night, the oldest on the left</title>{''.join(bars)}"
        f'<text x="4" y="{MARGIN - 8}" font-size="11" fill="currentColor">{most:.0f} s</text></svg>'
    )
