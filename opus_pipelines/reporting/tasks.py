"""The WKG's tasks and the names that were merged in each, for `opus tasks`.

A task or an industry by what a person types: exactly, whatever its case; else an error with the nearest names.

The SQL behind the reading commands, `sql/explain/*.sql`, run with named parameters.
"""

import difflib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import groupby
from typing import Any

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import grid, number


def select(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> duckdb.DuckDBPyRelation:
    """The rows of `sql/explain/<name>.sql`."""
    return connection.sql((files("sql") / "explain" / f"{name}.sql").read_text("utf-8"), params=parameters or None)


def rows(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> list[dict[str, Any]]:
    """The same as dictionaries."""
    found = select(connection, name, **parameters)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


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
            row["title"],
            row["task_id"],
            ", ".join(row["industries"]),
            row["implementations"],
            ", ".join(row["sources"]),
            ", ".join(names),
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


NEAREST = 5


def find_industry(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """The industry's name as the WKG has it; raises InputError with those there are."""
    names = sorted({name for row in rows(connection, "graph_names") for name in row["industries"] or ()})
    found = [name for name in names if name.casefold() == text.casefold()]
    if not found:
        there = ", ".join(nearest(text, names) or names[:NEAREST]) or "none: no source of history states one"
        raise InputError(f"no industry is called {text!r}; there {'is' if len(names) == 1 else 'are'}: {there}")
    return text if text in found else found[0]


def find_task(connection: duckdb.DuckDBPyConnection, text: str, industry: str | None = None) -> str:
    """The id of the task of this id or title, in `industry` where one is named; raises InputError when none or several
    are meant.
    """
    tasks = [
        row for row in rows(connection, "graph_names") if industry is None or industry in (row["industries"] or ())
    ]
    if any(row["task_id"] == text for row in tasks):
        return text
    wanted = " ".join(text.casefold().split())
    found = [row for row in tasks if " ".join((row["title"] or "").casefold().split()) == wanted]
    if len(found) == 1:
        return found[0]["task_id"]
    if found:
        which = ", ".join(
            f"{row['task_id']} ({' / '.join(row['industries'] or ()) or 'no industry'})" for row in found[:NEAREST]
        )
        more = f" and {len(found) - NEAREST} more" if len(found) > NEAREST else ""
        raise InputError(f"{len(found)} tasks are called {text!r}: {which}{more}; name one by its id")
    titles = [*dict.fromkeys(row["title"] for row in tasks if row["title"])]
    near = nearest(text, titles)
    there = f"the nearest: {', '.join(near)}" if near else f"the most frequent: {', '.join(titles[:NEAREST]) or 'none'}"
    raise InputError(f"no task{f' of {industry}' if industry else ''} is called {text!r}; {there}")


def nearest(text: str, names: Iterable[str]) -> list[str]:
    """At most five of the names: those that hold the text, in their order, then those spelled most like it."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(name.casefold(), name)
    wanted = text.casefold()
    inside = [name for folded, name in known.items() if wanted and wanted in folded]
    alike = [known[folded] for folded in difflib.get_close_matches(wanted, known, n=NEAREST, cutoff=0.4)]
    return list(dict.fromkeys([*inside, *alike]))[:NEAREST]
