"""What was discovered, for a person: one line of counts, and the most frequent tasks and edges."""

from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.discovery.discover import Discovered

_EPOCH, _MICROS_A_DAY = date(1970, 1, 1).toordinal(), 86_400_000_000
Table = tuple[str, list[str], list[list[Any]]]


def headline(name: str, found: Discovered) -> str:
    """Returns the counts of records, cases, tasks and edges, and the period."""
    counts, tasks = found.counts, found.tasks
    first, last = _day(pc.min(tasks["first_seen"])), _day(pc.max(tasks["last_seen"]))
    period = f", {first} to {last}" if first and last else ", no times"
    return (
        f"{name}: {counts.records:,} records, {counts.implementations:,} cases, {tasks.num_rows:,} tasks, "
        f"{found.edges.num_rows:,} edges{period}"
    )


def _day(moment: pa.Scalar) -> date | None:
    """Returns the day of a moment. Arrow's own conversion imports pandas, which takes a fifth of a second."""
    micros = moment.cast(pa.int64()).as_py()
    return None if micros is None else date.fromordinal(_EPOCH + micros // _MICROS_A_DAY)


def set_aside(found: Discovered) -> list[str]:
    """Returns a line for the cases that were set aside, and for each of the three most frequent reasons."""
    counts = found.counts
    if not counts.rejected:
        return []
    lines = [f"{counts.rejected:,} records rejected; {counts.quarantined:,} cases with such a record are not counted"]
    causes = [(count, reason) for (code, reason), count in found.rejects.items() if code != "case_quarantined"]
    return lines + [f"{count:,} records: {reason}" for count, reason in sorted(causes, reverse=True)[:3]]


def tables(found: Discovered, top: int) -> list[Table]:
    """Returns the `top` most frequent tasks and edges, each with its title and columns."""
    tasks = ("Tasks", found.tasks, "occurrences", ["task"])
    edges = ("Edges", found.edges, "transitions", ["src", "dst"])
    return [_table(title, rows, by, names, top) for title, rows, by, names in (tasks, edges)]


def _table(title: str, rows: pa.Table, by: str, names: list[str], top: int) -> Table:
    shown = rows.sort_by([(by, "descending"), *((name, "ascending") for name in names)]).slice(0, top)
    of = f": the {top:,} most frequent of {rows.num_rows:,}" if rows.num_rows > top else ""
    columns = [name for name in rows.column_names if name not in ("first_seen", "last_seen")]
    return title + of, columns, [list(row.values()) for row in shown.select(columns).to_pylist()]
