"""Renders the pages of contracts, of workflow programs and of flows from utterances as HTML.

Jinja escapes every text, and the page's policy forbids whatever is not in the file itself.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

import duckdb
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.safe_text import clean
from opus_pipelines.decisions.text import decision_text
from opus_pipelines.flow_pages.page import FlowPage, Retrieved, flow_page
from opus_pipelines.flows.formats.bpmn_reader import read_bpmn
from opus_pipelines.flows.formats.core_text import CoreProgram, read
from opus_pipelines.flows.formats.python_ir import parse
from opus_pipelines.flows.model import Flow
from opus_pipelines.lake.layout import slug
from opus_pipelines.reporting.graphs.model import Change, Picture, PictureEdge, PictureNode
from opus_pipelines.reporting.graphs.svg import svg
from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg
from opus_pipelines.reporting.page.contract import (
    MOST_LEFT_OUT,
    ContractPage,
    Row,
    Scale,
    known_cost,
    mean,
    paired,
    total,
)

FLOW_LIST = "flows.html"
MOST_FLOWS = 500  # of a contract that get a page; the list names all
MOST_ROWS = 5_000  # of the list
MOST_STEPS = 80  # of a program that is drawn
WIDTH, HEIGHT, MARGIN = 640.0, 180.0, 34.0
KINDS = (("process", "process"), ("decision", "decision"), ("terminal", "terminal"))


def render(page: ContractPage, flows: str | None = None) -> str:
    """Returns the HTML of a page; equal rows give equal text. `flows`: the file of the page of flows, to link to."""
    best = page.to_run
    rewards = Scale.of(
        *(
            row[name]
            for row in best
            for name in ("reward_usd", "reward_usd_p05", "reward_usd_p95", "baseline_reward_usd")
        )
    )
    costs = Scale.of(*(row[name] for row in best for name in ("cost_usd", "baseline_cost_usd")))
    tasks = Scale.of(*(row[name] for row in page.costs for name in ("cost_usd", "baseline_cost_usd")))
    cost = known_cost(best)
    return (
        environment()
        .get_template("contract.html")
        .render(
            page=page,
            flows=flows,
            head=page.head,
            best=best,
            rewards=rewards,
            costs=costs,
            tasks=tasks,
            reward=total(best, "reward_usd"),
            against=paired(best, "saving_usd", "baseline_cost_usd"),
            without_gain=sum(row["gain_usd"] is None for row in best),
            success=mean(best, "success_probability"),
            cost=cost.usd,
            cost_rests_on=formatting.assumed(cost.assumed_share, cost.unknown_steps),
            baseline_success=mean(best, "baseline_success"),
            pictures=[
                (row, Markup(swimlane_svg(page.pictures[row["workflow_id"]])))
                for row in page.best
                if row["workflow_id"] in page.pictures
            ],
            **inline(),
        )
    )


def render_index(pages: Sequence[tuple[str, ContractPage]], others: Sequence[tuple[str, str]] = ()) -> str:
    """Returns the HTML of a page with links to the others, given as (file name, page).

    `others` are pages that belong to no contract: (file name, title).
    """
    return environment().get_template("index.html").render(pages=pages, others=others, **inline())


@cache
def environment() -> Environment:
    """Returns the templates of the pages, with their filters."""
    environment = Environment(
        loader=PackageLoader("opus_pipelines.reporting.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "usd": formatting.usd,
        "share": formatting.share,
        "hours": formatting.hours,
        "number": formatting.number,
        "shown": _shown,
        "paired_with": paired,
        "decision": decision_text,
    }
    environment.globals |= {
        "within": formatting.within,
        "deadline": formatting.deadline,
        "is_far": formatting.is_far,
        "reward_of": _reward_of,
        "assumed": formatting.assumed,
        "total": total,
        "known_cost": known_cost,
        "most_left_out": MOST_LEFT_OUT,
    }
    return environment


def _reward_of(row: Row) -> str:
    """Formats the Reward, or states that no gain is stated."""
    return "no gain stated" if row["gain_usd"] is None else formatting.usd(row["reward_usd"])


def _shown(text: str | None) -> str:
    """Returns one line without control characters and direction overrides; a dash where the text is unknown."""
    return "–" if text is None else clean(text)


@cache
def inline() -> dict[str, Markup]:
    """Returns style and script for the page, and the content security policy that allows only these two."""
    style, script = (
        files("opus_pipelines.reporting.page").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        f"form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- workflow programs


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
    every = _rows(connection, "FROM programs_searches ORDER BY search, best_select DESC, method, seed")
    if not every:
        return None
    best = [next(own) for _, own in groupby(every, key=lambda row: row["search"])]
    points = _rows(connection, "FROM programs_curves ORDER BY call")
    curves = {
        row["search"]: [
            (p["call"], p["best"])
            for p in points
            if all(p[name] == row[name] for name in ("search", "method", "interpreter", "seed"))
        ]
        for row in best
    }
    from opus_pipelines.reporting.views import shipped_queries

    return ProgramPage(_rows(connection, shipped_queries()["programs"].sql), best, curves)


def render_programs(page: ProgramPage) -> str:
    """Returns the HTML of the page; equal rows give equal text."""
    shown = [
        {
            "row": row,
            "before": _drawn(row["before"], "Before"),
            "after": _drawn(row["after"], "After", row["before"]),
            "curve": Markup(curve_svg(page.curves[row["search"]])),
        }
        for row in page.best
    ]
    template = environment().get_template("programs.html")
    return template.render(page=page, shown=shown, number=formatting.number, **inline())


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
    """Returns a learning curve as SVG: the best reward by the number of calls, from 0 to 1."""
    last = max((call for call, _ in points), default=1)
    width, height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    places = [
        (MARGIN + width * call / last, HEIGHT - MARGIN - height * max(0.0, min(1.0, best))) for call, best in points
    ]
    line = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(places))
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img">'
        f"<title>Best reward by calls of the reward</title>"
        f'<path d="M{MARGIN:.0f} {MARGIN:.0f}V{bottom:.0f}H{right:.0f}" fill="none" stroke="#66707d"/>'
        f'<path class="curve" d="{line}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        f'<text x="4" y="{MARGIN + 4:.0f}" font-size="11">1.0</text>'
        f'<text x="4" y="{bottom:.0f}" font-size="11">0</text>'
        f'<text x="{right:.0f}" y="{HEIGHT - 12:.0f}" font-size="11" text-anchor="end">{last:,} calls</text></svg>'
    )


def _drawn(text: str, title: str, before: str | None = None) -> Markup:
    return Markup(svg(program_picture(read(text)[0], title, read(before)[0] if before else None)))


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    found = connection.sql(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


# --- flows from utterances


@dataclass(frozen=True)
class _Listed:
    row: Row
    page: str | None


def flow_rows(connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None) -> list[Row]:
    """Returns the rows of the newest batch of each contract, or of one, with scores where there is a reference."""
    sql = (files("sql") / "explain" / "page_flows.sql").read_text("utf-8")
    found = connection.execute(sql, {"client": client, "contract": contract, "most": MOST_ROWS})
    columns = [column[0] for column in found.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def render_flows(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the HTML of the list and of each flow by file name, the list first; nothing where there is no row."""
    if not rows:
        return {}
    listed: list[_Listed] = []
    pages: dict[str, str] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["client"], row["contract"]
        counts[key] = counts.get(key, 0) + 1
        name = None
        if row["status"] == "written" and counts[key] <= MOST_FLOWS:
            name = f"{slug(row['client'])}__{slug(row['contract'])}__flow_{counts[key]:04}.html"
            pages[name] = flow_page_of(row)
        listed.append(_Listed(row, name))
    template = environment().get_template(FLOW_LIST)
    text = template.render(
        rows=listed, most=MOST_ROWS, is_cut=len(rows) == MOST_ROWS, number=formatting.number, **inline()
    )
    return {FLOW_LIST: text, **pages}


def flow_page_of(row: Row) -> str:
    """Returns the HTML of one flow: the flow before and after, what changed, the texts, and what was retrieved."""
    flow = parse(row["sequence"]) if row["sequence"] else read_bpmn(row["bpmn"].encode()).flow
    found = tuple(Retrieved(r["activity"], r["description"] or "", r["score"]) for r in row["retrieved"] or ())
    name = f"{row['client']} / {row['contract']}: {row['item']}"
    prior = parse(row["prior"]) if row["prior"] else None
    return flow_page(FlowPage(Flow(flow.body, name), prior, row["utterance"] or "", found))
