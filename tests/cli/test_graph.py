"""`opus graph`: where the picture goes, and what goes wrong."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import EDGES, TASKS
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.reporting.views import write_views_sql

HEAVY = ("dagster", "torch", "pyspark", "transformers", "faiss", "pandas")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two tasks, one edge, published as w1."""
    monkeypatch.chdir(tmp_path)
    lake = Lake(tmp_path / "lake")
    write_views_sql(lake)
    both = {"industries": ["claims"], "implementations": 3}
    tasks = [both | {"task_id": "ta", "title": "Check"}, both | {"task_id": "tb", "title": "Pay"}]
    edge = {"src": "ta", "dst": "tb", "transitions": 3, "variants": 1, "gamma": 0.5, "probability": 1.0}
    write_table(TASKS, table_of(TASKS, tasks), lake.snapshot_folder("w1") / "tasks")
    write_table(EDGES, table_of(EDGES, [edge]), lake.snapshot_folder("w1") / "edges")
    write_json(
        lake.snapshot_folder("w1") / "manifest.json",
        {"lambda": 0.2310, "gamma_unit": "transition", "inputs": {"sources": []}},
    )
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1", "published_at": "2026-01-02T03:04:05+00:00"})
    return lake


def test_to_stdout_without_a_terminal(lake: Lake, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["graph"]) == 0
    out = capfdbinary.readouterr().out
    assert b"all 1 edge, 2 of 2 tasks" in out
    assert ElementTree.fromstring(out).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-o", "x.svg"], "x.svg"),
        ([], "wkg-w1.svg"),
    ],
)
def test_into_a_file(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    name: str,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["graph", *arguments]) == 0
    assert Path(name).read_text("utf-8").startswith("<svg ")
    assert capsys.readouterr() == ("", f"written: {name}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--around", "Pya"], 1, "opus: no task is called 'Pya'; the nearest: Pay"),
        (["--industry", "claim"], 1, "opus: no industry is called 'claim'; there is: claims"),
        (["--edges", "0"], 2, "0 is not in the range 1<=x<=400"),
        (["-o", "nowhere/x.svg"], 1, "nowhere: no such folder for the picture"),
    ],
)
def test_what_goes_wrong(
    lake: Lake, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["graph", *arguments]) == code
    assert message in capsys.readouterr().err


def test_without_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["graph"]) == 1
    assert "has no snapshot yet; `opus rebuild`" in capsys.readouterr().err


@pytest.mark.long
def test_it_loads_nothing_heavy(lake: Lake) -> None:
    code = (
        "import sys, json; from opus_pipelines.cli.main import main; main(['graph', '--around', "
        "'Pay', '-o', 'x.svg']); "
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=lake.root.parent
    )
    assert json.loads(done.stdout) == []
    assert done.stderr == "written: x.svg\n"
