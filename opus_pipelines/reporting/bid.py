"""The bid for a client's contracts: what a year of the work of its intakes costs, its price, its people and its risk.

Each intake stands for a kind of work; its best workflow says what one case costs. Draws of what is not certain (the
mean cost of each way of working, the cost of one case, the number of cases) tell how likely the margin is.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from opus_pipelines.core import formatting
from opus_pipelines.core.errors import InputError
from opus_pipelines.reporting.pages.render import environment, inline
from opus_pipelines.reporting.tasks import Row, rows

DRAWS = 4_000
MONTHS = 12
Z = 1.96  # of a 95 % interval
ASSUMED_FACTOR = 2.0  # a cost that nobody observed lies within this factor of its estimate with 95 %
WAGE_RISE = 0.1
VOLUME_LOSS = 0.2
# the least share of the cost that was observed, and the least number of similar cases behind each workflow
GRADES = {"A": (0.9, 30), "B": (0.7, 10), "C": (0.4, 3)}
LOWEST_GRADE = "D"


@dataclass(frozen=True)
class Terms:
    """What the bidder states.

    Attributes:
        margin: the share of the price that is to be left, below 1.
        volumes: cases a month by intake folder; "" holds for all others. Where neither is there, history tells.
        hours_a_month: hours that one person works on cases in a month.
    """

    margin: float
    volumes: Mapping[str, float]
    hours_a_month: float


@dataclass(frozen=True)
class Bid:
    """A bid. Figures whose names begin with `year_` are for one year; all other dollars are for one case.

    Attributes:
        lines: a row for each kind of work.
        people: hours a month and people by group, of the steps that people do.
        assumptions: what would change the yearly result, the largest change first.
        total: one row: cost, price, margin with its 90 % interval, the risk of a loss, and the grade of the evidence.
    """

    client: str
    terms: Terms
    lines: Sequence[Row]
    people: Sequence[Row]
    assumptions: Sequence[Row]
    total: Row

    @property
    def sheets(self) -> dict[str, tuple[list[str], list[list[Any]]]]:
        """The columns and the rows of each table of the bid, by the table's name; a table without rows is left out."""
        tables = {"lines": self.lines, "people": self.people, "assumptions": self.assumptions, "total": [self.total]}
        return {name: (list(rows[0]), [list(row.values()) for row in rows]) for name, rows in tables.items() if rows}


def bid(connection: duckdb.DuckDBPyConnection, client: str, contract: str | None, terms: Terms) -> Bid:
    """Returns the bid for a client's contracts, or for one of them.

    Raises InputError where no workflow is published for them, where a volume is stated for an intake that is not
    there, and where no volume or no cost is known of any kind of work.
    """
    lines = rows(connection, "bid_lines", client=client, contract=contract)
    if not lines:
        raise InputError(f"no workflow is published for client {client!r}, contract {contract or 'any'!r}")
    intakes = [line["intake"] for line in lines]
    if unknown := terms.volumes.keys() - {*intakes, ""}:
        raise InputError(f"--volume names {', '.join(sorted(unknown))}; the intakes are {', '.join(intakes)}")
    steps = defaultdict(list)
    for step in rows(connection, "bid_steps", client=client, contract=contract):
        steps[step["workflow_id"]].append(step)
    for line in lines:
        _price(line, terms)
    counted = [line for line in lines if line["year_cost_usd"] is not None]
    if not counted:
        raise InputError(
            "no kind of work has both a cost and a volume: state --volume CASES_A_MONTH, and see `opus best` for costs"
        )
    draws = _Draws.of(counted, steps)
    total = _total(lines, counted, draws, terms)
    return Bid(client, terms, lines, _people(counted, steps, terms), _assumptions(counted, steps, total), total)


def _price(line: Row, terms: Terms) -> None:
    """Adds volume, costs, price and grade to a line; what is not known stays NULL."""
    stated = terms.volumes.get(line["intake"], terms.volumes.get(""))
    volume = line["cases_a_month"] if stated is None else stated
    cost = line["cost_usd"]
    line |= {
        "cases_a_month": volume,
        "volume_basis": "not known" if volume is None else "history" if stated is None else "stated",
        "unit_cost_usd": None,
        "unit_price_usd": None,
        "year_cost_usd": None,
        "year_price_usd": None,
        "grade": None,
    }
    if cost is not None:
        line["unit_cost_usd"] = cost + line["repetition_usd"]
        line["unit_price_usd"] = line["unit_cost_usd"] / (1 - terms.margin)
        line["grade"] = grade(1 - (line["cost_assumed_share"] or 0), line["similar_cases"] or 0)
        if volume is not None:
            line["year_cost_usd"] = MONTHS * volume * line["unit_cost_usd"]
            line["year_price_usd"] = MONTHS * volume * line["unit_price_usd"]


def grade(observed_share: float, similar_cases: float) -> str:
    """Returns the grade of evidence, A to D: by the share of the cost that was observed, and by the similar cases."""
    for letter, (share, cases) in GRADES.items():
        if observed_share >= share and similar_cases >= cases:
            return letter
    return LOWEST_GRADE


@dataclass(frozen=True)
class _Draws:
    """A year's cost [draws] of all lines, and its price [draws]: both follow the number of cases."""

    cost: np.ndarray
    price: np.ndarray

    @classmethod
    def of(cls, lines: Sequence[Row], steps: Mapping[str, Sequence[Row]]) -> "_Draws":
        rng = np.random.default_rng(0)
        ways: dict[tuple[str, str], np.ndarray] = {}  # a way's mean cost is drawn once: lines that use it err together
        cost, price = np.zeros(DRAWS), np.zeros(DRAWS)
        for line in lines:
            mean, variance = np.full(DRAWS, line["repetition_usd"]), 0.0
            for step in steps[line["workflow_id"]]:
                if step["cost_usd"] is not None:
                    way = step["title"], step["done_by"]
                    if way not in ways:
                        ways[way] = _factors(step, rng)
                    mean = mean + step["cost_usd"] * ways[way]
                    variance += (step["cost_usd_deviation"] or 0.0) ** 2
            cases = rng.poisson(MONTHS * line["cases_a_month"], DRAWS)
            cost += np.maximum(0, cases * mean + np.sqrt(cases * variance) * rng.standard_normal(DRAWS))
            price += cases * line["unit_price_usd"]
        return cls(cost, price)


def _factors(step: Row, rng: np.random.Generator) -> np.ndarray:
    """Returns draws of what the mean cost of a way of working may be, as factors on its estimate."""
    return np.maximum(0, 1 + _relative_error(step) * rng.standard_normal(DRAWS))


def _relative_error(step: Row) -> float:
    """Returns the standard deviation of a way's mean cost, relative to it; 0 where it is a stated price."""
    if step["cost_basis"] == "declared" or not step["cost_usd"]:
        return 0.0
    if step["cost_basis"] in ("observed", "rate") and step["cost_usd_deviation"] is not None:
        return float(step["cost_usd_deviation"] / np.sqrt(step["cost_n"]) / step["cost_usd"])
    return (ASSUMED_FACTOR - 1) / Z


def _total(lines: Sequence[Row], counted: Sequence[Row], draws: _Draws, terms: Terms) -> Row:
    cost = sum(line["year_cost_usd"] for line in counted)
    price = sum(line["year_price_usd"] for line in counted)
    margins = 1 - draws.cost / np.maximum(draws.price, 1e-9)
    needed = np.quantile(draws.cost / np.maximum((1 - terms.margin) * draws.price, 1e-9), 0.9)
    low, high = np.quantile(margins, (0.05, 0.95))
    observed = sum(line["year_cost_usd"] * (1 - (line["cost_assumed_share"] or 0)) for line in counted) / (cost or 1)
    kept = [
        (line["cases_a_month"], line["p_deadline"] or 0)
        for line in counted
        if line["deadline_hours"] is not None and line["cases_a_month"] > 0
    ]
    return {
        "year_cost_usd": cost,
        "year_price_usd": price,
        "margin": 1 - cost / price if price else None,
        "margin_p05": float(low),
        "margin_p95": float(high),
        "p_loss": float(np.mean(draws.cost > draws.price)),
        "price_factor_for_margin_with_90_percent": float(max(1.0, needed)),
        "share_within_deadline": sum(v * p for v, p in kept) / sum(v for v, _ in kept) if kept else None,
        "not_priced": [line["intake"] for line in lines if line["year_cost_usd"] is None],
        "unknown_steps": sum(line["cost_unknown_steps"] or 0 for line in counted),
        "grade": grade(observed, min(line["similar_cases"] or 0 for line in counted)),
    }


def _people(lines: Sequence[Row], steps: Mapping[str, Sequence[Row]], terms: Terms) -> list[Row]:
    hours: dict[str, float] = defaultdict(float)
    unknown: dict[str, int] = defaultdict(int)
    for line in lines:
        for step in steps[line["workflow_id"]]:
            if step["actor_kind"] == "human":
                unknown[step["done_by"]] += step["duration_ms"] is None
                hours[step["done_by"]] += line["cases_a_month"] * (step["duration_ms"] or 0) / 3_600_000
    return [
        {
            "group": group,
            "hours_a_month": worked,
            "people": worked / terms.hours_a_month,
            "steps_of_unknown_time": unknown[group],
        }
        for group, worked in sorted(hours.items(), key=lambda one: (-one[1], one[0]))
    ]


def _assumptions(lines: Sequence[Row], steps: Mapping[str, Sequence[Row]], total: Row) -> list[Row]:
    """Returns what would change a year's result, the largest change first."""
    wages = sum(
        MONTHS * line["cases_a_month"] * (step["cost_human_usd"] or 0)
        for line in lines
        for step in steps[line["workflow_id"]]
    )
    year = [(MONTHS * line["cases_a_month"], line) for line in lines]
    repeated = sum(cases * line["repetition_usd"] for cases, line in year)
    failed = sum(cases * line["unit_price_usd"] * (1 - (line["success_probability"] or 0)) for cases, line in year)
    dearer = sum(cases * max(0, (line["history_cost_usd"] or 0) - line["unit_cost_usd"]) for cases, line in year)
    left = total["year_price_usd"] - total["year_cost_usd"]
    found = [
        ("Cases that do not succeed are paid, too", "they are not", -failed),
        ("The workflows are followed", "cases cost what similar cases of history cost", -dearer),
        ("Wages stay as they are", f"they rise by {formatting.share(WAGE_RISE)}", -WAGE_RISE * wages),
        ("Volumes are as in the lines", f"they are {formatting.share(VOLUME_LOSS)} lower", -VOLUME_LOSS * left),
        ("Steps are repeated as in similar cases", "they are repeated twice as often", -repeated),
    ]
    ways: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        for step in steps[line["workflow_id"]]:
            if step["cost_usd"] is not None:
                more = Z * _relative_error(step) * step["cost_usd"]
                ways[step["title"], step["done_by"]] += MONTHS * line["cases_a_month"] * more
    found += [
        (f"{title} by {done_by} costs what is expected", "it costs the upper end of its 95 % interval", -more)
        for (title, done_by), more in ways.items()
    ]
    ranked = sorted((one for one in found if one[2]), key=lambda one: (one[2], one[0]))
    return [{"assumption": text, "otherwise": other, "year_usd": change} for text, other, change in ranked]


def render_bid(offer: Bid) -> str:
    """Returns the HTML of the page; equal bids give equal text."""
    return (
        environment()
        .get_template("bid.html")
        .render(bid=offer, heads=HEADS, lines=list(map(cells, offer.lines)), sentences=sentences(offer), **inline())
    )


HEADS = ("contract", "intake", "cases a month", "cost", "price", "price a year", "success", "lead time", "evidence")


def cells(line: Row) -> tuple[str, ...]:
    """Returns a line as texts, in step with HEADS."""
    volume = formatting.number(line["cases_a_month"], 1)
    deadline = formatting.deadline(line["deadline_hours"], line["p_deadline"])
    lead = formatting.hours(None if line["lead_hours_p50"] is None else 3_600_000 * line["lead_hours_p50"])
    success = formatting.share(line["success_probability"])
    if line["start_success_low"] is not None:
        low, high = (formatting.share(line[f"start_success_{end}"]) for end in ("low", "high"))
        success += f" ({low} to {high})"
    return (
        formatting.clean(line["contract"]),
        formatting.clean(line["intake"]),
        f"{volume} ({line['volume_basis']})" if line["cases_a_month"] is not None else line["volume_basis"],
        formatting.usd(line["unit_cost_usd"]),
        formatting.usd(line["unit_price_usd"]),
        formatting.usd(line["year_price_usd"]),
        success,
        ", ".join(filter(None, (lead, deadline))),
        line["grade"] or "-",
    )


def sentences(offer: Bid) -> list[str]:
    """Returns what the bid says in sentences, the most important first."""
    total, said = offer.total, []
    said.append(
        f"A year costs {formatting.usd(total['year_cost_usd'])} and is paid with "
        f"{formatting.usd(total['year_price_usd'])}: a margin of {formatting.share(total['margin'])} "
        f"({formatting.share(total['margin_p05'])} to {formatting.share(total['margin_p95'])} with 90 %)."
    )
    loss = formatting.share(total["p_loss"]) if total["p_loss"] >= 0.001 else "below 0.1 %"
    factor = total["price_factor_for_margin_with_90_percent"]
    said.append(
        f"The risk of a loss is {loss}. A margin of {formatting.share(offer.terms.margin)} is kept with 90 % at prices "
        f"{factor:.3f} times as high."
    )
    if (kept := total["share_within_deadline"]) is not None:
        said.append(f"{formatting.share(kept)} of the cases with a deadline keep it.")
    said.append(
        f"The grade of the evidence is {total['grade']}, of A to {LOWEST_GRADE}: it counts how much of the cost was "
        "observed, and the similar cases behind each workflow."
    )
    if total["not_priced"]:
        said.append(
            "Without a price, since their volume or their cost is not known, and in no total: "
            f"{', '.join(total['not_priced'])}. State --volume INTAKE=CASES_A_MONTH."
        )
    if total["unknown_steps"]:
        said.append(f"{total['unknown_steps']} steps of unknown cost are in no figure.")
    return said
