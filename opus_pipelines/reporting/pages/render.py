"""Renders the pages of contracts and of flows from utterances as HTML.

Jinja escapes every text, and the page's policy forbids whatever is not in the file itself.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import duckdb
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.formatting import clean
from opus_pipelines.intakes.decisions.record import decision_text
from opus_pipelines.lake.layout import slug
from opus_pipelines.reporting.graphs.swimlane_svg import swimlane_svg
from opus_pipelines.reporting.pages.contract import (
    MOST_LEFT_OUT,
    ContractPage,
    Scale,
    known_cost,
    mean,
    paired,
    total,
)
from opus_pipelines.reporting.pages.flows import FlowPage, Retrieved, difference_svg, flow_svg, flow_text
from opus_pipelines.reporting.tasks import Row
from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import described
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import Flow, activities, identified

_OWN = "opus_pipelines.reporting.pages"  # the package of the templates and of what they include
FLOW_LIST = "flows.html"
MOST_FLOWS = 500  # of a contract that get a page; the list names all
_MOST_ROWS = 5_000  # of the list


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
            of_unknown_kind=sum(row.get("steps_of_unknown_kind") or 0 for row in best),
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
        loader=PackageLoader(_OWN, "."),
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
        "printable": lambda text: "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text),
        "paired_with": paired,
        "decision": decision_text,
        "slug": slug,
    }
    environment.globals |= {
        "within": formatting.within,
        "deadline": formatting.deadline,
        "is_far": formatting.is_far,
        "reward_of": _reward_of,
        "is_assumed": formatting.is_on_assumed_success,
        "left_out": formatting.left_out,
        "assumed": formatting.assumed,
        "costs_of_unknown_kind": formatting.costs_of_unknown_kind,
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
    style, script = (files(_OWN).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    return {"style": Markup(style), "script": Markup(script), "policy": policy(style, [script])}


def policy(style: str, scripts: Sequence[str]) -> Markup:
    """Returns the content security policy that allows this style and these scripts, and nothing else."""
    allowed = " ".join(f"'{_hash(script)}'" for script in scripts)
    return Markup(
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- flows from utterances


@dataclass(frozen=True)
class _Listed:
    row: Row
    page: str | None


def flow_rows(connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None) -> list[Row]:
    """Returns the rows of the newest batch of each contract, or of one, with scores where there is a reference."""
    sql = (SQL / "explain" / "page_flows.sql").read_text("utf-8")
    found = connection.execute(sql, {"client": client, "contract": contract, "most": _MOST_ROWS})
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
        rows=listed, most=_MOST_ROWS, is_cut=len(rows) == _MOST_ROWS, number=formatting.number, **inline()
    )
    return {FLOW_LIST: text, **pages}


def flow_page(page: FlowPage) -> str:
    """Returns the HTML of the page of a flow; equal pages give equal texts."""
    operations = difference(identified(page.prior), page.flow) if page.prior else ()
    return (
        environment()
        .get_template("flow.html")
        .render(
            page=page,
            picture=Markup(difference_svg(page.prior, page.flow) if page.prior else flow_svg(page.flow)),
            operations=[described(each) for each in operations],
            text=flow_text(page.flow),
            text_before=flow_text(page.prior) if page.prior else "",
            used=set(activities(page.flow)),
            **inline(),
        )
    )


def flow_page_of(row: Row) -> str:
    """Returns the HTML of one flow: the flow before and after, what changed, the texts, and what was retrieved."""
    flow = parse_ir(row["sequence"]) if row["sequence"] else read_bpmn(row["bpmn"].encode()).flow
    found = tuple(Retrieved(r["activity"], r["description"] or "", r["score"]) for r in row["retrieved"] or ())
    name = f"{row['client']} / {row['contract']}: {row['item']}"
    prior = parse_ir(row["prior"]) if row["prior"] else None
    return flow_page(FlowPage(Flow(flow.body, name), prior, row["utterance"] or "", found))
