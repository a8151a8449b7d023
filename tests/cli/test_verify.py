"""`opus verify` on a lake that was published without Spark: what it says, what it mends, and its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import DECISIONS, OPTIMIZED, RUNS
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.lake.runs import latest
from opus_pipelines.wkg.upkeep.erasure import remove_decisions
from tests.published_lake import SNAPSHOT, as_older_version
from tests.published_lake import publish as publish_lake

ACME = ResultKey("Acme", "Retail", "r1")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    publish_lake(lake)
    return lake.root


@pytest.fixture
def lake(published: Path, tmp_path: Path) -> Lake:
    shutil.copytree(published, tmp_path / "lake")
    return Lake(tmp_path / "lake")


def opus(lake: Lake, *arguments: str) -> int:
    return main(["--lake", str(lake.root), *arguments])


def test_a_sound_lake(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert opus(lake, "verify") == 0
    assert "none damaged" in capsys.readouterr().err


def test_no_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opus(Lake(tmp_path / "none"), "verify") == 1
    assert "is not a lake yet" in capsys.readouterr().err


def test_a_damaged_snapshot_stops_every_reader(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    file = lake.snapshot_folder(SNAPSHOT) / "tasks" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-7])
    for command in (
        ["best"],
        ["status"],
        ["query", "best_workflows"],
        ["generate", "--intakes", str(lake.root.parent)],
    ):
        assert opus(lake, *command) == 1
        said = capsys.readouterr().err
        assert f"{file} has " in said
        assert "`opus verify --repair` mends it" in said
    assert opus(lake, "verify") == 1
    shown = capsys.readouterr()
    assert f"wkg/{SNAPSHOT}/tasks/part-00000.parquet" in shown.out
    assert "1 files are damaged" in shown.err


def test_what_damage_does_not_let_begin_is_recorded_and_told(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lake.snapshot_folder(SNAPSHOT) / "tasks" / "part-00000.parquet"
    file.write_bytes(b"damaged")
    monkeypatch.setenv("OPUS_ALERTS_WEBHOOK", "http://127.0.0.1:9/nobody")  # nobody listens, which the log says
    contract = ["--client", "Acme", "--contract", "Retail"]
    assert opus(lake, "generate", "--intakes", str(lake.root.parent), *contract) == 1
    repeat = f"opus --lake {lake.root} generate --client Acme --contract Retail"
    said = capsys.readouterr().err
    assert f"(then repeat: {repeat})" in said
    assert "the alert by webhook was not sent" in said
    (run,) = latest(lake, "generate", 9)
    assert (run.status, run.contract_key, run.repeat) == ("failure", "Acme__Retail", repeat)
    assert run.reason is not None
    assert str(file) in run.reason


@pytest.mark.long
def test_a_damaged_result_costs_its_contract_alone(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    (ACME.folder(lake, OPTIMIZED) / "part-00000.parquet").unlink()
    assert opus(lake, "query", "SELECT client, contract, reason FROM damaged_results", "--format", "json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == [{"client": "Acme", "contract": "Retail", "reason": "is missing"}]
    assert "left out: Acme / Retail" in shown.err
    assert opus(lake, "query", "SELECT client FROM current_results", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"client": "Nord/wind 50%"}]


def test_a_rebuild_does_not_begin_on_damage(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "history").mkdir()
    (lake.kept / "ids.parquet").unlink()
    assert opus(lake, "rebuild", "--history", str(tmp_path / "history")) == 1
    assert "ids.parquet is missing; nothing was begun" in capsys.readouterr().err
    (run,) = latest(lake, "rebuild", 9)
    assert (run.status, run.repeat) == ("failure", f"opus --lake {lake.root} rebuild")


@pytest.mark.parametrize("name", ["wkg/current.json", "wkg/kept/ids.parquet", "wkg/kept/lambda.json"])
def test_a_kept_file_is_restored(lake: Lake, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = (lake.root / name).read_bytes()
    (lake.root / name).write_bytes(content[:-1])
    assert opus(lake, "verify", "--repair") == 0
    assert "was restored from its copy" in capsys.readouterr().out
    assert (lake.root / name).read_bytes() == content


def test_a_decision_is_restored_and_forgotten_with_its_copy(lake: Lake) -> None:
    (file,) = lake.folder(DECISIONS, client_key="Acme", contract_key="Retail").glob("*.parquet")
    file.write_bytes(b"")
    assert opus(lake, "verify", "--repair") == 0
    assert file.stat().st_size > 1000
    from opus_pipelines.lake.search import Word

    assert remove_decisions(lake, "Acme", [Word("kind", "accept")]) == []
    assert list((lake.root / "decisions").rglob("*.parquet")) == []


@pytest.mark.long
def test_a_lost_pointer_without_a_copy_names_the_newest_snapshot(lake: Lake, capsys: Any) -> None:
    (lake.root / "wkg" / "current.json").unlink()
    shutil.rmtree(lake.root / "wkg" / "_copies")
    opus(lake, "verify", "--repair")
    assert f"names the newest sound snapshot now, {SNAPSHOT}" in capsys.readouterr().out
    assert lake.current_snapshot() == SNAPSHOT


def test_what_is_set_aside_is_kept(lake: Lake, capsys: Any) -> None:
    file = ACME.folder(lake, RUNS) / "part-00000.parquet"
    file.write_bytes(b"x")
    opus(lake, "verify", "--repair")
    assert "its result r1 was set aside" in capsys.readouterr().out
    (kept,) = (lake.root / "damaged").glob("*/generation/runs/*/*/*/part-00000.parquet")
    assert kept.read_bytes() == b"x"
    assert not file.exists()


def test_a_lake_of_an_older_version_is_read_and_counted(lake: Lake, capsys: Any) -> None:
    as_older_version(lake)
    assert opus(lake, "query", "SELECT count(*) FROM current_results") == 0
    assert "2" in capsys.readouterr().out
    assert opus(lake, "verify") == 0
    assert "folders have no list of files" in capsys.readouterr().err
