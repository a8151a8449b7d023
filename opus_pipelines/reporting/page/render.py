"""Renders a contract's page as HTML.

Jinja escapes every text, and the page's policy forbids whatever is not in the file itself.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.safe_text import clean
from opus_pipelines.decisions.text import decision_text
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


def render(page: ContractPage) -> str:
    """Returns the HTML of a page; equal rows give equal text."""
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
        _environment()
        .get_template("contract.html")
        .render(
            page=page,
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
            **_inline(),
        )
    )


def render_index(pages: Sequence[tuple[str, ContractPage]]) -> str:
    """Returns the HTML of a page with links to the others, given as (file name, page)."""
    return _environment().get_template("index.html").render(pages=pages, **_inline())


@cache
def _environment() -> Environment:
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
def _inline() -> dict[str, Markup]:
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
