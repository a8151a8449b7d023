"""The page of searches for better workflow programs: every method, and the best program before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import duckdb
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.reporting.pages.programs.pictures import curve_svg, drawn
from opus_pipelines.reporting.pages.render import inline, template_of
from opus_pipelines.reporting.tasks import dicts
from opus_pipelines.reporting.views import shipped_queries

Row = dict[str, Any]


@dataclass(frozen=True)
class ProgramPage:
    """Rows of the shipped query `programs`, the best search of each experiment, and its learning curve."""

    methods: Sequence[Row]
    best: Sequence[Row]
    curves: Mapping[str, Sequence[tuple[int, float]]]


def program_page(connection: duckdb.DuckDBPyConnection) -> ProgramPage | None:
    """Returns the content of the page; None where the lake has no search.

    Of each experiment the search is shown that is best on the tasks to select on, not on those that were held out.
    """
    every = dicts(connection.sql("FROM programs_searches ORDER BY search, best_select DESC, method, seed"))
    if not every:
        return None
    best = [next(own) for _, own in groupby(every, key=lambda row: row["search"])]
    points = dicts(connection.sql("FROM programs_curves ORDER BY call"))
    curves = {
        row["search"]: [
            (p["call"], p["best"])
            for p in points
            if all(p[name] == row[name] for name in ("search", "method", "interpreter", "seed"))
        ]
        for row in best
    }
    return ProgramPage(dicts(connection.sql(shipped_queries()["programs"].sql)), best, curves)


def render_programs(page: ProgramPage) -> str:
    """Returns the HTML of the page; equal rows give equal text."""
    shown = [
        {
            "row": row,
            "before": drawn(row["before"], "Before"),
            "after": drawn(row["after"], "After", row["before"]),
            "curve": Markup(curve_svg(page.curves[row["search"]])),
        }
        for row in page.best
    ]
    template = template_of("opus_pipelines.reporting.pages.programs", "programs.html")
    return template.render(page=page, shown=shown, number=formatting.number, **inline())
