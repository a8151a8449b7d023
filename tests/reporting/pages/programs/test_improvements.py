"""The page of workflows improved by Reward: totals of each contract, what is drawn, and other currencies of a gain."""

from typing import Any

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.pages.programs.improvements import (
    ImprovementPage,
    improvement_page,
    render_improvements,
    worth,
    worth_curve,
)
from opus_pipelines.reporting.views import connect

PROGRAM = "a ::: process ::: A, by code ::: next :: e\ne ::: terminal ::: done :::"
AFTER = PROGRAM.replace("code", "human")


def row(workflow: str, before: float | None, after: float | None, **more: Any) -> dict[str, Any]:
    earned = None if before is None or after is None else after - before
    return {
        "client": "Acme",
        "contract": "Retail",
        "workflow_id": workflow,
        "rank": 1,
        "start": "published",
        "calls": 20,
        "is_better": after != before,
        "keeps_limits_before": True,
        "keeps_limits_after": True,
        "reward_before_usd": before,
        "reward_after_usd": after,
        "earned_usd": earned,
        "success_before": 0.7,
        "success_after": 0.9,
        "cost_before_usd": 2.0,
        "cost_after_usd": 8.0,
        "edits": ["'A': human instead of <code>"],
        "curve": [{"calls": 1, "worth": None}, {"calls": 3, "worth": before}, {"calls": 20, "worth": after}],
        "before": PROGRAM,
        "after": AFTER,
    } | more


def test_the_totals_of_a_contract_are_sums_over_its_searches() -> None:
    page = ImprovementPage([row("f1", 10.0, 12.5), row("f2", 3.0, 3.0), row("f3", 1.0, 2.0, start="history")], [])
    assert [
        (t["start"], t["searches"], t["better"], t["calls"], t["earned_usd"], t["cost_after_usd"]) for t in page.totals
    ] == [("history", 1, 1, 20, 1.0, 8.0), ("published", 2, 1, 40, 2.5, 16.0)]


def test_a_worth_is_money_or_success_and_says_where_a_limit_is_broken() -> None:
    assert worth(row("f1", 10.0, 12.5), "after") == "$12.50"
    assert worth(row("f1", None, None), "before") == "success 70.0 %"
    assert worth(row("f1", 10.0, 12.5, keeps_limits_before=False), "before").startswith("$10.00, ")


def test_the_curve_begins_where_the_limits_are_kept() -> None:
    drawn = worth_curve(row("f1", 10.0, 12.5))
    assert drawn is not None
    assert "12.50" in drawn
    assert drawn.count("L") == 1
    assert worth_curve(row("f1", 10.0, 12.5, curve=None)) is None
    assert worth_curve(row("f1", 10.0, 12.5, curve=[{"calls": 1, "worth": None}])) is None


def test_the_page_escapes_and_draws_what_is_better() -> None:
    found = [row("f1", 10.0, 12.5), row("f2", None, None, is_better=False)]
    page = ImprovementPage(found, found[:1])
    text = render_improvements(page)
    assert text == render_improvements(page)
    assert text.count("<svg") == 3
    assert "instead of &lt;code&gt;" in text


@pytest.mark.parametrize("client", [None, "Acme"])
def test_a_lake_without_searches_has_no_page(lake: Lake, client: str | None) -> None:
    assert improvement_page(connect(lake), client) is None
