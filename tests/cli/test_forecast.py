"""`opus forecast`: an export of running cases, the open cases of history, and what the command refuses."""

from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake
from tests.forecast_fixtures import claims_lake

SOURCE = """[columns]
case = "case"
activity = "step"
time = "at"
attributes = ["state"]
"""
RUNNING = "case,step,at,state\nr1,a,2024-05-01T08:00:00+00:00,yes\nr1,b,2024-05-01T09:00:00+00:00,yes\n"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "history" / "claims").mkdir(parents=True)
    (tmp_path / "history" / "claims" / "source.toml").write_text(SOURCE)
    (tmp_path / "running.csv").write_text(RUNNING)
    return claims_lake(tmp_path / "lake")


def run(lake: Lake, *arguments: str) -> int:
    history = str(lake.root.parent / "history")
    return main(["--lake", str(lake.root), "forecast", "--history", history, "--open", "state", *arguments])


@pytest.mark.long
def test_an_export_of_running_cases(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(lake, str(lake.root.parent / "running.csv"), "--limit-hours", "48") == 0
    assert "r1" in capfd.readouterr().out

    sql = "select case_id, next_activity, rest, remaining_ms / 3600000 as hours, p_late from forecasts_cases"
    assert main(["--lake", str(lake.root), "query", sql, "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ["case_id,next_activity,rest,hours,p_late", 'r1,c,"[""c""]",1.0,0.0']


@pytest.mark.long
def test_limits_of_the_command_and_of_the_settings(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    settings = lake.root.parent / "opus.toml"
    settings.write_text("[forecasts.limits.claims]\nsteps = 9\ncost_usd = 2.5\n")

    assert (
        main(
            ["--settings", str(settings), "--lake", str(lake.root), "forecast", "--open", "state", "--limit-steps", "3"]
        )
        == 0
    )
    capfd.readouterr()

    sql = "select kind, limit_value, expected, p_broken, stated_by from forecasts_limits order by place"
    assert main(["--lake", str(lake.root), "query", sql, "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["cost,2.5,3.0,1.0,settings", "steps,3.0,3.0,0.0,command"]


@pytest.mark.long
def test_the_open_cases_of_history(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(lake) == 0
    assert main(["--lake", str(lake.root), "query", "forecasts", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("claims,c040,b,c,")


def test_an_export_that_cannot_be_read(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    (lake.root.parent / "running.csv").write_text("other,columns\n1,2\n")

    assert run(lake, str(lake.root.parent / "running.csv")) == 1
    assert "running.csv" in capfd.readouterr().err


def test_an_export_that_does_not_exist(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(lake, "nowhere.csv") == 1
    assert "nowhere.csv" in capfd.readouterr().err


def test_an_unknown_source(lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    export = lake.root.parent / "running.csv"
    export.write_text("other,columns\n1,2\n")
    for more in ([], [str(export)]):
        assert run(lake, *more, "--source", "loans") == 1
        said = capfd.readouterr().err
        assert "'loans'" in said
        assert "claims" in said


def test_a_lake_without_a_snapshot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history").mkdir()

    assert run(Lake(tmp_path / "lake")) == 1
    assert "opus rebuild" in capfd.readouterr().err
