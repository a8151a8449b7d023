"""The WKG's tasks and the names that were merged in each, for `opus tasks`."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import duckdb

from opus_pipelines.query.sql import select
from opus_pipelines.words import grid, number

COLUMNS = ("task", "id", "industries", "implementations", "sources", "names")
HOW_TO_PIN = """\
A merge that is wrong, or one that is missing, is put right in pins.toml beside the history folder; the next rebuild follows it:
  [[apart]]
  tasks = ["{}", "{}"]
  [[same]]
  tasks = ["source/task key", "another source/task key"]"""


def tasks(connection: duckdb.DuckDBPyConnection, industry: str | None, text: str | None) -> duckdb.DuckDBPyRelation:
    """One row a task, the most frequent of each industry first; `text` stands in one of its names, whatever the case."""
    return select(connection, "tasks", industry=industry, text=text)


def merged(connection: duckdb.DuckDBPyConnection, industry: str | None, text: str | None) -> duckdb.DuckDBPyRelation:
    """One row a raw key of the tasks that have several, those merged by likeness first."""
    return select(connection, "merged", industry=industry, text=text)


def lines(found: duckdb.DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """Rows of `tasks` as a person reads them."""
    for row in _rows(found):
        names = [name for name in row["names"] if name != row["title"]]
        yield (
            row["title"], row["task_id"], ", ".join(row["industries"]), row["implementations"], ", ".join(row["sources"]), ", ".join(names)
        )


def merged_text(found: duckdb.DuckDBPyRelation) -> str:
    """Rows of `merged`, a block a task, and how to pin; one sentence where nothing is merged."""
    rows = _rows(found)
    if not rows:
        return "no task has more than one name"
    blocks = []
    for task, group in groupby(rows, key=lambda row: row["task_id"]):
        keys = list(group)
        former = sorted({old for row in keys for old in row["former_task_ids"] or []})
        before = f"  (before: {', '.join(former)})" if former else ""
        blocks.append("\n".join([f"{keys[0]['task']}  {task}{before}", *grid([_line(row) for row in keys])]))
    return "\n\n".join([*blocks, HOW_TO_PIN.format(*(f"{row['source']}/{row['task_key']}" for row in rows[:2]))])


def _line(row: dict[str, Any]) -> list[str]:
    renamed = "" if row["name"] == row["task_key"] else row["name"]
    return [f"{row['source']}/{row['task_key']}", renamed, row["method"], number(row["similarity"], 3)]


def _rows(found: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
