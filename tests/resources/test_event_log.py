"""Dagster's event log kept open: its files are not closed between events, and everything is in them afterwards."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import create_engine, text

from resources.event_log import kept_open

NORMAL, FULL = 1, 2  # https://sqlite.org/pragma.html#pragma_synchronous
FIRST, RUN = "5a2e2b1c-0000-4000-8000-000000000015", "5a2e2b1c-0000-4000-8000-000000000016"


@dg.op
def step() -> None: ...


@dg.job
def job() -> None:
    step()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "history" / "runs"


def events(instance: dg.DagsterInstance, run: str = RUN) -> list[str]:
    return [str(record.event_log_entry.dagster_event_type) for record in instance.get_records_for_run(run).records]


@pytest.mark.long
def test_a_run_is_recorded_whole_and_its_files_are_closed_once(tmp_path: Path, runs: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        with kept_open(instance):
            assert job.execute_in_process(instance=instance, run_id=FIRST).success
            assert job.execute_in_process(instance=instance, run_id=RUN).success
            assert {file.name for file in runs.glob("*-wal")} == {"index.db-wal", f"{RUN}.db-wal"}
            assert (runs.parent / "runs.db-wal").is_file()
        assert list(runs.glob("*-wal")) == []
        found = events(instance)
        assert events(instance, FIRST) == found  # the first file was prepared by Dagster, the second is a copy of it
    assert found[0] == "DagsterEventType.RUN_START"
    assert found[-1] == "DagsterEventType.RUN_SUCCESS"
    assert "DagsterEventType.STEP_SUCCESS" in found


@pytest.mark.long
def test_the_disk_is_waited_for_at_each_commit_of_other_files_alone(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        storage: Any = instance.event_log_storage
        with kept_open(instance):
            with storage.run_connection(RUN) as own:
                assert own.execute(text("PRAGMA synchronous")).scalar() == NORMAL
            with create_engine(f"sqlite:///{tmp_path}/other.db").connect() as other:
                assert other.execute(text("PRAGMA synchronous")).scalar() == FULL
        with storage.run_connection(RUN) as own:
            assert own.execute(text("PRAGMA synchronous")).scalar() == FULL


@pytest.mark.long
def test_other_storages_are_left_alone() -> None:
    with dg.DagsterInstance.ephemeral() as instance, kept_open(instance):
        assert job.execute_in_process(instance=instance, run_id=RUN).success
