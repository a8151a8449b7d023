"""Opens DuckDB over the lake, with one view for each dataset over what the pointers name now, and runs shipped queries.

The logic is SQL (`sql/views`), put together into one file for analysts, `<lake>/views.sql`. The first comment of a
shipped query (`sql/queries/*.sql`) describes it.
"""

import atexit
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from string import Template

import duckdb

from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.errors import InputError, LakeError
from opus_pipelines.core.schemas import DATASETS, OPTIMIZED, WORKFLOW_CHANGES, Dataset
from opus_pipelines.core.settings_sections import Query
from opus_pipelines.lake import damage, version
from opus_pipelines.lake.file_lists import REPAIR
from opus_pipelines.lake.layout import Lake, slug, write_atomically
from opus_pipelines.lake.object_store.folders import Origin
from opus_pipelines.lake.results import columns_of_results
from opus_pipelines.reporting import querying

logger = logging.getLogger("opus_pipelines.lake.layout")
_HEAD = """\
-- Every dataset of this lake as a view, named as the dataset with _ for /. Needs DuckDB 1.5 or later:
--   duckdb -init views.sql
-- A lake that was moved: change the next line.
SET VARIABLE lake = '{lake}';
-- Typed files without rows: what a table of an older version lacks is NULL by them.
SET VARIABLE empty = {empty};
-- The columns of the datasets of results in this version: a pointer states which ones its files have.
SET VARIABLE columns_of_results = '{columns}';

"""
_MIXED = ("workflows_earlier", WORKFLOW_CHANGES.view)  # views over results that no pointer names

_limits = count()  # limits may be inside each other


def views_sql(lake: Lake, empty: Path | None = None) -> str:
    """Returns the SQL that makes all views. It is self-contained and resolves the pointers when it is run.

    `empty`: the folder of empty typed files, where it is not the lake's.
    """
    folder = SQL / "views"
    view = Template((folder / "dataset.sql").read_text("utf-8"))
    place = f"'{_quoted(empty)}'" if empty else "getvariable('lake') || '/.empty'"
    head = _HEAD.format(lake=_quoted(lake.root), empty=place, columns=columns_of_results())
    parts = [head, (folder / "current.sql").read_text("utf-8")]
    parts += [f"-- {about}\n{view.substitute(_of_view(name, dataset), view=name)}" for name, dataset, about in _views()]
    return "\n".join([*parts, (folder / "process.sql").read_text("utf-8")])


def _views() -> Iterator[tuple[str, Dataset, str]]:
    """Each view: its name, the dataset whose columns it has, and what it is."""
    yield from ((dataset.view, dataset, dataset.about) for dataset in DATASETS.values())
    about = "Ranked workflows of the earlier results that retention keeps, to compare with workflows_optimized."
    yield "workflows_earlier", OPTIMIZED, about


def _of_view(view: str, dataset: Dataset) -> dict[str, str]:
    """What the template of a view needs: where the folders name a client, a contract or a source, that column is read
    from the name, so that a condition on it leaves out the files of all others before they are opened. Columns are
    matched over the union of all files, for which all are opened, only where files may have other columns.
    """
    has_one_pointer = "result" in dataset.partitions and view not in _MIXED
    named, columns = dataset.named_by_folder, {column.name for column in dataset.columns}
    selected = ""
    if named:
        values = ", ".join(f"url_decode(replace({key}, '_', '%')) AS {column}" for key, column in named.items())
        only_folders = ", ".join(key for key in dataset.partitions if key not in columns)
        selected = f"SELECT * EXCLUDE ({only_folders}) REPLACE ({values})\n"
    return {
        "selected": selected,
        "empty_file": dataset.empty_file,
        "by_name": "getvariable('has_other_columns')" if has_one_pointer else "true",
        "partitions": "true, hive_types_autocast = false" if named else "false",
    }


def store_views_sql(lake: Lake, origin: Origin) -> str:
    """Returns the SQL that makes the view of each dataset over the objects of a store, with their addresses.

    It names the files of one commit, so what is published later is not in it. It needs a DuckDB that reads `s3://`.
    """
    from opus_pipelines.lake.object_store.trees import addresses

    known = addresses(lake.root, origin)
    (files,) = connect(lake).execute("SELECT getvariable('files')").fetchone() or ({},)
    parts = [f"-- The datasets of {origin.url} as views over the objects of one commit."]
    for view, dataset, _ in _views():
        paths = [
            f".empty/{dataset.empty_file}",
            *(Path(f).relative_to(lake.root).as_posix() for f in files.get(view, ())),
        ]
        places = ",\n    ".join(f"'{known[path].replace(chr(39), chr(39) * 2)}'" for path in paths)
        stated = f"[\n    {places}\n], union_by_name = true, hive_partitioning = false"
        parts.append(f"CREATE OR REPLACE VIEW {view} AS FROM read_parquet({stated});")
    return "\n".join([*parts, (SQL / "views" / "process.sql").read_text("utf-8")])


def write_views_sql(lake: Lake) -> None:
    """Writes `<lake>/views.sql` and the empty typed files that its views use for missing datasets."""
    lake.ensure_empty()
    text = views_sql(lake)
    path = lake.root / "views.sql"
    if not path.exists() or path.read_text("utf-8") != text:
        write_atomically(path, lambda p: p.write_text(text, "utf-8"))


def connect(lake: Lake) -> duckdb.DuckDBPyConnection:
    """Returns a DuckDB in memory with every view of `lake`, on what is published now.

    A lake of an older version is read as it is, with a log line; columns that it lacks are NULL. A contract whose files
    are damaged is left out, with a log line, and stands in the view `damaged_results`. Raises LakeError where there is
    no lake, or one of a newer version, or where the snapshot is damaged.
    """
    if version.format_of(lake.root) is None or not (lake.root / ".empty").is_dir():
        raise LakeError(f"{lake.root} is not a lake yet; `opus rebuild` makes one")
    if (snapshot := lake.current_snapshot()) is not None:
        damage.require_sound(lake, snapshot)
    damage.require_views_sound(lake)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    if known := list(damage.contract_damage(lake)):
        for one in known:
            logger.warning("left out: %s; %s", one, REPAIR)
        connection.execute("SET VARIABLE known_damage = $1", [[asdict(one) for one in known]])
    if version.has_these_columns(lake.root):
        sound = damage.has_sound_empty_files(lake)
        if not sound:
            logger.warning("%s is damaged, and not used; %s", lake.root / ".empty", REPAIR)
        connection.execute(views_sql(lake, None if sound else _own_empty()))
    else:
        logger.info(
            "%s was written by another version: columns that it lacks read as NULL; `opus rebuild` brings it up to "
            "date",
            lake.root,
        )
        connection.execute(views_sql(lake, _own_empty()))
    return connection


@contextmanager
def only_results_of(connection: duckdb.DuckDBPyConnection, client: str | None, contract: str | None) -> Iterator[None]:
    """Limits every view over results to those of a client and a contract (None: of all) for a while.

    A question that joins several views by an id alone then opens the files of that contract, not those of all. Which
    contracts there are is still known: `current_results` stays as it is.
    """
    keys = [f"/{key}={slug(name)}/" for key, name in (("client_key", client), ("contract_key", contract)) if name]
    if not keys:
        yield
        return
    before = f"files_before_{next(_limits)}"
    connection.execute(f"SET VARIABLE {before} = getvariable('files')")
    connection.execute((SQL / "views" / "limit.sql").read_text("utf-8"), [keys])
    try:
        yield
    finally:
        connection.execute(f"SET VARIABLE files = getvariable('{before}')")


@contextmanager
def only_results_with(connection: duckdb.DuckDBPyConnection, workflow: str) -> Iterator[None]:
    """Limits every view over results to the contract of a ranked workflow for a while, as `only_results_of` does."""
    found = connection.execute(
        "SELECT client, contract FROM workflows_optimized WHERE workflow_id = $1 LIMIT 1", [workflow]
    ).fetchone()
    with only_results_of(connection, *(found or (None, None))):
        yield


@cache
def _own_empty() -> Path:
    """Writes the empty typed files of this version into a temporary folder of this process, and returns it."""
    folder = Path(tempfile.mkdtemp(prefix="opus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    version.write_empty(folder)
    return folder


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


@dataclass(frozen=True)
class ShippedQuery:
    """A shipped query: its name, what it answers, a command that runs it, and its SQL."""

    name: str
    about: str
    example: str
    sql: str


def shipped_queries() -> dict[str, ShippedQuery]:
    """Returns all shipped queries by name, in alphabetical order."""
    query_files = sorted((f for f in (SQL / "queries").iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return {
        query.name: query for query in (_parse(f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in query_files)
    }


def run(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    variables: dict[str, str] | None = None,
    limits: Query | None = None,
    spill: Path | None = None,
) -> duckdb.DuckDBPyRelation:
    """Runs a shipped query by its name, or `text` as one SELECT over the views, and locks the connection for it.

    `variables` are set before, and SQL reads them with getvariable. `spill` is a folder for what does not fit into
    memory. Raises InputError with the reason where the text is refused or fails.
    """
    known = shipped_queries()
    if text not in known and len(text.split()) == 1:
        raise InputError(f"no shipped query {text!r}; there are: {', '.join(known)}")
    if own := sorted(_own_variables().intersection(map(str.casefold, variables or {}))):
        raise InputError(f"--set {own[0]} is not allowed: the views find their files by it")
    try:
        question = querying.check(connection, known[text].sql if text in known else text)
        for name, value in (variables or {}).items():
            connection.execute(f'SET VARIABLE "{name.replace(chr(34), "")}" = $1', [value])
        querying.lock(connection, limits or Query(), spill)
        return connection.sql(question)
    except (duckdb.InterruptException, duckdb.OutOfMemoryException):
        raise
    except duckdb.Error as error:
        raise InputError(f"the query failed: {error}") from None


@cache
def _own_variables() -> frozenset[str]:
    """Returns the variables by which the views find their files."""
    return frozenset(re.findall(r"SET VARIABLE (\w+)", _HEAD + (SQL / "views" / "current.sql").read_text("utf-8")))


def _parse(name: str, text: str) -> ShippedQuery:
    about, example = (line.removeprefix("-- ") for line in text.splitlines()[:2])
    return ShippedQuery(name, about, example, text)
