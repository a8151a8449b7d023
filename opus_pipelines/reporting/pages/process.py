"""Renders the page of a process: the map, variants, waits, rework and segments of one source and client.

The figures are rows of shipped queries (`sql/queries/process_*.sql`). Beside each table and sentence the page names its
query. The libraries in `libraries` draw the map and the charts in the browser.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import duckdb
from markupsafe import Markup

from opus_pipelines.core import formatting
from opus_pipelines.core.checkout import SQL
from opus_pipelines.lake.layout import slug
from opus_pipelines.reporting.pages.render import environment, inline, policy
from opus_pipelines.reporting.tasks import Row, dicts
from opus_pipelines.reporting.views import shipped_queries

MOST_PROCESSES = 50  # pages, those with the most cases
MOST_VARIANTS = 1_000
MOST_DOTS = 2_000
_LIBRARIES = ("cytoscape.min.js", "dagre.min.js", "chart.min.js")
_QUERIES = ("summary", "map", "ends", "lead_times", "waits", "rework", "costs", "segments", "months")
_Key = tuple[str, str | None]


@dataclass(frozen=True)
class Finding:
    """A sentence about the process, what it costs in dollars where that is known, and the query that has its rows."""

    text: str
    query: str
    usd: float | None = None


@dataclass(frozen=True)
class ProcessPage:
    """The rows of one source and client by query, and the contracts of the client that have ranked workflows.

    A query without rows for the process has an empty list in `rows`.
    """

    source: str
    client: str | None
    rows: defaultdict[str, list[Row]]
    contracts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"process__{slug(self.source)}{f'__{slug(self.client)}' if self.client is not None else ''}.html"

    @property
    def title(self) -> str:
        """Its heading."""
        return f"Process of {self.source}" + ("" if self.client is None else f" for {self.client}")

    @property
    def summary(self) -> Row:
        """The row of `process_summary`."""
        return self.rows["summary"][0]

    @property
    def selection(self) -> str:
        """The options by which `opus query` shows the same rows."""
        stated = {"source": self.source} | ({} if self.client is None else {"client": self.client})
        return " ".join(f'--set {name}="{value}"' for name, value in stated.items())

    @property
    def findings(self) -> list[Finding]:
        """What stands out, in words: first what costs the most dollars, then in the order of the sections."""
        return sorted(_findings(self), key=lambda finding: -(finding.usd or 0.0))


def process_pages(connection: duckdb.DuckDBPyConnection, client: str | None) -> list[ProcessPage]:
    """Returns the pages of all processes, or of those of a client; at most `MOST_PROCESSES`, by their cases.

    Each query runs once for all pages.
    """
    connection.execute("SET VARIABLE client = $1", [client])
    connection.execute("SET VARIABLE source = NULL")
    of: dict[_Key, defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name in _QUERIES:
        for row in dicts(connection.sql(shipped_queries()[f"process_{name}"].sql)):
            of[row["source"], row.get("client")][name].append(row)
    for name, most in (("variants", MOST_VARIANTS), ("cases", MOST_DOTS)):
        text = (SQL / "explain" / f"process_{name}.sql").read_text("utf-8")
        for row in dicts(connection.sql(text, params={"client": client, "most": most})):
            of[row["source"], row["client"]][name].append(row)
    contracts = connection.execute("SELECT client, contract FROM current_results ORDER BY ALL").fetchall()
    keys = sorted(
        (key for key in of if of[key]["summary"]), key=lambda key: (-of[key]["summary"][0]["cases"], str(key))
    )
    return [
        ProcessPage(source, client, of[source, client], tuple(k for c, k in contracts if c == client))
        for source, client in keys[:MOST_PROCESSES]
    ]


def render_process(page: ProcessPage) -> str:
    """Returns the HTML of a page; equal rows give equal text."""
    own = files(__package__).joinpath("process.js").read_text("utf-8")
    shown = inline()
    allowed = policy(str(shown["style"]), [*_libraries(), own, str(shown["script"])])
    return (
        environment()
        .get_template("process.html")
        .render(
            page=page,
            rows=page.rows,
            data=_json(_data(page)),
            libraries=[Markup(text) for text in _libraries()],
            own=Markup(own),
            **(shown | {"policy": allowed}),
        )
    )


@cache
def _libraries() -> tuple[str, ...]:
    folder = files(__package__).joinpath("libraries")
    return tuple(folder.joinpath(name).read_text("utf-8") for name in _LIBRARIES)


def _json(data: object) -> Markup:
    """Returns JSON that cannot end the element that it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _data(page: ProcessPage) -> Row:
    """Returns what the script of the page draws: activities by number, and all others by those numbers."""
    rows = page.rows
    titles = [row["activity"] for row in rows["costs"]]
    number = {title: place for place, title in enumerate(titles)}
    waits = {row["waits_at"]: row["wait_hours_p50"] for row in rows["waits"] if row["level"] == "activity"}
    return {
        "activities": [
            [formatting.clean(row["activity"]), row["steps"], waits.get(row["activity"])] for row in rows["costs"]
        ],
        "arcs": [
            [number.get(row["activity"]), number.get(row["next_activity"]), row["times"], row["wait_hours_p50"]]
            for row in rows["map"]
        ],
        "variants": [
            [[number[title] for title in row["activities"]], row["cases"], row["lead_hours_p50"]]
            for row in rows["variants"]
        ],
        "weeks": [[row["second"], row["began"], row["ended"]] for row in rows["cases"] if row["kind"] == "week"],
        "dots": [[row["second"], row["lead_hours"], row["variant"]] for row in rows["cases"] if row["kind"] == "dot"],
        "cases": page.summary["cases"],
    }


def _findings(page: ProcessPage) -> Iterator[Finding]:
    rows, summary = page.rows, page.summary
    for variant in rows["variants"][:1]:
        share = formatting.share(variant["cases"] / summary["cases"])
        yield Finding(f"{share} of the cases take the most frequent of {summary['variants']:,} paths.", "process_paths")
    waits = [row for row in rows["waits"] if row["level"] == "activity"]
    for wait in waits[:1]:
        hours = formatting.hours(3_600_000 * wait["wait_hours_p50"])
        yield Finding(
            f"Cases wait longest before {wait['waits_at']}: {hours} in the median, "
            f"{formatting.share(wait['share'])} of all waiting time.",
            "process_waits",
        )
    for again in rows["rework"][:3]:
        cost = "" if again["cost_usd"] is None else f" The repetitions cost {formatting.usd(again['cost_usd'])}."
        yield Finding(
            f"{again['activity']} is done again in {formatting.share(again['share_of_cases'])} of the cases.{cost}",
            "process_rework",
            again["cost_usd"],
        )
    for segment in _clear(rows["segments"])[:3]:
        yield Finding(
            f"Where {segment['attribute']} is {segment['value']}, the mean of {segment['measure']} is "
            f"{segment['mean']:,.2f} instead of {segment['mean_others']:,.2f} in the other cases (difference "
            f"{segment['difference_low']:+,.2f} to {segment['difference_high']:+,.2f}).",
            "process_segments",
        )
    for month in rows["months"][:1]:
        before, now = month["lead_hours_p50_before"], month["lead_hours_p50"]
        if before and now and abs(now / before - 1) >= 0.1:
            yield Finding(
                f"The median lead time went from {formatting.hours(3_600_000 * before)} in {month['month_before']} to "
                f"{formatting.hours(3_600_000 * now)} in {month['month']}.",
                "process_months",
            )


def _clear(segments: Sequence[Row]) -> list[Row]:
    """Returns the clear differences, of two values of one attribute the one with the smaller number of cases."""
    seen: set[tuple[str, str]] = set()
    clear = []
    for row in sorted((row for row in segments if row["is_clear"]), key=lambda row: row["cases"]):
        if (row["attribute"], row["measure"]) not in seen:
            seen.add((row["attribute"], row["measure"]))
            clear.append(row)
    return [row for row in segments if row in clear]
