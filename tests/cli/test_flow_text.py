"""`opus flow new` and `opus flow edit FILE UTTERANCE`."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from tests.flows.from_text.flow_examples import ENTRIES

JIRA, SLACK = "Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message"


@pytest.mark.model
def test_a_flow_is_written_and_edited_in_its_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalogue, flow = tmp_path / "catalogue.json", tmp_path / "flow.bpmn"
    catalogue.write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]), "utf-8")
    given = ["--catalogue", str(catalogue)]
    asked = "Create a Jira issue and send a slack message"
    assert main(["flow", "new", asked, *given, "--to", "bpmn", "-o", str(flow)]) == 0
    capfd.readouterr()
    assert main(["flow", "edit", str(flow), "Remove the slack message", *given, "-o", str(flow)]) == 0
    assert "delete" in capfd.readouterr().err
    assert main(["flow", "convert", str(flow), "--to", "python"]) == 0
    told = capfd.readouterr().out
    assert JIRA in told
    assert SLACK not in told
    assert main(["flow", "edit", str(flow), "Remove the coupa invoice", *given]) == 1
    assert JIRA in capfd.readouterr().err


@pytest.mark.model
def test_turns_are_edited_in_place_and_taken_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalogue, flow = tmp_path / "catalogue.json", tmp_path / "flow.bpmn"
    catalogue.write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]), "utf-8")
    (tmp_path / "flow.py").write_text(f"issue = {JIRA}()\n")
    assert main(["flow", "convert", str(tmp_path / "flow.py"), "--to", "bpmn", "-o", str(flow)]) == 0
    before = flow.read_bytes()
    asked = ["Send a slack message", "Create a board in Trello", "Remove the coupa invoice"]
    assert main(["flow", "edit", str(flow), *asked, "--in-place", "--catalogue", str(catalogue)]) == 1
    assert "turn 3" in capfd.readouterr().err
    two_turns = flow.read_bytes()
    assert [name in two_turns.decode() for name in (JIRA, SLACK, "Trello_Board__2_0_0__create_Board")] == [True] * 3
    assert main(["flow", "undo", str(flow), "--list"]) == 0
    assert capfd.readouterr().out.index(asked[1]) > 0
    assert main(["flow", "undo", str(flow)]) == 0
    assert "Trello" not in flow.read_text()
    assert main(["flow", "undo", str(flow), "--turns", "2"]) == 1
    assert main(["flow", "undo", str(flow)]) == 0
    assert flow.read_bytes() == before
    assert main(["flow", "edit", str(flow), "x", "--in-place", "-o", str(tmp_path / "o.bpmn")]) == 1


@pytest.mark.model
def test_utterances_are_evaluated_into_the_lake(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalogue, asked, lake = tmp_path / "catalogue.json", tmp_path / "asked.jsonl", ["--lake", str(tmp_path / "lake")]
    catalogue.write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]), "utf-8")
    lines = [
        {"uid": 1, "utterance": "Create an issue in Jira", "gold": f"x = {JIRA}()", "tags": ["linear"]},
        {"uid": 2, "utterance": "Send a slack message", "gold": f"x = {SLACK}()", "tags": ["linear"]},
        {"uid": 3, "utterance": "Send a slack message"},
    ]
    asked.write_text("\n".join(json.dumps(line) for line in lines))
    given = ["evaluate", str(asked), "--catalogue", str(catalogue)]
    assert main([*lake, *given, "--cross-domain"]) == 0
    told = capfd.readouterr()
    assert "asked.jsonl: 2 utterances, cross domain" in told.out
    assert main([*lake, "query", "utterance_scores", "--format", "csv"]) == 0
    rows = capfd.readouterr().out.splitlines()
    assert [row.split(",")[2:7] for row in rows[1:3]] == [
        ["cross domain", "flow writer", "", "2", "1.0"],
        ["cross domain", "flow writer", "linear", "2", "1.0"],
    ]
    assert main([*lake, *given, "--cross-domain", "--no-learning"]) == 2
    assert main([*lake, "evaluate", str(catalogue), "--no-learning"]) == 2


def test_an_edit_takes_an_utterance_or_operations(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text("x = A()\n", "utf-8")
    assert main(["flow", "edit", str(flow)]) == 1
    assert main(["flow", "edit", str(flow), "x", "--operations", str(flow)]) == 1


def test_without_a_catalogue_or_a_snapshot_the_command_says_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--lake", str(tmp_path / "lake"), "flow", "new", "create an issue"]) == 1
    assert "--catalogue" in capfd.readouterr().err
