import json
from importlib.resources import files
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main

CASES = [str(Path(str(files("opus_pipelines.workflow.evaluation"))) / "case_study" / f"w{n}.yaml") for n in (1, 2, 3)]


def test_files_are_scored_and_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *CASES]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "reward_usd (7) 0.8495 0.85 0.85" in lines
    assert "penalty (10) 0.2513 0.2547 0.2713" in lines
    assert lines[-3:] == [
        "1 W2: one review, where it pays 0.85 0.2547 0",
        "2 W3: identification and review in one task 0.85 0.2713 0.0005075",
        "3 W1: a review after each uncertain task 0.8495 0.2513 -",
    ]


def test_json_has_every_part_and_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", CASES[1], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert (found["duration_ms"], found["cost_usd"], round(found["reward_usd"], 4)) == (3810.0, 0.00096, 0.85)
    assert found["nodes"]["assemble"] == {"success": pytest.approx(0.925), "start_ms": 3800.0, "finish_ms": 3810.0}
    assert found["differs_from_exact"] == {}


def test_the_case_study_labels_what_is_reproduced(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--case-study"]) == 0
    out = capsys.readouterr().out
    rows = {
        line.split()[0]: line.split("  ")[-1].strip()
        for line in out.splitlines()
        if "(" in line and not line.startswith(" ")
    }
    labels = [rows[name] for name in ("reward_usd", "penalty", "cost_usd", "cip")]
    assert labels == ["reproduced", "reproduced", "not published", "fitted input"]
    assert "The order turns at a gain of $1.35" in out


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "WorkflowFile"


def test_wrong_use_and_broken_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score"]) == 2
    broken = tmp_path / "w.yaml"
    broken.write_text("tasks: [{id: a, p: 2}]")
    assert main(["score", str(broken)]) == 1
    assert f"opus: {broken}: tasks.0.p: " in capsys.readouterr().err
