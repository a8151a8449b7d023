"""The queries that come with the system, `sql/queries/*.sql`: listed by what their first comment says, run by name."""

from dataclasses import dataclass
from importlib.resources import files

import duckdb

from opus_pipelines.errors import InputError

QueryError = duckdb.Error


@dataclass(frozen=True)
class Shipped:
    """A shipped query: its name, what it answers, a command that runs it, its SQL."""

    name: str
    about: str
    example: str
    sql: str


def shipped() -> dict[str, Shipped]:
    """All shipped queries by name, in alphabetical order."""
    found = sorted((f for f in (files("sql") / "queries").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return {query.name: query for query in (_parse(f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in found)}


def run(connection: duckdb.DuckDBPyConnection, text: str, variables: dict[str, str] | None = None) -> duckdb.DuckDBPyRelation | None:
    """Run a shipped query by its name, or `text` as SQL; None when the SQL yields no rows.

    `variables` are set before (SQL reads them with getvariable). Raises InputError with DuckDB's own words.
    """
    known = shipped()
    if text not in known and len(text.split()) == 1:
        raise InputError(f"no shipped query {text!r}; there are: {', '.join(known)}")
    try:
        for name, value in (variables or {}).items():
            connection.execute(f"SET VARIABLE \"{name.replace(chr(34), '')}\" = $1", [value])
        return connection.sql(known[text].sql if text in known else text)
    except duckdb.Error as error:
        raise InputError(f"the query failed: {error}") from None


def _parse(name: str, text: str) -> Shipped:
    about, example = (line.removeprefix("-- ") for line in text.splitlines()[:2])
    return Shipped(name, about, example, text)
