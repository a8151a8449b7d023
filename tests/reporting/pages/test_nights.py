"""The page on the nights: figures, failures, and texts that stay texts."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.runs import record
from opus_pipelines.reporting.pages.nights import bars_svg, nights_page, render_nights
from opus_pipelines.reporting.views import connect, write_views_sql
from tests.lake.runs.night_rows import failed_night, night

FIRST = datetime(2026, 1, 30)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.ensure_empty()
    write_views_sql(lake)
    return lake


@pytest.mark.long
def test_the_page_shows_the_figures_and_the_failures_and_escapes_texts(lake: Lake) -> None:
    assert nights_page(connect(lake)) is None
    record(lake, night(1, seconds=10.0), 31)
    record(lake, failed_night(2, seconds=20.0, reason="<b>no room</b>"), 31)
    page = nights_page(connect(lake))
    assert page is not None
    html = render_nights(page)
    assert html == render_nights(page)
    assert "&lt;b&gt;no room&lt;/b&gt;" in html
    assert "<b>no room" not in html
    assert html.count('class="failed"') == 1
    assert "opus rebuild" in html


def bars(*seconds: float | None) -> str:
    return bars_svg(
        [
            {"seconds": value, "status": "failed" if value is None else "success", "started_at": FIRST + timedelta(n)}
            for n, value in enumerate(seconds)
        ]
    )


def test_a_bar_is_as_high_as_its_share_of_the_longest_night_and_has_its_day() -> None:
    svg = bars(10.0, None, 20.0)
    assert [part.split('"')[1] for part in svg.split(" height=")[1:]] == ["46.0", "0.0", "92.0"]
    assert re.findall(r">(2026-[-0-9]+)</text>", svg) == ["2026-01-30", "2026-01-31", "2026-02-01"]
    assert re.findall(r">(2026-[-0-9]+)</text>", bars(*[1.0] * 9)) == [
        "2026-01-30",
        "2026-02-01",
        "2026-02-03",
        "2026-02-05",
        "2026-02-07",
    ]
