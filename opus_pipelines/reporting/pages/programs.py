"""The page of searches for better workflow programs: every method with its curve, the best program before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import duckdb
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.formatting import number
from opus_pipelines.reporting.graphs.model import Change, Picture, PictureEdge, PictureNode
from opus_pipelines.reporting.graphs.svg import svg
from opus_pipelines.reporting.pages.render import environment, inline
from opus_pipelines.reporting.tasks import Row, dicts
from opus_pipelines.reporting.views import shipped_queries
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, read_core

MOST_STEPS = 80  # of a program that is drawn
WIDTH, HEIGHT, MARGIN = 640.0, 180.0, 34.0
KINDS = (("process", "process"), ("decision", "decision"), ("terminal", "terminal"))


def program_picture(program: CoreProgram, title: str, before: CoreProgram | None = None) -> Picture:
    """Returns a program as a picture; with `before`, steps whose instruction is new are marked as added."""
    known = {step.instruction for step in before.steps} if before else None
    steps = program.steps[:MOST_STEPS]
    keys = {step.key for step in steps}
    nodes = tuple(
        PictureNode(
            step.key,
            step.name,
            step.instruction,
            step.instruction,
            step.kind,
            change=Change.SAME if known is None or step.instruction in known else Change.ADDED,
        )
        for step in steps
    )
    words: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        for key, target in step.branches:
            if target.lower() in keys:
                words.setdefault((step.key, target.lower()), []).append("" if step.kind == "process" else key)
    edges = tuple(PictureEdge(a, b, 0.1, " / ".join(filter(None, found))) for (a, b), found in words.items())
    left = len(program.steps) - len(steps)
    subtitle = f"{len(program.steps)} steps" + (f", the first {MOST_STEPS} shown" if left else "")
    return Picture(title, subtitle, nodes, edges, KINDS, ())


def curve_svg(points: Sequence[tuple[int, float]]) -> str:
    """Returns a learning curve as SVG: the best reward, from 0 to 1, by the number of calls."""
    last = max((call for call, _ in points), default=1)
    width, height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    places = [
        (MARGIN + width * call / last, HEIGHT - MARGIN - height * max(0.0, min(1.0, best))) for call, best in points
    ]
    line = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(places))
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img">'
        "<title>Best reward by calls of the reward</title>"
        f'<path d="M{MARGIN:.0f} {MARGIN:.0f}V{bottom:.0f}H{right:.0f}" fill="none" stroke="#66707d"/>'
        f'<path class="curve" d="{line}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        f'<text x="4" y="{MARGIN - 8:.0f}" font-size="11">{number(1.0, 2)}</text>'
        f'<text x="4" y="{HEIGHT - 12:.0f}" font-size="11">{number(0.0, 2)}</text>'
        f'<text x="{right:.0f}" y="{HEIGHT - 12:.0f}" font-size="11" text-anchor="end">{last:,} calls</text></svg>'
    )


def drawn(text: str, title: str, before: str | None = None) -> Markup:
    """Returns a program's text as SVG; with `before`, steps whose instruction is new are marked."""
    return Markup(svg(program_picture(read_core(text)[0], title, read_core(before)[0] if before else None)))


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
    template = environment().get_template("programs.html")
    return template.render(page=page, shown=shown, number=formatting.number, **inline())
