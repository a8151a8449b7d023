"""A lake of an older version is read, or taken over with a line; one of a newer version is refused; none is misread."""

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import ALIASES, EMBEDDINGS, IMPLEMENTATIONS, TASK_IMPLEMENTATIONS, TASKS
from opus_pipelines.lake import version
from opus_pipelines.lake.layout import Lake, read_json, read_table, table_of, write_json, write_table
from opus_pipelines.reporting.views import connect, write_views_sql


def older(lake: Lake) -> Lake:
    """A lake as the first version wrote it: no lake.json, and tables that lack the columns that came later."""
    write_views_sql(lake)
    (lake.root / "lake.json").unlink()
    write_json(lake.root / "wkg/current.json", {"snapshot": "w1", "published_at": "2026-01-01T00:00:00+00:00"})
    write_json(
        lake.root / "wkg/w1/manifest.json",
        {
            "published_at": "2026-01-01T00:00:00+00:00",
            "inputs": {"sources": [{"source": "s", "content": "c"}]},
            "counts": {},
        },
    )
    tasks = [{"task_id": "t1", "title": "Check", "p": 0.9, "implementations": 3, "duration_ms_p50": 5.0}]
    drop(
        write_table(TASKS, table_of(TASKS, tasks), lake.snapshot_folder("w1") / "tasks"), "duration_ms_p50", "community"
    )
    drop(lake.root / ".empty/wkg_tasks.parquet", "duration_ms_p50", "community")
    ways = write_table(
        TASK_IMPLEMENTATIONS,
        table_of(TASK_IMPLEMENTATIONS, [{"task_id": "t1", "actor_group": "g"}]),
        lake.snapshot_folder("w1") / "task_implementations",
    )
    drop(ways, "actor_group")
    step = {"position": 0, "task_key": "check", "success": True}
    place = lake.folder(IMPLEMENTATIONS, source_key="s", content="c")
    path = write_table(
        IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, [{"implementation_id": "i1", "source": "s", "tasks": [step]}]), place
    )
    table = pq.ParquetFile(path).read()
    short = pa.list_(pa.struct([("position", pa.int32()), ("task_key", pa.string())]))
    column = pa.array([[{"position": 0, "task_key": "check"}]], short)
    pq.write_table(table.set_column(table.schema.get_field_index("tasks"), "tasks", column), path)
    return lake


def drop(path: Path, *columns: str) -> None:
    pq.write_table(pq.ParquetFile(path).read().drop_columns(list(columns)), path)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(logging.getLogger("opus_pipelines"), "propagate", True)  # which the command line turns off
    return older(Lake(tmp_path / "lake"))


def test_columns_that_came_later_are_null_in_the_views(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "opus_pipelines.lake.layout"):
        connection = connect(lake)
    assert "was written by another version" in caplog.text
    assert connection.sql("SELECT task_id, p, duration_ms_p50, community FROM wkg_tasks").fetchall() == [
        ("t1", 0.9, None, None)
    ]
    assert connection.sql("SELECT task_id, actor_group FROM wkg_task_implementations").fetchall() == [("t1", None)]
    step = connection.sql("SELECT tasks[1].task_key, tasks[1].success FROM history_implementations").fetchall()
    assert step == [("check", None)]
    assert connection.sql("SELECT * FROM wkg_needs").fetchall() == []
    assert not (lake.root / "lake.json").exists()


def test_columns_that_came_later_are_null_in_python(lake: Lake) -> None:
    tasks = read_table(TASKS, lake.snapshot_folder("w1") / "tasks")
    assert tasks.schema == TASKS.schema
    assert (tasks["p"].to_pylist(), tasks["duration_ms_p50"].to_pylist()) == ([0.9], [None])
    some = read_table(TASKS, lake.snapshot_folder("w1") / "tasks", columns=["community", "task_id"])
    assert some.to_pylist() == [{"community": None, "task_id": "t1"}]
    only = read_table(TASKS, lake.snapshot_folder("w1") / "tasks", columns=["community"])
    assert only.to_pylist() == [{"community": None}]
    steps = read_table(IMPLEMENTATIONS, lake.folder(IMPLEMENTATIONS, source_key="s", content="c"))["tasks"].to_pylist()
    assert (steps[0][0]["task_key"], steps[0][0]["success"]) == ("check", None)


def test_columns_that_went_are_left_out(tmp_path: Path) -> None:
    tmp_path.joinpath("t").mkdir()
    pq.write_table(pa.table({"task_id": ["t1"], "was_there_once": [1]}), tmp_path / "t" / "part-00000.parquet")
    assert read_table(ALIASES, tmp_path / "t", columns=["task_id"]).to_pylist() == [{"task_id": "t1"}]
    assert read_table(ALIASES, tmp_path / "t").schema == ALIASES.schema


def test_vectors_keep_the_length_of_their_encoder(tmp_path: Path) -> None:
    made = table_of(EMBEDDINGS, [{"task_id": "t", "vector": [1.0, 0.0]}], EMBEDDINGS.with_dimension(2))
    drop(write_table(EMBEDDINGS, made, tmp_path), "model")
    assert read_table(EMBEDDINGS, tmp_path).to_pylist() == [
        {"task_id": "t", "content_hash": None, "model": None, "vector": [1.0, 0.0]}
    ]


def test_the_first_writer_takes_an_older_lake_over_with_one_line(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "opus_pipelines.lake.layout"), lake.lock():
        pass
    (line,) = [r.getMessage() for r in caplog.records]
    assert line.startswith(f"{lake.root} is of format 1")
    assert line.endswith("format 3")
    assert read_json(lake.root / "lake.json") == {
        "format": 3,
        "schemas": version.schemas_hash(),
        "version": "0.1.0",
    }
    assert "community" in pq.ParquetFile(lake.root / ".empty/wkg_tasks.parquet").schema_arrow.names
    caplog.clear()
    with lake.lock():
        pass
    connection = connect(lake)
    assert connection.sql("SELECT community FROM wkg_tasks").fetchall() == [(None,)]
    assert caplog.records == []


@pytest.mark.parametrize("arguments", [["status"], ["best"], ["rollback"], ["query", "SELECT 1"]])
def test_a_lake_of_a_newer_version_is_refused_in_one_line(
    lake: Lake, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.root.parent)
    write_json(lake.root / "lake.json", {"format": 4, "version": "0.7.2"})
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "format 4" in line
    assert "install opus-pipelines 0.7.2" in line
    with pytest.raises(LakeError, match="format 4"), lake.lock():
        pass


def test_a_lake_json_edited_by_hand_is_named(lake: Lake) -> None:
    write_json(lake.root / "lake.json", {"format": "two"})
    with pytest.raises(LakeError, match="names no format"):
        version.format_of(lake.root)


def test_an_empty_folder_is_no_lake_and_becomes_one_of_this_format(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert version.format_of(tmp_path) is None
    with caplog.at_level(logging.INFO, "opus_pipelines.lake.layout"), Lake(tmp_path).lock():
        pass
    assert version.format_of(tmp_path) == 3
    assert not version.has_these_columns(tmp_path)
    assert caplog.records == []
