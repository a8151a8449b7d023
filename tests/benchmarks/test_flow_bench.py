"""The benchmark of Flow-Bench: what may teach, and predictions for a folder whose tests carry no answer."""

import json
from pathlib import Path

import pytest
import yaml

from benchmarks.flow_bench import fault, main
from opus_pipelines.flows.batches.scoring import others
from opus_pipelines.flows.from_text.activity_choice import ActivityRanker, UserTaskClassifier
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.flow_folder import FlowTask, FolderError, read_folder
from opus_pipelines.flows.from_text.generator import FlowWriter
from opus_pipelines.flows.from_text.predictions import predict
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import activities
from tests.flows.from_text.flow_examples import ENTRIES, WordEncoder, catalogue

JIRA, SLACK = "Jira_Issue__2_0_0__create_Issue", "Slack_message__3_0_0__create_message"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalogue.json").write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]))
    tests = [
        {"_metadata": {"uid": 1, "tags": ["linear"]}, "input": {"utterance": "Create a Jira issue"}},
        {
            "_metadata": {"uid": 2, "tags": ["linear_update"]},
            "input": {"utterance": "Add a slack message", "prior_sequence": [f"issue = {JIRA}()"]},
            "expected_output": {"sequence": [f"issue = {JIRA}()\nmessage = {SLACK}()"]},
        },
    ]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"actions": [{"$ref": "catalogue.json"}], "tests": tests}))
    return tmp_path


def test_a_test_that_is_asked_does_not_teach(folder: Path) -> None:
    tasks = read_folder(folder).tasks
    assert [task.uid for task in others(tasks, [FlowTask("9", "Create a Jira issue")])] == ["2"]


def test_a_fault_names_the_activities() -> None:
    task = FlowTask("1", "", expected=parse_ir(f"a = {JIRA}()"))
    assert fault(task, parse_ir(f"a = {SLACK}()")) == f"missing {JIRA}; too many {SLACK}"


def test_a_folder_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("actions: [{$ref: ../../etc/passwd}]\ntests: []\n")
    with pytest.raises(FolderError):
        read_folder(tmp_path)


def test_a_flow_that_cannot_be_parsed_costs_its_own_test(folder: Path) -> None:
    tests = folder / "tests.yaml"
    tests.write_text(tests.read_text().replace("message =", "import os; message ="))
    tasks = read_folder(folder).tasks
    assert tasks[1].expected is None
    assert [task.unread_expected is None for task in tasks] == [True, False]


def test_a_prior_flow_that_cannot_be_parsed_is_a_reason() -> None:
    entries = catalogue()
    ranker = ActivityRanker(FeatureTable(entries, WordEncoder()))
    writer = FlowWriter(ranker, UserTaskClassifier(ranker))
    task = FlowTask("7", "Add a slack message", unread_prior="line 1: no call")
    made = predict(writer, task)
    assert (made.uid, made.flow, made.bpmn) == ("7", None, "")
    assert made.reason is not None
    assert "line 1: no call" in made.reason


@pytest.mark.model
def test_a_folder_is_predicted_and_scored(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "predictions.jsonl"
    assert main([str(folder), str(file), "--learn", str(folder)]) == 0
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [line["uid"] for line in lines] == [1, 2]
    assert activities(parse_ir(lines[1]["sequence"])) == [JIRA, SLACK]
    assert activities(read_bpmn(lines[1]["bpmn"].encode()).flow) == [JIRA, SLACK]
    assert main(["score", str(folder), str(file)]) == 0
    assert "exact_semantic         1.000" in capsys.readouterr().out
