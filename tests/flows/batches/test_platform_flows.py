"""Requirements of a contract become flows of an enterprise platform, beside reasons; a bad catalogue is an error."""

import json
import shutil
from pathlib import Path

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.enterprise.documents import read_document
from opus_pipelines.flows.enterprise.examples import CATALOGUE_FILE
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.model import activities
from tests.flows.batches.batches import JIRA, write_contract, written

WANTED = "record = trigger_record_create()\nmail = send_email()"
ASKED = (
    ("mail", "When an incident with priority Critical is created, send an email to the caller.", "", WANTED),
    ("edit", "Send an email to the caller", f"issue = {JIRA}()", ""),
    ("empty", "...", "", ""),
)


def platform(root: Path) -> Path:
    folder = write_contract(root / "intakes", ASKED)
    (folder / "catalogue.json").unlink()
    shutil.copy(CATALOGUE_FILE, folder / "catalogue.toml")
    return folder


@pytest.mark.long
def test_a_requirement_has_a_flow_as_json_and_as_bpmn_or_a_reason(tmp_path: Path) -> None:
    platform(tmp_path)
    lake = Lake(tmp_path / "lake")
    (batch,) = written(lake, tmp_path / "intakes")
    assert batch is not None
    rows = {row["item"]: row for row in batch.rows["flows/flows"]}
    assert {name: (row["status"], row.get("reason_code")) for name, row in rows.items()} == {
        "mail": ("written", None),
        "edit": ("refused", "edit_impossible"),
        "empty": ("rejected", "no_utterance"),
    }
    document = read_document(rows["mail"]["document"])
    assert document.components[0].input("to") == "{{record_create.current.caller}}"
    assert (rows["mail"]["steps"], rows["mail"]["structure_errors"]) == (["send_email"], 0)
    drawn = read_bpmn(rows["mail"]["bpmn"].encode()).flow
    assert activities(drawn) == ["trigger_record_create", "send_email"]
    (score,) = batch.rows["flows/scores"]
    assert (score["system"], score["item"], score["hallucination"]) == ("flow writer", "mail", 0.0)
    found = run(connect(lake), "platform_flows").fetchall()
    assert [(row[2], row[3], row[4]) for row in found] == [
        ("mail", "written", "record_create"),
        ("edit", "refused", None),
        ("empty", "rejected", None),
    ]
    assert written(lake, tmp_path / "intakes") == [None]


@pytest.mark.parametrize("content", ["[tables", json.dumps({"tables": []})])
def test_a_bad_catalogue_is_an_error(tmp_path: Path, content: str) -> None:
    (platform(tmp_path) / "catalogue.toml").write_text(content)
    with pytest.raises(OpusError):
        written(Lake(tmp_path / "lake"), tmp_path / "intakes")
