from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.lake.layout import PART, Lake, write_json
from opus_pipelines.lake.results import ResultKey, columns_of_results
from opus_pipelines.reporting.views import connect, only_results_of, only_results_with, write_views_sql
from tests.published_lake import SNAPSHOT, as_older_version, publish


def test_every_dataset_is_a_view_of_an_empty_lake_with_the_declared_columns(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    write_views_sql(lake)
    connection = connect(lake)
    for dataset in DATASETS.values():
        found = connection.sql(f"FROM {dataset.view}")
        assert (found.columns, found.fetchall()) == (dataset.schema.names, [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT task_id FROM wkg_tasks ORDER BY 1", [("tc",), ("tp",)]),
        ("SELECT count(*) FROM history_implementations", [(2,)]),
        ("SELECT source, reason_code FROM history_rejects", [("broken", "no_time")]),
        (
            "SELECT contract, result, workflow_id FROM workflows_optimized ORDER BY rank",
            [("007", "r2", "fa1"), ("007", "r2", "fa2")],
        ),
        ("SELECT snapshot FROM current_snapshot", [("w1",)]),
        ("SELECT client, result FROM current_results", [("../Nord/wind 50%", "r2")]),
    ],
)
def test_views_show_what_the_pointers_name(lake: Lake, sql: str, expected: list[tuple[object, ...]]) -> None:
    assert connect(lake).sql(sql).fetchall() == expected


@pytest.mark.parametrize(
    ("view", "condition", "files"),
    [
        ("workflows_optimized", "client = '../Nord/wind 50%'", "1/2"),
        ("workflows_optimized", "client = 'somebody else' AND contract = '007'", "0/2"),
        ("workflows_earlier", "contract = '008'", "0/"),
        ("history_implementations", "source = 'another'", "0/2"),
    ],
)
def test_a_condition_on_a_client_or_source_opens_its_files_alone(
    lake: Lake, view: str, condition: str, files: str
) -> None:
    plan = connect(lake).sql(f"EXPLAIN ANALYZE SELECT count(*) FROM {view} WHERE {condition}").fetchall()[0][1]
    assert f"Scanning Files: {files}" in plan


def test_files_of_these_columns_are_not_opened_to_learn_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    publish(lake)
    connection = connect(lake)
    other = ResultKey("Nord/wind 50%", "007", "r1").folder(lake, RUNS)
    (other / PART).write_bytes(b"no Parquet")
    assert connection.sql("SELECT run_id FROM generation_runs WHERE client = 'Acme'").fetchall() == [("x",)]
    with pytest.raises(duckdb.Error, match="client_key=Nord_2fwind_2050_25"):
        connection.sql("SELECT run_id FROM generation_runs").fetchall()


def test_a_result_without_a_column_of_this_version_reads_as_null(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    publish(lake)
    as_older_version(lake)
    key = ResultKey("Acme", "Retail", "r1")
    assert key.columns(lake) == columns_of_results()
    file = key.folder(lake, RUNS) / PART
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns("snapshot"), file)
    assert key.columns(lake) is None
    rows = connect(lake).sql("SELECT client, snapshot FROM generation_runs ORDER BY client").fetchall()
    assert rows == [("Acme", None), ("Nord/wind 50%", SNAPSHOT)]


def test_views_can_be_limited_to_a_contract_for_a_while(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    publish(lake)
    connection = connect(lake)

    def clients() -> list[str]:
        return [c for (c,) in connection.sql("SELECT client FROM generation_runs ORDER BY client").fetchall()]

    with only_results_of(connection, "Nord/wind 50%", None):
        assert clients() == ["Nord/wind 50%"]
        assert connection.sql("SELECT count(*) FROM wkg_tasks").fetchall() == [(1,)]
        assert connection.sql("SELECT count(*) FROM current_results").fetchall() == [(2,)]
        with only_results_of(connection, None, "Retail"):
            assert clients() == []
        assert clients() == ["Nord/wind 50%"]
    assert clients() == ["Acme", "Nord/wind 50%"]
    with only_results_with(connection, "no such workflow"):
        assert clients() == ["Acme", "Nord/wind 50%"]


def test_the_file_alone_is_enough_for_duckdb(lake: Lake) -> None:
    connection = duckdb.connect()
    connection.execute((lake.root / "views.sql").read_text())
    assert connection.sql("SELECT workflow_id FROM workflows_optimized WHERE rank = 1").fetchall() == [("fa1",)]


def test_a_reader_stays_with_what_it_resolved(lake: Lake) -> None:
    before = connect(lake)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w0", "published_at": "2026-01-03T00:00:00+00:00"})
    write_json(lake.root / "workflows/current/a__b.json", {"client": "a", "contract": "b", "result": "r1"})
    assert before.sql("SELECT task_id FROM wkg_tasks ORDER BY 1").fetchall() == [("tc",), ("tp",)]
    assert before.sql("SELECT snapshot FROM current_snapshot").fetchall() == [("w1",)]
    assert before.sql("SELECT contract FROM current_results").fetchall() == [("007",)]
    assert connect(lake).sql("SELECT task_id FROM wkg_tasks").fetchall() == [("t_old",)]


def test_a_folder_that_is_no_lake_is_named(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a lake yet; `opus rebuild`"):
        connect(Lake(tmp_path / "nothing"))


@pytest.mark.parametrize(
    "content", [b"", b'{"client": "Acme', b'{"cli\xff": 1}', b"[1]", b'{"client": "Acme"}', b"[" * 9000]
)
def test_a_damaged_pointer_costs_its_own_contract_and_is_named(lake: Lake, content: bytes) -> None:
    (lake.root / "workflows/current/Acme_20Ltd__Claims.json").write_bytes(content)
    connection = duckdb.connect()
    connection.execute((lake.root / "views.sql").read_text())
    assert connection.sql("SELECT contract FROM current_results").fetchall() == [("007",)]
    found = connection.sql("SELECT client, contract, file FROM damaged_results").fetchall()
    assert found == [("Acme Ltd", "Claims", "workflows/current/Acme_20Ltd__Claims.json")]
