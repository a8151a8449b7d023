"""The second defence of `opus query`, without the gate: files, settings, time and memory."""

import time
from pathlib import Path

import duckdb
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Query
from opus_pipelines.reporting.querying import lock, timed


@pytest.fixture
def locked(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """A locked connection with a view of one file, and another file beside it."""
    made = duckdb.connect()
    for name in ("seen", "hidden"):
        made.execute(f"COPY (SELECT '{name}' AS a) TO '{tmp_path}/{name}.parquet'")
    made.execute(f"SET VARIABLE files = MAP {{'v': ['{tmp_path}/seen.parquet']}}")
    made.execute("CREATE VIEW v AS FROM read_parquet(getvariable('files')['v'])")
    lock(made, Query(memory_mb=64, spill_mb=0))
    return made


def test_views_still_answer(locked: duckdb.DuckDBPyConnection) -> None:
    assert locked.execute("FROM v").fetchall() == [("seen",)]
    lock(locked, Query())  # a second time changes nothing


@pytest.mark.parametrize(
    "attack",
    [
        "FROM read_parquet('{0}/hidden.parquet')",
        "FROM '{0}/hidden.parquet'",
        "FROM read_text('/etc/passwd')",
        "FROM glob('{0}/*')",
        "COPY (SELECT 1) TO '{0}/new.parquet'",
        "COPY (SELECT 1) TO '{0}/seen.parquet'",
        "ATTACH '{0}/new.db'",
        "EXPORT DATABASE '{0}/out'",
        "INSTALL httpfs",
        "LOAD '{0}/x.so'",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "RESET allowed_paths",
        "FROM tmp_path",  # a variable of the calling Python code
    ],
)
def test_a_locked_connection_reads_and_writes_nothing_else(
    locked: duckdb.DuckDBPyConnection, tmp_path: Path, attack: str
) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(duckdb.Error):
        locked.execute(attack.format(tmp_path)).fetchall()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def ask(question: str, limits: Query) -> Path:
    """Answers a question within limits, and returns the folder that it may have spilled to."""
    connection = duckdb.connect()
    with timed(connection, limits) as spill:
        lock(connection, limits, spill)
        connection.sql(question).fetchall()
    return spill


@pytest.mark.long
def test_what_does_not_fit_into_memory_is_spilled_and_removed() -> None:
    question = "SELECT max(x) FROM (SELECT range AS x FROM range(2000000) ORDER BY hash(range) OFFSET 10)"
    assert not ask(question, Query(memory_mb=64, spill_mb=1000)).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "question",
    [
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT sum(a.range) FROM range(1000000) AS a, range(1000000) AS b",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n",
    ],
)
def test_a_question_without_end_is_interrupted(question: str) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"query\.seconds"):
        ask(question, Query(seconds=0.2))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("question", ["SELECT repeat('x', 4000000000)", "SELECT list_sort(range(1000000000))"])
def test_a_question_for_too_much_memory_is_refused(question: str) -> None:
    with pytest.raises(InputError, match=r"query\.memory_mb"):
        ask(question, Query(seconds=20, memory_mb=64, spill_mb=0))


@pytest.mark.long
def test_where_an_interrupt_has_no_effect_the_process_is_ended() -> None:
    said: list[str] = []
    connection = duckdb.connect()
    with timed(connection, Query(seconds=0.05), said.append, hard_stop=0.05):
        time.sleep(0.5)
    assert "query.seconds" in said[0]
