"""Where Dagster keeps its record of runs: SQLite files of the lake, or a Postgres that the lake's dagster.yaml names.

Both have the same tables, so both are asked the same queries, without loading Dagster. The file in the lake names
environment variables, never their values.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opus_pipelines.core.errors import LakeError, SettingsError
from opus_pipelines.lake.damage import opened_database
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    from opus_pipelines.lake.search import Finding, Word


Storage = Literal["sqlite", "postgres"]
VARIABLES = {  # the names that Dagster's own examples of a deployment use
    "hostname": "DAGSTER_PG_HOST",
    "db_name": "DAGSTER_PG_DB",
    "username": "DAGSTER_PG_USERNAME",
    "password": "DAGSTER_PG_PASSWORD",
}
PORT, USUAL_PORT = "DAGSTER_PG_PORT", 5432
_IN_POSTGRES = "Dagster's record in Postgres"
_SECONDS = 5  # the longest that a connection may take
_NEXT = "see that it runs and that DAGSTER_PG_* name it, then run the command again"


def instance_file(common: str, storage: Storage) -> str:
    """Returns the text of the lake's dagster.yaml: the common part, and for Postgres the variables that name it.

    Raises SettingsError where Postgres is wanted and a variable or the package is missing.
    """
    if storage == "sqlite":
        return common
    if missing := [name for name in VARIABLES.values() if not os.environ.get(name)]:
        raise SettingsError(f'ops.dagster_storage = "postgres" needs {", ".join(missing)} in the environment')
    if find_spec("dagster_postgres") is None:
        raise SettingsError(
            'ops.dagster_storage = "postgres" needs the package dagster-postgres; install the extra `postgres`'
        )
    lines = [f"      {key}: {{env: {name}}}\n" for key, name in VARIABLES.items()]
    port = f"      port: {{env: {PORT}}}\n" if os.environ.get(PORT) else f"      port: {USUAL_PORT}\n"
    # SQLAlchemy's own choice for `postgresql` is another driver than the one that dagster-postgres installs
    scheme = "      scheme: postgresql+psycopg2\n"
    return f"{common}storage:\n  postgres:\n    postgres_db:\n{''.join(lines)}{port}{scheme}"


def storage_of(lake: Lake) -> Storage:
    """Returns where the record of this lake is."""
    return "sqlite" if _postgres(lake) is None else "postgres"


def where(lake: Lake, run_id: str) -> str:
    """Returns where the events of a run are, for a person."""
    if storage_of(lake) == "postgres":
        return f"{_IN_POSTGRES} (`opus ui`, run {run_id})"
    return f"{_events(lake, run_id)} (`opus ui`, run {run_id})"


def rows(lake: Lake, query: str, run_id: str | None = None) -> list[tuple[Any, ...]]:
    """Returns the rows of a query over the table `runs`, or over `event_logs` where a run is named.

    A `?` in the query stands for the run. There are no rows where the file or its tables are not there yet. Raises
    LakeError where the record is damaged or cannot be reached.
    """
    parameters = () if run_id is None else (run_id,)
    if (parts := _postgres(lake)) is not None:
        table = "runs" if run_id is None else "event_logs"
        with _connected(parts) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (table,))
            if not cursor.fetchone()[0]:
                return []
            cursor.execute(query.replace("?", "%s"), parameters)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found
    file = lake.dagster_home / "history" / "runs.db" if run_id is None else _events(lake, run_id)
    if not file.is_file():
        return []
    with opened_database(file) as database:
        is_begun = database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        return database.execute(query, parameters).fetchall() if is_begun else []


def require_reachable(lake: Lake) -> None:
    """Raises LakeError where the record is in a Postgres that cannot be reached."""
    if (parts := _postgres(lake)) is not None:
        with _connected(parts):
            pass


def overwrite_free_space(lake: Lake) -> None:
    """Lets Postgres write its tables anew, without the rows that were deleted. In SQLite, nothing is done."""
    if (parts := _postgres(lake)) is not None:
        with _connected(parts) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            for table in _tables(cursor):
                cursor.execute(f'VACUUM (FULL) "{table}"')


def findings(lake: Lake, words: "Sequence[Word]") -> "Iterator[Finding]":
    """Yields where a record in Postgres has one of the words. The files of SQLite are searched with the lake's."""
    if (parts := _postgres(lake)) is None:
        return
    import pyarrow as pa

    from opus_pipelines.lake.search import Finding, appears_in, unpacked

    with _connected(parts) as connection, connection.cursor() as cursor:
        for table in _tables(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            texts = {unpacked(value) for row in cursor for value in row if isinstance(value, str)}
            values = [pa.array(sorted(texts), pa.string())]
            yield from (Finding(_IN_POSTGRES, table, word) for word in words if appears_in(word, values))


def lost_in(error: BaseException) -> bool:
    """Tells whether the connection to Postgres was lost, by an error or by those behind it."""
    link: BaseException | None = error
    while link is not None:
        module, name = type(link).__module__.partition(".")[0], type(link).__name__
        if module == "dagster_postgres" or (module == "psycopg2" and name in ("OperationalError", "InterfaceError")):
            return True
        link = link.__cause__ or link.__context__
    return False


def _events(lake: Lake, run_id: str) -> Path:
    return lake.dagster_home / "history" / "runs" / f"{run_id}.db"


def _postgres(lake: Lake) -> Mapping[str, Any] | None:
    """Returns what dagster.yaml says of its Postgres; None where the record is in SQLite."""
    file = lake.dagster_home / "dagster.yaml"
    text = file.read_text("utf-8") if file.is_file() else ""
    if "postgres" not in text:
        return None
    import yaml  # only where it is needed: `opus status` must start fast

    storage = (yaml.safe_load(text) or {}).get("storage") or {}
    parts: Mapping[str, Any] | None = storage.get("postgres")
    return parts


@contextmanager
def _connected(parts: Mapping[str, Any]) -> Iterator[Any]:
    """Opens a connection. Raises LakeError where there is none, or where it is lost."""
    import psycopg2

    stated = parts.get("postgres_db") or {}
    known = {"hostname": "host", "db_name": "dbname", "username": "user", "password": "password", "port": "port"}
    values = {name: _value(stated[key]) for key, name in known.items() if key in stated}
    url = [_value(parts["postgres_url"])] if "postgres_url" in parts else []
    try:
        with closing(psycopg2.connect(*url, connect_timeout=_SECONDS, **values)) as connection:
            yield connection
    except psycopg2.Error as error:
        reason = " ".join(str(error).split())
        raise LakeError(f"{_IN_POSTGRES} cannot be used ({reason}); {_NEXT}") from None


def _value(stated: Any) -> Any:
    """Returns a value of dagster.yaml, which may name an environment variable."""
    if not isinstance(stated, Mapping):
        return stated
    name = str(stated.get("env"))
    if name not in os.environ:
        raise LakeError(f"Dagster's record is in Postgres, and {name} is not set in the environment")
    return os.environ[name]


def _tables(cursor: Any) -> list[str]:
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1")
    return [name for (name,) in cursor.fetchall()]
