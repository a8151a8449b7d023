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
    chart = Markup(bars_svg([(row["seconds"], row["status"] == "success") for row in reversed(page.nights)]))
    template = environment().get_template("nights.html")
    return template.render(page=page, chart=chart, number=formatting.number, **inline())


def bars_svg(nights: Sequence[tuple[float | None, bool]]) -> str:
    """Returns the seconds of each night as bars, the oldest on the left; `False` marks one that failed."""
    most = max((seconds or 0.0 for seconds, _ in nights), default=0.0) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(len(nights), 1)
    bars = []
    for place, (seconds, succeeded) in enumerate(nights):
        height = (HEIGHT - 2 * MARGIN) * (seconds or 0.0) / most
        x, y = MARGIN + place * step, HEIGHT - MARGIN - height
        kind, word = ("mine", "succeeded") if succeeded else ("failed", "failed")
        bars.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{height:.1f}">'
            f"<title>{seconds or 0:.1f} s, {word}</title></rect>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>Seconds of each night, the oldest on the left</title>{''.join(bars)}"
        f'<text x="4" y="{MARGIN - 8}" font-size="11" fill="currentColor">{most:.0f} s</text></svg>'
    )
