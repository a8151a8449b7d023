"""The page of contracts' workflows before and after the search by Reward: what was earned, and by which edits."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import duckdb
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.reporting.pages.programs.pictures import curve_svg, drawn
from opus_pipelines.reporting.pages.render import inline, template_of
from opus_pipelines.reporting.tasks import rows

Row = dict[str, Any]
MOST_ROWS = 2_000  # of the table
MOST_DRAWN = 3  # improved workflows of each contract that are drawn, those that earn most


@dataclass(frozen=True)
class ImprovementPage:
    """Searches for better plans of published workflows, and those that are drawn."""

    rows: Sequence[Row]
    drawn: Sequence[Row]

    @property
    def totals(self) -> list[Row]:
        """For each contract and beginning: searches, those that found a better plan, calls, and dollars earned."""
        keyed = sorted(self.rows, key=_group)
        return [
            {
                "client": client,
                "contract": contract,
                "start": start,
                "searches": len(own),
                "better": sum(row["is_better"] for row in own),
                "calls": sum(row["calls"] for row in own),
                "earned_usd": _sum(row["earned_usd"] for row in own),
                "cost_before_usd": _sum(row["cost_before_usd"] for row in own),
                "cost_after_usd": _sum(row["cost_after_usd"] for row in own),
            }
            for (client, contract, start), own in ((key, list(group)) for key, group in groupby(keyed, key=_group))
        ]


def improvement_page(
    connection: duckdb.DuckDBPyConnection, client: str | None = None, contract: str | None = None
) -> ImprovementPage | None:
    """Returns the content of the page for the current results; None where no search was run for them."""
    found = rows(connection, "page_improvements", client=client, contract=contract)
    if not found:
        return None
    better = sorted((row for row in found if row["is_better"]), key=lambda row: -_gain(row))
    chosen: list[Row] = []
    for row in better:
        key = row["client"], row["contract"]
        if sum((one["client"], one["contract"]) == key for one in chosen) < MOST_DRAWN:
            chosen.append(row)
    return ImprovementPage(found, sorted(chosen, key=lambda row: (row["client"], row["contract"], -_gain(row))))


def render_improvements(page: ImprovementPage) -> str:
    """Returns the HTML of the page; equal rows give equal text."""
    shown = [
        {
            "row": row,
            "before": drawn(row["before"], "Before"),
            "after": drawn(row["after"], "After", row["before"]),
            "curve": worth_curve(row),
        }
        for row in page.drawn
    ]
    return template_of("opus_pipelines.reporting.pages.programs", "improvements.html").render(
        page=page,
        shown=shown,
        rows=page.rows[:MOST_ROWS],
        is_cut=len(page.rows) > MOST_ROWS,
        worth=worth,
        **inline(),
    )


def worth_curve(row: Row) -> Markup | None:
    """Returns the learning curve of a search as SVG; None where the row has none, or no plan kept the limits."""
    points = [(point["calls"], point["worth"]) for point in row["curve"] or () if point["worth"] is not None]
    if not points:
        return None
    worths = [worth for _, worth in points]
    unit = "success" if row["reward_after_usd"] is None else "Reward in dollars"
    return Markup(curve_svg(points, (min(worths), max(worths)), f"Best {unit} by scored workflows"))


def worth(row: Row, when: str) -> str:
    """Returns Reward before or after, success where no gain is stated; it says where a limit is broken."""
    reward = row[f"reward_{when}_usd"]
    told = f"success {formatting.share(row[f'success_{when}'])}" if reward is None else formatting.usd(reward)
    return told if row[f"keeps_limits_{when}"] else f"{told}, breaks a limit"


def _group(row: Row) -> tuple[str, str, str]:
    return row["client"], row["contract"], row["start"]


def _gain(row: Row) -> float:
    """Dollars earned; where no gain is stated, the success gained, which is below every cent that counts."""
    earned = row["earned_usd"]
    return float(row["success_after"] - row["success_before"] if earned is None else earned)


def _sum(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
