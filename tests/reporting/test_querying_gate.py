"""The parser's gate of `opus query`: what an analyst may ask, and each attack by itself."""

import duckdb
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.reporting.querying import FUNCTIONS, MAX_CHARACTERS, TABLE_FUNCTIONS, check

ALLOWED = [
    "SELECT * FROM t",
    "FROM t",
    "TABLE t",
    "VALUES (1), (2)",
    "WITH x AS MATERIALIZED (FROM t) SELECT * FROM x;",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) FROM n",
    "DESCRIBE t",
    "SUMMARIZE t",
    "SHOW TABLES",
    "EXPLAIN SELECT * FROM t",
    "/* why */ -- so\n EXPLAIN ANALYZE FROM t",
    "SELECT a, sum(a) OVER (ORDER BY a ROWS 1 PRECEDING), row_number() OVER w FROM t WINDOW w AS (ORDER BY a)",
    "SELECT count(*) FILTER (a > 1), string_agg(a, ',' ORDER BY a) FROM t",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
    "FROM t PIVOT (sum(a) FOR a IN (1, 2))",
    "UNPIVOT t ON a",
    "FROM t ASOF JOIN u USING (a)",
    "FROM t, LATERAL (SELECT t.a + 1) AS z",
    "SELECT DISTINCT ON (a) * EXCLUDE (a) REPLACE (l AS l) FROM t ORDER BY ALL LIMIT 10%",
    "SELECT list_transform(l, lambda x: x + 1), [x for x in l if x > 0], {'a': 1}, MAP {'a': 1}['a'], l[1:2] FROM t",
    "SELECT a::INT, try_cast(a AS INT), extract(year FROM current_date), INTERVAL 1 DAY, DATE '2026-01-31' FROM t",
    "SELECT a BETWEEN 1 AND 2, a IN (SELECT 1), EXISTS (FROM t), CASE a WHEN 1 THEN 2 END, 'x' ILIKE 'y' FROM t",
    "SELECT '{}'::JSON ->> 'a', COLUMNS('a.*') FROM t",
    "FROM range(10), unnest([1, 2]), generate_series(1, 2), json_each('{}')",
    "SELECT 1 UNION BY NAME SELECT 2",
    "FROM main.t JOIN memory.main.u USING (a)",
    "FROM information_schema.columns",
    "FROM t TABLESAMPLE 10%",
    "SELECT a, grouping(a) FROM t GROUP BY ROLLUP (a)",
    "SELECT getvariable('workflow')",
]
# what was asked, and a word of the refusal
ATTACKS = {
    "file by function": ("SELECT * FROM read_text('/etc/passwd')", "read_text"),
    "csv": ("FROM read_csv('/etc/passwd')", "read_csv"),
    "parquet": ("FROM parquet_scan('lake/*.parquet')", "parquet_scan"),
    "metadata": ("FROM parquet_metadata('x.parquet')", "parquet_metadata"),
    "folder": ("FROM glob('/**')", "glob"),
    "file as table": ("SELECT * FROM '/etc/passwd'", "no view"),
    "file as quoted table": ('SELECT * FROM "x.parquet"', "no view"),
    "summary of a file": ("SUMMARIZE '/etc/passwd'", "no view"),
    "description of a file": ("DESCRIBE 'x.parquet'", "no view"),
    "file in a join": ("FROM t JOIN 'x.csv' USING (a)", "no view"),
    "file in a CTE": ("WITH x AS (FROM 'x.csv') FROM x", "no view"),
    "file in a subquery": ("SELECT (SELECT count(*) FROM 'x.csv')", "no view"),
    "file in a lateral join": ("FROM t, LATERAL (FROM 'x.csv') AS z", "no view"),
    "file in EXPLAIN": ("EXPLAIN ANALYZE FROM 'x.csv'", "no view"),
    "file named by a CTE out of its scope": (
        "FROM (WITH \"x.csv\" AS (SELECT 1) SELECT 1), 'x.csv'",
        "no name for WITH",
    ),
    "function in ORDER BY": ("FROM t ORDER BY getenv('HOME')", "getenv"),
    "function in a window": ("SELECT sum(a) OVER (ORDER BY getenv('HOME')) FROM t", "getenv"),
    "function in a lambda": ("SELECT list_transform(l, lambda x: getenv('HOME')) FROM t", "getenv"),
    "function in LIMIT": ("FROM t LIMIT (SELECT len(getenv('HOME')))", "getenv"),
    "function in an argument": ("FROM range((SELECT count(*) FROM read_text('/etc/passwd')))", "read_text"),
    "function in FILTER": ("SELECT count(*) FILTER (getenv('HOME') = '') FROM t", "getenv"),
    "function in upper case": ("FROM READ_TEXT('/etc/passwd')", "read_text"),
    "function in quotes": ("FROM \"read_text\"('/etc/passwd')", "read_text"),
    "function with a schema": ("FROM system.main.read_text('/etc/passwd')", "read_text"),
    "function between comments": ("FROM read_text/**/('/etc/passwd')", "read_text"),
    "SQL in a text": ("FROM query('SELECT 1')", "query"),
    "table in a text": ("FROM query_table('x.csv')", "query_table"),
    "parsed SQL": ("FROM json_execute_serialized_sql('{}')", "json_execute_serialized_sql"),
    "settings": ("SELECT current_setting('memory_limit')", "current_setting"),
    "settings by SHOW": ("SHOW memory_limit", "SHOW"),
    "all settings": ("FROM duckdb_settings()", "duckdb_settings"),
    "secrets": ("FROM duckdb_secrets()", "duckdb_secrets"),
    "pragma by function": ("FROM pragma_table_info('t')", "pragma_table_info"),
    "system catalog": ("FROM pg_catalog.pg_class", "no view"),
    "another database": ("FROM other.main.t", "no view"),
    "log": ("SELECT write_log('x')", "write_log"),
    "wait": ("SELECT sleep_ms(100000)", "sleep_ms"),
    "insert in a CTE": ("WITH x AS (INSERT INTO t VALUES (1) RETURNING *) FROM x", "INSERT"),
    "delete in a CTE": ("WITH x AS (DELETE FROM t RETURNING *) FROM x", "DELETE"),
    "several statements": ("SELECT 1; SELECT 2", "2"),
    "a statement behind a SELECT": ("SELECT 1; DROP VIEW t", "DROP"),
    "a statement behind a comment": ("SELECT 1 /* ; */; /* */ DROP VIEW t --", "DROP"),
    "nothing": ("--", "0"),
    "attach": ("ATTACH 'x.db'", "ATTACH"),
    "copy": ("COPY t TO 'x.parquet'", "COPY"),
    "copy in place": ("COPY t TO 'x.parquet' (USE_TMP_FILE false)", "COPY"),
    "export": ("EXPORT DATABASE 'x'", "EXPORT"),
    "install": ("INSTALL httpfs", "LOAD"),
    "load": ("LOAD 'x.so'", "LOAD"),
    "pragma": ("PRAGMA database_list", "PRAGMA"),
    "set": ("SET memory_limit = '1TB'", "SET"),
    "variable": ("SET VARIABLE files = ['x']", "SET"),
    "macro": ("CREATE MACRO f() AS 1", "CREATE"),
    "table": ("CREATE TABLE x AS SELECT 1", "CREATE"),
    "call": ("CALL pragma_version()", "CALL"),
    "prepared": ("PREPARE p AS SELECT 1", "PREPARE"),
    "explained copy": ("EXPLAIN ANALYZE COPY t TO 'x'", "COPY"),
    "NUL": ("SELECT 1 \x00; DROP VIEW t", "control"),
    "length": ("SELECT " + "1+" * MAX_CHARACTERS + "1", "characters"),
    "brackets": ("SELECT " + "(" * 100_000, "brackets"),
    "look-alike letters": ("FROM reаd_text('/etc/passwd')", "reаd_text"),
    "full-width letters": ("FROM ｔ", "no view"),
}


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("CREATE VIEW t AS SELECT 1 AS a, [1, 2] AS l")
    made.execute("CREATE VIEW u AS SELECT 1 AS a")
    return made


@pytest.mark.parametrize("question", ALLOWED)
def test_what_analysts_ask_is_allowed_and_runs(connection: duckdb.DuckDBPyConnection, question: str) -> None:
    assert connection.sql(check(connection, question)) is not None


@pytest.mark.parametrize(("question", "word"), ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_refused_with_its_reason(connection: duckdb.DuckDBPyConnection, question: str, word: str) -> None:
    with pytest.raises(InputError) as refusal:
        check(connection, question)
    assert word in str(refusal.value)


def test_no_listed_function_reads_a_file_a_setting_or_sql() -> None:
    touching = ("read_", "scan", "glob", "getenv", "setting", "query", "sql", "pragma", "secret", "nextval", "sleep")
    assert [name for name in FUNCTIONS | TABLE_FUNCTIONS if any(part in name for part in touching)] == []
