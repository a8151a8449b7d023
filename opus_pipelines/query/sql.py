"""The SQL behind the reading commands, `sql/explain/*.sql`, run with named parameters."""

from importlib.resources import files
from typing import Any

import duckdb


def select(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> duckdb.DuckDBPyRelation:
    """The rows of `sql/explain/<name>.sql`."""
    return connection.sql((files("sql") / "explain" / f"{name}.sql").read_text("utf-8"), params=parameters or None)


def rows(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> list[dict[str, Any]]:
    """The same as dictionaries."""
    found = select(connection, name, **parameters)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
