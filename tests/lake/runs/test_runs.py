"""The rows of `ops/runs`: written once, the latest kept, shown by the query, the status and the page."""

from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.lake.runs import is_recorded, latest, record, remove_runs
from opus_pipelines.lake.search import Word
from opus_pipelines.reporting.status import report
from opus_pipelines.reporting.tasks import rows
from opus_pipelines.reporting.views import connect, run, write_views_sql
from tests.lake.runs.night_rows import failed_night, night


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.ensure_empty()
    write_views_sql(lake)
    return lake


def test_a_run_is_recorded_once_and_read_as_it_was(lake: Lake) -> None:
    first = failed_night(1, failed_checks=("wkg/tasks schema: 1 wrong",), checks_failed=1)
    assert record(lake, first, 31)
    assert not record(lake, first, 31)
    assert is_recorded(lake, first.run)
    assert latest(lake, "rebuild", 5) == [first]
    assert latest(lake, "train", 5) == []


def test_the_latest_runs_are_kept(lake: Lake) -> None:
    for number in range(5):
        record(lake, night(number), 3)
    assert {one.run for one in latest(lake, "rebuild", 9)} == {"run-002", "run-003", "run-004"}


def test_rows_that_name_a_client_are_removed(lake: Lake) -> None:
    record(lake, night(1, contract_key="Acme__Retail"), 31)
    record(lake, night(2, contract_key="Bolt__Sales"), 31)
    assert remove_runs(lake, [Word("client", "Acme")]) == 1
    assert [one.run for one in latest(lake, "rebuild", 9)] == ["run-002"]
    assert remove_runs(Lake(lake.root / "none"), [Word("client", "Acme")]) == 0


@pytest.mark.long
def test_the_last_night_stands_beside_the_thirty_before_it(lake: Lake) -> None:
    for number in range(40):
        record(lake, night(number, seconds=float(number)), 100)
    record(lake, failed_night(40, seconds=90.0), 100)
    figures = {row["figure"]: row for row in rows(connect(lake), "nights")}
    duration = figures["duration"]
    assert (duration["last"], duration["median_before"], duration["least_before"], duration["most_before"]) == (
        90.0,
        24.5,
        10.0,
        39.0,
    )
    assert duration["nights"] == 30
    assert figures["step mine"]["last"] == 40.0
    assert "cost" not in figures, "no price is set"
    assert run(connect(lake), "nights").fetchall()[0][1:4] == ("failure", 90.0, 1_000)


@pytest.mark.long
def test_the_status_says_in_one_line_what_failed_where_its_evidence_lies_and_what_repeats_it(lake: Lake) -> None:
    blocks = {title: found for title, _, found in report(connect(lake), lake)}
    assert blocks["Nights that failed: none of the last 31"] == []
    record(lake, failed_night(7), 31)
    blocks = {title: found for title, _, found in report(connect(lake), lake)}
    [(_, *told)] = blocks["Nights that failed"]
    assert told == ["the disk is full", "runs/7.db (`opus ui`, run 7)", "opus rebuild"]
    assert len(blocks["The last night beside up to thirty before it"]) == 10


def test_a_lake_without_a_snapshot_has_nights_too(lake: Lake) -> None:
    write_json(lake.root / "wkg" / "current.json", {})
    record(lake, failed_night(1), 31)
    assert run(connect(lake), "SELECT count(*) FROM ops_runs").fetchall() == [(1,)]
