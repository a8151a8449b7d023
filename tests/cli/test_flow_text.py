"""`opus flow new` and `opus flow edit FILE UTTERANCE`."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from tests.flow_generation.flow_examples import ENTRIES

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
