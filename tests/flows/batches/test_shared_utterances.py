"""Tests of Flow-Bench as the utterances of a contract: from the files to flows, scores and pages, without a model."""

import csv
import shutil
from pathlib import Path

import pytest

from opus_pipelines.flows.from_text.flow_folder import read_folder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.pages.render import flow_rows, render_flows
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.model import activities, read_before_set, renamed
from tests.flows.batches.batches import written
from tests.workflow.blocks.flow_bench import DATA, reason

UIDS = ("1", "2", "7", "40", "74", "76", "88", "97")  # of every kind: linear, conditional and their updates


@pytest.mark.data
@pytest.mark.long
@pytest.mark.skipif(not DATA.is_dir(), reason=reason)
def test_shared_tests_become_flows_with_scores_and_pages(tmp_path: Path) -> None:
    found = read_folder(DATA)
    tasks = [task for task in found.tasks if task.uid in UIDS]
    folder = tmp_path / "intakes" / "IBM" / "Automation" / "flows"
    folder.mkdir(parents=True)
    shutil.copyfile(DATA / "ootb_catalog.json", folder / "catalogue.json")
    rows = []
    for task in tasks:
        prior = write_ir(task.prior) if task.prior else ""
        drawn = f"{task.uid}.bpmn" if task.prior_bpmn is not None else ""
        if task.prior_bpmn is not None:
            shutil.copyfile(task.prior_bpmn, folder / drawn)
        rows.append((task.uid, task.utterance, prior, drawn, task.sequence))
    with (folder / "asked.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("uid", "utterance", "prior", "prior_bpmn", "gold"), *rows])
    lake = Lake(tmp_path / "lake")
    (batch,) = written(lake, tmp_path / "intakes")
    assert batch is not None
    made = {row["item"]: row for row in batch.rows["flows/flows"]}
    flows = [row for row in made.values() if row["status"] == "written"]
    assert len(flows) >= 6, [row["reason"] for row in made.values()]
    assert {row["status"] for row in made.values()} <= {"written", "refused"}
    for row in flows:
        flow = parse_ir(row["sequence"])
        assert set(activities(flow)) <= set(found.catalogue.by_id)
        assert read_before_set(flow) == []
        assert renamed(read_bpmn(row["bpmn"].encode()).flow).body == renamed(flow).body
    scores = [row for row in batch.rows["flows/scores"] if row["system"] == "flow writer"]
    assert {row["hallucination"] for row in scores} <= {0.0, None}
    assert {row["edit_faithfulness"] for row in scores} == {None, 1.0}
    (counted,) = run(connect(lake), "flow_batches").fetchall()
    exact, baseline = counted[12:14]
    assert (len(made), exact > baseline) == (8, True)
    pages = render_flows(flow_rows(connect(lake), None, None))
    assert len(pages) == 1 + len(flows)
