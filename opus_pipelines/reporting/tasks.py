"""Lists the WKG's tasks and the names merged in each, for `opus tasks`, and finds tasks and industries by name.

A name must match exactly, apart from its case; the error names the nearest ones. `select` runs the SQL behind the
reading commands, `sql/explain/*.sql`, with named parameters.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import duckdb

from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import grid, number
from opus_pipelines.language.word_stems import near_names

Row = dict[str, Any]


def select(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> duckdb.DuckDBPyRelation:
    """Returns the rows of `sql/explain/<name>.sql`."""
    return connection.sql(_sql(name), params=parameters or None)


def rows(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> list[Row]:
    """Returns the rows of `sql/explain/<name>.sql` as dictionaries.

    The query is executed, not made a relation first: a relation is bound, its views and their files with it, once for
    its columns and once more for its rows.
    """
    executed = connection.execute(_sql(name), parameters or None)
    columns = [column[0] for column in executed.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in executed.fetchall()]


def _sql(name: str) -> str:
    return (SQL / "explain" / f"{name}.sql").read_text("utf-8")


def dicts(relation: duckdb.DuckDBPyRelation) -> list[Row]:
    """Returns the rows of a relation as dictionaries."""
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


COLUMNS = ("task", "id", "industries", "implementations", "sources", "names")
HOW_TO_PIN = """\
A merge that is wrong, or one that is missing, is corrected in pins.toml next to the history folder.
The next rebuild follows it:
  [[apart]]
  tasks = ["{}", "{}"]
  [[same]]
  tasks = ["source/task key", "another source/task key"]"""


def tasks(connection: duckdb.DuckDBPyConnection, industry: str | None, text: str | None) -> duckdb.DuckDBPyRelation:
    """Returns one row for each task, the most frequent of each industry first.

    `text` must occur in one of its names, in any case.
    """
    return select(connection, "tasks", industry=industry, text=text)


def merged(connection: duckdb.DuckDBPyConnection, industry: str | None, text: str | None) -> duckdb.DuckDBPyRelation:
    """Returns one row for each raw key of the tasks that have several, those merged by similarity first."""
    return select(connection, "merged", industry=industry, text=text)


def lines(relation: duckdb.DuckDBPyRelation) -> Iterator[tuple[Any, ...]]:
    """Yields rows of `tasks` in the form for a table."""
    for row in dicts(relation):
        names = [name for name in row["names"] if name != row["title"]]
        yield (
            row["title"],
            row["task_id"],
            ", ".join(row["industries"]),
            row["implementations"],
            ", ".join(row["sources"]),
            ", ".join(names),
        )


def merged_text(relation: duckdb.DuckDBPyRelation) -> str:
    """Returns rows of `merged` as text, with one block for each task, and how to pin names."""
    rows = dicts(relation)
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


NEAREST = 5


def find_industry(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Returns the name of an industry as the WKG has it. Raises InputError that names the existing ones."""
    names = sorted({name for row in rows(connection, "graph_names") for name in row["industries"] or ()})
    matches = [name for name in names if name.casefold() == text.casefold()]
    if not matches:
        existing = ", ".join(nearest(text, names) or names[:NEAREST]) or "none: no source of history states one"
        raise InputError(f"no industry is called {text!r}; there {'is' if len(names) == 1 else 'are'}: {existing}")
    return text if text in matches else matches[0]


def find_task(connection: duckdb.DuckDBPyConnection, text: str, industry: str | None = None) -> str:
    """Returns the id of the task with this id or title, in `industry` where one is given.

    Raises InputError where no task or several match.
    """
    tasks = [
        row for row in rows(connection, "graph_names") if industry is None or industry in (row["industries"] or ())
    ]
    if any(row["task_id"] == text for row in tasks):
        return text
    wanted = " ".join(text.casefold().split())
    matches = [row for row in tasks if " ".join((row["title"] or "").casefold().split()) == wanted]
    if len(matches) == 1:
        return matches[0]["task_id"]
    if matches:
        which = ", ".join(
            f"{row['task_id']} ({' / '.join(row['industries'] or ()) or 'no industry'})" for row in matches[:NEAREST]
        )
        more = f" and {len(matches) - NEAREST} more" if len(matches) > NEAREST else ""
        raise InputError(f"{len(matches)} tasks are called {text!r}: {which}{more}; name one by its id")
    titles = [*dict.fromkeys(row["title"] for row in tasks if row["title"])]
    near = nearest(text, titles)
    existing = (
        f"the nearest: {', '.join(near)}" if near else (f"the most frequent: {', '.join(titles[:NEAREST]) or 'none'}")
    )
    raise InputError(f"no task{f' of {industry}' if industry else ''} is called {text!r}; {existing}")


def nearest(text: str, names: Iterable[str]) -> list[str]:
    """Returns at most five of the names: those that contain the text, then those with the most similar spelling."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(name.casefold(), name)
    return near_names(text.casefold(), known, NEAREST, 0.4)
