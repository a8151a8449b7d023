"""What `opus discover` says of a log."""

from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import InputError
from opus_pipelines.history.discovery.discover import settings_of_file
from opus_pipelines.history.ingestion.onboarding.report import Stated

ROWS = ("1,A,2020-01-01 10:00:00", "2,A,2020-01-01 11:00:00", "1,B,2020-01-02 10:00:00", "1,C,2020-01-02 11:00:00")


def log(folder: Path, *rows: str, head: str = "case_id,activity,timestamp") -> Path:
    file = folder / "export.csv"
    file.write_text("\n".join((head, *rows, "")))
    return file


def test_a_file_that_nobody_prepared_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", str(log(tmp_path, *ROWS)), "--top", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        f"{tmp_path}/export.csv: 4 records, 2 cases, 3 tasks, 2 edges, 2020-01-01 to 2020-01-02",
        "",
        "Tasks: the 1 most frequent of 3",
        "task  occurrences  cases  starts  ends",
        "A               2      2       2     1",
        "",
        "Edges: the 1 most frequent of 2",
        "src  dst  transitions  cases",
        "A    B              1      1",
    ]
    assert "timezone UTC: assumed" in shown.err


def test_rows_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(log(tmp_path, *ROWS))
    assert main(["discover", file, "--timezone", "Europe/Berlin", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "src,dst,transitions,cases,first_seen,last_seen",
        "A,B,1,1,2020-01-02T09:00:00+00:00,2020-01-02T09:00:00+00:00",
        "B,C,1,1,2020-01-02T10:00:00+00:00,2020-01-02T10:00:00+00:00",
    ]
    assert main(["discover", file, "--tasks", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "task,occurrences,cases,starts,ends,first_seen,last_seen"


def test_rejected_records_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", str(log(tmp_path, *ROWS * 50, "2,B,soon")), "--time", "timestamp"]) == 0
    shown = capsys.readouterr()
    assert "201 records, 1 cases, 3 tasks, 5 edges" in shown.out
    assert "51 records rejected; 1 cases" in shown.err
    assert "1 records: timestamp: " in shown.err


def test_a_source_with_its_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log(tmp_path, *ROWS, head="nr,what,when")
    (tmp_path / "source.toml").write_text(
        'timezone = "UTC"\n[columns]\ncase = "nr"\nactivity = "what"\ntime = "when"\n'
    )
    assert main(["discover", str(tmp_path)]) == 0
    assert "4 records, 2 cases, 3 tasks, 2 edges" in capsys.readouterr().out
    assert main(["discover", str(tmp_path), "--case", "nr"]) == 2


def test_a_log_without_cases_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log(tmp_path, "1,A,soon", "2,B,later")
    (tmp_path / "source.toml").write_text('timezone = "UTC"\n')
    assert main(["discover", str(tmp_path)]) == 1
    assert "2 records rejected" in capsys.readouterr().err


def test_stated_columns_are_used_and_unclear_ones_are_refused(tmp_path: Path) -> None:
    file = log(tmp_path, *ROWS, head="nr,what,when")
    stated = Stated(columns={"case": "nr", "activity": "what", "time": "when"}, timezone="Europe/Rome")
    settings, notes = settings_of_file(file, stated)
    assert (settings.columns.case, settings.columns.activity, settings.columns.time) == ("nr", "what", "when")
    assert (settings.timezone, notes) == ("Europe/Rome", [])
    with pytest.raises(InputError):
        settings_of_file(log(tmp_path, "x,y,z", head="p,q,r"), Stated())
