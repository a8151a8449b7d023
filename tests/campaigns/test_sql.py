"""A campaign against `opus query`: seeded attacks inside seeded syntax, with a harmless control for each.

Every attack must be refused with a reason, and every control in the same syntax must be allowed. The table of counts is
printed (`pytest -s`).
"""

import contextlib
import random
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Query
from opus_pipelines.reporting.querying import check, lock

SEED = 15
SMALL, LARGE = 120, 5_000
TABLES = {  # by kind: what stands where a table may stand
    "file by function": ["read_text('{0}')", "read_csv('{0}')", "read_parquet('{0}')", "read_json_auto('{0}')"],
    "file by name": ["'{0}'", '"{0}"', "'file://{0}'", "'https://example.org/x.parquet'", "'s3://b/x.csv'"],
    "folder": ["glob('/**')", "glob('{0}*')", "read_blob('/etc/*')"],
    "settings": ["duckdb_settings()", "duckdb_secrets()", "duckdb_variables()", "pragma_database_size()"],
    "SQL in a text": ["query('FROM read_text(''{0}'')')", "query_table('{0}')", "json_execute_serialized_sql('{{}}')"],
    "catalog": ["pg_catalog.pg_class", "system.main.duckdb_settings()", "other.main.t", "sqlite_master"],
}
SCALARS = {
    "environment": ["getenv('HOME')", "GETENV('HOME')", "\"getenv\"('HOME')", "system.main.getenv('HOME')"],
    "setting": ["current_setting('memory_limit')", "current_query()", "current_schemas(true)"],
    "effect": ["write_log('x')", "sleep_ms(1)", "nextval('s')", "setseed(0.1)"],
}
STATEMENTS = {
    "write": ["COPY t TO '{0}'", "EXPORT DATABASE '{0}'", "CREATE TABLE x AS FROM t", "INSERT INTO t VALUES (1)"],
    "attach": ["ATTACH '{0}'", "DETACH memory", "USE other", "IMPORT DATABASE '{0}'"],
    "extension": ["INSTALL httpfs", "LOAD '{0}'", "FORCE INSTALL x FROM 'https://example.org'"],
    "configuration": ["SET memory_limit='1TB'", "PRAGMA enable_profiling", "RESET allowed_paths", "SET VARIABLE x=1"],
    "definition": ["CREATE MACRO f() AS 1", "DROP VIEW t", "PREPARE p AS SELECT 1", "CALL pragma_version()"],
}
AROUND_TABLE = [
    "SELECT * FROM {0}",
    "FROM {0} AS x",
    "WITH c AS (FROM {0}) FROM c",
    "WITH RECURSIVE c AS (SELECT 1 AS i UNION ALL SELECT i FROM c, {0} AS x WHERE i < 0) FROM c",
    "SELECT (SELECT count(*) FROM {0})",
    "FROM t, LATERAL (SELECT * FROM {0}) AS x",
    "FROM t LEFT JOIN {0} AS x ON true",
    "FROM t WHERE EXISTS (FROM {0})",
    "FROM t WHERE a IN (SELECT count(*) FROM {0})",
    "FROM t ORDER BY (SELECT count(*) FROM {0})",
    "FROM t UNION ALL BY NAME FROM {0}",
    "SUMMARIZE FROM {0}",
    "EXPLAIN FROM {0}",
    "(FROM {0}) LIMIT 1",
    "FROM t QUALIFY (SELECT count(*) FROM {0}) > row_number() OVER ()",
]
AROUND_SCALAR = [
    "SELECT {0}",
    "FROM t WHERE {0} IS NULL",
    "FROM t ORDER BY {0}",
    "SELECT max(a) FILTER ({0} IS NOT NULL) FROM t",
    "SELECT sum(a) OVER (PARTITION BY {0}) FROM t",
    "SELECT list_transform(l, lambda i: {0}) FROM t",
    "SELECT CASE WHEN {0} IS NULL THEN 1 END",
    "SELECT {{'k': {0}}}, [{0}], CAST({0} AS VARCHAR)",
    "SELECT * REPLACE ({0} AS a) FROM t",
    "VALUES ({0})",
    "SELECT count(*) FROM t GROUP BY {0}",
    "FROM range((SELECT length(CAST({0} AS VARCHAR)))::INT)",
]
AROUND_STATEMENT = [
    "{0}",
    "SELECT 1; {0}",
    "{0}; SELECT 1",
    "EXPLAIN ANALYZE {0}",
    "/* {0} */ {0}",
    "SELECT 1;\n--\n{0}",
]
SPACES = [" ", "\n", "\t", "/**/", "/* ' */", "--x\n", "  "]


def spelled(text: str, draw: random.Random) -> str:
    """The text with other spaces and comments between its words, outside of quotes."""
    parts = text.split("'")
    for place in range(0, len(parts), 2):
        if '"' not in parts[place]:
            parts[place] = "".join(draw.choice(SPACES) if c == " " and draw.random() < 0.3 else c for c in parts[place])
    return "'".join(parts)


def cases(count: int, file: Path) -> list[tuple[str, str, str | None]]:
    """Seeded attacks: kind, attack, and the control in the same syntax, None where there is none."""
    draw = random.Random(SEED)
    groups = [
        (TABLES, AROUND_TABLE, "t"),
        (SCALARS, AROUND_SCALAR, "upper('x')"),
        (STATEMENTS, AROUND_STATEMENT, None),
    ]
    made = []
    for _ in range(count):
        kinds, around, control = draw.choice(groups)
        kind = draw.choice(sorted(kinds))
        frame = draw.choice(around)
        attack = frame.format(draw.choice(kinds[kind]).format(file))
        made.append((kind, spelled(attack, draw), frame.format(control) if control else None))
    return made


@pytest.mark.long
@pytest.mark.parametrize("count", [SMALL, pytest.param(LARGE, marks=pytest.mark.nightly)], ids=["small", "large"])
def test_every_attack_is_refused_and_every_control_is_answered(count: int, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    connection = duckdb.connect()
    connection.execute("CREATE VIEW t AS SELECT 1 AS a, [1] AS l")
    lock(connection, Query(memory_mb=256))
    refused, allowed, passed, wrong = Counter[str](), Counter[str](), Counter[str](), list[str]()
    for kind, attack, control in cases(count, secret):
        try:
            check(connection, attack)
            passed[kind] += 1
        except InputError:
            refused[kind] += 1
        if control is not None:
            try:
                connection.sql(check(connection, control)).fetchall()
                allowed[kind] += 1
            except (InputError, duckdb.Error) as error:
                wrong.append(f"{control}: {error}")
    print("\nattack              refused  passed  controls answered")
    for kind in sorted(refused | passed):
        print(f"{kind:20}{refused[kind]:7}{passed[kind]:8}{allowed[kind]:19}")
    assert (dict(passed), wrong) == ({}, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "question",
    [
        "SELECT " + "+".join(["1"] * 60_000),
        "SELECT " + "-" * 30_000 + "1",
        "SELECT " + "NOT " * 20_000 + "true",
        "SELECT 1" + "::INT" * 20_000,
        "SELECT x" + "[1]" * 20_000,
        " UNION ALL ".join(["SELECT 1"] * 1_000),
        "SELECT " + "CASE WHEN true THEN " * 5_000 + "1" + " END" * 5_000,
        "SELECT " + "[" * 190 + "]" * 190,
        "FROM " + "(FROM " * 180 + "t" + ")" * 180,
    ],
    ids=lambda text: text[:20],
)
def test_no_question_ends_the_parser(question: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE VIEW t AS SELECT 1 AS a")
    with contextlib.suppress(InputError):  # refused or allowed, and the process is still there
        check(connection, question)
    assert connection.execute("FROM t").fetchall() == [(1,)]
