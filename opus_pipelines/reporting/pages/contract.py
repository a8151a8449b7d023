"""Computes the content of a contract's page from rows of the lake: tiles, tables, and bars on common scales."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.formatting import clean, is_offered
from opus_pipelines.reporting.tasks import Row, rows
from opus_pipelines.reporting.views import only_results_of
from opus_pipelines.reporting.workflows import read_workflows
from opus_pipelines.workflow.files import AnnotatedWorkflow

MOST_INTENTIONS, MOST_PICTURES, MOST_LEFT_OUT = 200, 8, 200


@dataclass(frozen=True)
class ContractPage:
    """Rows of the contract's tables.

    `workflows` are ordered by intake, Intention and rank; `pictures` are by workflow id, of the best ones only.
    `left_out`: parts of the documents that were not read, and why; `rules`: rules that were not applied, with their
    questions; `in_force`: rules that bind the workflows, with their places.
    """

    head: Row
    workflows: Sequence[Row]
    costs: Sequence[Row]
    refused: Sequence[Row]
    sources: Sequence[Row]
    pictures: Mapping[str, AnnotatedWorkflow]
    left_out: Sequence[Row] = ()
    rules: Sequence[Row] = ()
    in_force: Sequence[Row] = ()

    @property
    def best(self) -> list[Row]:
        """The rank-1 workflows, at most MOST_INTENTIONS.

        Those with the largest Reward are kept, in the order of their intakes.
        """
        first = [row for row in self.workflows if row["rank"] == 1]
        largest = sorted(first, key=lambda r: -(r["reward_usd"] or 0.0))[:MOST_INTENTIONS]
        shown = {row["workflow_id"] for row in largest}
        return [row for row in first if row["workflow_id"] in shown]

    @property
    def shown(self) -> list[Row]:
        """Every ranked workflow of the Intentions on the page."""
        intentions = {row["intention_id"] for row in self.best}
        return [row for row in self.workflows if row["intention_id"] in intentions]

    @property
    def undecided(self) -> list[tuple[Row, Row | None]]:
        """Rank-1 workflows whose verdict is not clear, each with the second rank; None where it is the only one."""
        second = {row["intention_id"]: row for row in self.workflows if row["rank"] == 2}
        return [(row, second.get(row["intention_id"])) for row in self.best if row["verdict"] not in (None, "clear")]

    @property
    def judged(self) -> bool:
        """Whether any rank-1 workflow has a verdict."""
        return any(row["verdict"] for row in self.best)

    @property
    def to_run(self) -> list[Row]:
        """The rank-1 workflows that keep every constraint, or that a person chose all the same."""
        return [row for row in self.best if is_offered(row)]

    @property
    def infeasible(self) -> list[Row]:
        """Rank-1 workflows that violate a constraint, because no feasible one exists."""
        return [row for row in self.best if not is_offered(row)]

    @property
    def ranked(self) -> list[Row]:
        """The feasible workflows of the Intentions on the page."""
        return [row for row in self.shown if is_offered(row)]

    @property
    def outside(self) -> list[Row]:
        """The infeasible workflows of the Intentions on the page, which are in no ranking."""
        return [row for row in self.shown if not is_offered(row)]


def largest_intentions(workflows: Iterable[Row]) -> list[str]:
    """Returns the workflows whose pictures a page shows: the rank-1 ones with the largest Reward."""
    first = sorted(
        (row for row in workflows if row["rank"] == 1), key=lambda r: (-(r["reward_usd"] or 0.0), r["workflow_id"])
    )
    return [row["workflow_id"] for row in first[:MOST_PICTURES]]


@dataclass(frozen=True)
class Scale:
    """Maps dollars to per cent of a bar's width; zero is always on the scale."""

    low: float
    high: float

    @classmethod
    def of(cls, *values: float | None) -> "Scale":
        """Returns a scale that contains all known values."""
        known = [v for v in values if v is not None]
        return cls(min([0.0, *known]), max([0.0, *known]))

    def at(self, value: float) -> float:
        """Returns the position of a value, 0 to 100."""
        return 100 * (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def total(rows: Iterable[Row], column: str) -> float | None:
    """Returns the sum of a column, None where any value is unknown."""
    values = [row[column] for row in rows]
    return None if not values or any(v is None for v in values) else sum(values)


@dataclass(frozen=True)
class KnownCost:
    """A sum of known costs in dollars (None where none is known), its assumed share, and the steps left out."""

    usd: float | None
    assumed_share: float | None
    unknown_steps: int


def known_cost(rows: Sequence[Row]) -> KnownCost:
    """Returns the known cost of workflows."""
    known = [(row["cost_usd"], row["cost_assumed_share"] or 0.0) for row in rows if row["cost_usd"] is not None]
    whole = math.fsum(usd for usd, _ in known)
    assumed = math.fsum(usd * part for usd, part in known) / whole if whole > 0 else None
    return KnownCost(whole if known else None, assumed, sum(row["cost_unknown_steps"] or 0 for row in rows))


def paired(rows: Sequence[Row], column: str, against: str) -> tuple[float, float, int] | None:
    """Returns the sums of two columns over the rows that have both, and the number of these rows, or None."""
    both = [(row[column], row[against]) for row in rows if row[column] is not None and row[against] is not None]
    return (sum(a for a, _ in both), sum(b for _, b in both), len(both)) if both else None


def mean(rows: Sequence[Row], column: str) -> float | None:
    """Returns the mean over the rows that have a value, or None."""
    known = [row[column] for row in rows if row[column] is not None]
    return sum(known) / len(known) if known else None


def contract_pages(
    connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None
) -> Iterator[ContractPage]:
    """Yields a page for each contract with a result.

    Raises LakeError naming the existing results where the filter leaves none.
    """
    heads = rows(connection, "page_head", client=client, contract=contract)
    if not heads:
        existing = connection.sql("SELECT client || ' / ' || contract FROM current_results ORDER BY ALL").fetchall()
        raise LakeError(
            "no results for that; there are results of: " + ", ".join(clean(name) for (name,) in existing)
            if existing
            else "no results yet; `opus generate` makes them"
        )
    for head in heads:
        with only_results_of(connection, head["client"], head["contract"]):
            page = _page(connection, head)
        yield page


def _page(connection: duckdb.DuckDBPyConnection, head: Row) -> ContractPage:
    of = {"client": head["client"], "contract": head["contract"]}
    workflows = rows(connection, "page_workflows", **of)
    return ContractPage(
        head,
        workflows,
        rows(connection, "page_costs", **of),
        rows(connection, "page_refused", **of),
        rows(connection, "page_sources", **of),
        read_workflows(connection, largest_intentions(workflows)),
        rows(connection, "page_left_out", **of),
        rows(connection, "page_rules", **of),
        rows(connection, "page_in_force", **of),
    )
