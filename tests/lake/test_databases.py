"""Damaged databases of Dagster and MLflow: found by SQLite's check, named, set aside, and no result depends on them."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.cli import runs
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.damage import NEEDED, damaged_databases, databases, require_openable
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import has_unfinished_runs, last_runs
from opus_pipelines.wkg.upkeep.verify import repair, require_sound_for_rebuild, verify

NOW = datetime(2026, 1, 31, tzinfo=UTC)
RUNS = "CREATE TABLE runs (id INTEGER, pipeline_name TEXT, status TEXT, start_time REAL, end_time REAL, run_id TEXT)"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    for place in (*(f".dagster/{name}" for name in NEEDED), ".dagster/history/runs/r1.db", "mlflow/mlflow.db"):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file)) as database:
            database.execute(RUNS)
            rows = [(n, "rebuild", "SUCCESS", 1.0, 2.0, f"r{n}" * 50) for n in range(500)]
            database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.commit()
    return lake


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:9_000])


def garbage(file: Path) -> None:
    file.write_bytes(b"no database " * 2_000)


def torn_page(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8_192:12_288] = b"\xff" * 4_096
    file.write_bytes(content)


def test_sound_databases_are_found_sound(lake: Lake) -> None:
    assert len(list(databases(lake))) == 5
    assert list(damaged_databases(lake)) == []
    require_openable(lake)
    assert len(last_runs(lake)) == 5


@pytest.mark.parametrize("fault", [cut, garbage, torn_page])
def test_each_damaged_database_is_named_and_set_aside(fault: Callable[[Path], None], lake: Lake) -> None:
    for file in databases(lake):
        fault(file)
    damaged = verify(lake).damage
    assert [one.file for one in damaged] == sorted(databases(lake))
    with lake.lock():
        done = repair(lake, damaged, NOW).done
    assert len(done) == 5
    assert list(databases(lake)) == []
    assert len(list((lake.root / "damaged").rglob("*.db"))) == 5
    assert last_runs(lake) == []


@pytest.mark.parametrize("fault", [cut, garbage])
def test_no_run_begins_on_a_damaged_record(fault: Callable[[Path], None], lake: Lake) -> None:
    fault(lake.dagster_home / "history" / "runs.db")
    settings = Settings(paths=Paths(lake=lake.root))
    for action in (
        lambda: last_runs(lake),
        lambda: has_unfinished_runs(lake),
        lambda: require_sound_for_rebuild(lake),
        lambda: runs.rebuild(settings, full=False, reset_lambda=False),
        lambda: runs.record_unchanged(settings, "w1"),
    ):
        with pytest.raises(LakeError, match=r"runs\.db.*opus verify --repair"):
            action()


def test_the_log_of_one_run_does_not_stop_a_rebuild(lake: Lake) -> None:
    cut(lake.dagster_home / "history" / "runs" / "r1.db")
    (line,) = require_sound_for_rebuild(lake)
    assert "r1.db" in line


def test_an_empty_or_missing_record_has_no_runs(lake: Lake) -> None:
    (lake.dagster_home / "history" / "runs.db").write_bytes(b"")
    assert (last_runs(lake), has_unfinished_runs(lake)) == ([], False)
    (lake.dagster_home / "history" / "runs.db").unlink()
    assert (last_runs(lake), has_unfinished_runs(lake)) == ([], False)


@pytest.mark.parametrize(("name", "opens"), [("a%41", False), ("a?b", False), ("a%zz", True), ("a#b", True)])
def test_a_path_that_sqlite_would_read_otherwise_is_refused(name: str, opens: bool, tmp_path: Path) -> None:
    if opens:
        require_openable(Lake(tmp_path / name))
    else:
        with pytest.raises(LakeError, match="rename"):
            require_openable(Lake(tmp_path / name))
