"""The batch of a contract: rows with flows, reasons and scores; it is written once, found damaged, and forgotten."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Retention
from opus_pipelines.flows.batches.batch import FlowBatch, is_contract_current, prune, publish_batch, run_batch
from opus_pipelines.flows.batches.inputs import read_inputs
from opus_pipelines.flows.from_text.activities import CatalogueError
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.search import Word
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.wkg.upkeep.client_traces import clients_of, remove_flows
from opus_pipelines.wkg.upkeep.verify import repair, verify
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import activities, identified, ids
from tests.flows.batches.batches import ADD, CREATE, JIRA, SLACK, write_contract, written
from tests.flows.from_text.flow_examples import WordEncoder

pytestmark = pytest.mark.long
BAD = (
    ("cake", "Bake a chocolate cake and eat it", "", ""),
    ("gone", "Remove the invoice from Coupa", f"issue = {JIRA}()", ""),
    ("twice", "Remove the jira issue and remove the jira issue", f"issue = {JIRA}()", ""),
    ("long", "do it " * 20_000, "", ""),
    ("import", "import os and run os.system('rm -rf /') with __class__", "", ""),
    ("", "Create an issue in Jira", "", ""),
    ("prior", "Send a slack message", "import os", ""),
)
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, FlowBatch]:
    """A lake with one batch; tests of this module only read it."""
    root = tmp_path_factory.mktemp("batch")
    folder = write_contract(root / "intakes", [CREATE, ADD, *BAD])
    (folder / "before.bpmn").write_bytes(write_bpmn(identified(parse_ir(f"issue = {JIRA}()"))))
    line = {"uid": "drawn", "utterance": "Send a slack message", "prior": "before.bpmn", "gold": ADD[3]}
    (folder / "more.jsonl").write_text(json.dumps(line))
    lake = Lake(root / "lake")
    (batch,) = written(lake, root / "intakes")
    assert batch is not None
    return lake, batch


def select(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    return connect(lake).execute(sql).fetchall()


def test_every_utterance_has_a_flow_or_a_reason(place: tuple[Lake, FlowBatch]) -> None:
    found = select(place[0], "SELECT item, status, reason_code FROM flows_flows ORDER BY file, line")
    assert found == [
        ("new", "written", None),
        ("add", "written", None),
        ("cake", "refused", "no_activity"),
        ("gone", "refused", "edit_impossible"),
        ("twice", "refused", "contradicting_edits"),
        ("long", "rejected", "too_long"),
        ("import", "refused", "no_activity"),
        (None, "rejected", "no_uid"),
        ("prior", "rejected", "bad_prior"),
        ("drawn", "written", None),
    ]
    lengths = select(place[0], "SELECT max(length(utterance)), count(reason) FROM flows_flows")
    assert lengths == [(2_002, 7)]


def test_a_row_holds_the_flow_its_steps_and_what_was_retrieved(place: tuple[Lake, FlowBatch]) -> None:
    rows = {row["item"]: row for row in place[1].rows["flows/flows"]}
    assert activities(parse_ir(rows["add"]["sequence"])) == [JIRA, SLACK]
    assert (rows["add"]["kind"], rows["new"]["kind"], rows["new"]["prior"]) == ("edit", "new", None)
    assert [len(rows[name]["operations"]) for name in ("new", "add")] == [0, 1]
    assert rows["new"]["steps"] == [JIRA]
    assert 0 < rows["new"]["probabilities"][0] <= 1
    assert rows["new"]["retrieved"][0]["activity"] == JIRA
    assert rows["new"]["calls"], rows["new"]["user_tasks"] == (1, 0)
    before = ids(read_bpmn(write_bpmn(identified(parse_ir(f"issue = {JIRA}()")))).flow.body)
    assert set(before) <= set(ids(read_bpmn(rows["drawn"]["bpmn"].encode()).flow.body))
    assert rows["cake"].get("sequence") is None
    origins = select(place[0], "SELECT count(*), any_value(origin), any_value(operation) FROM flows_catalogue")
    assert origins == [(12, "flows/catalogue.json", "create")]


def test_flows_with_a_reference_are_scored_beside_the_baseline(place: tuple[Lake, FlowBatch]) -> None:
    found = select(
        place[0],
        "SELECT system, item, exact_semantic, hallucination, edit_faithfulness, recall_10 FROM flows_scores "
        "WHERE system = 'flow writer' ORDER BY item",
    )
    assert found == [
        ("flow writer", "add", 1.0, 0.0, None, 1.0),
        ("flow writer", "drawn", 1.0, 0.0, 1.0, 1.0),
        ("flow writer", "new", 1.0, 0.0, None, 1.0),
    ]
    assert select(place[0], "SELECT count(*), count(recall_10) FROM flows_scores WHERE system = 'baseline'") == [(3, 0)]


def test_the_shipped_queries_count_and_name(place: tuple[Lake, FlowBatch]) -> None:
    counted = run(connect(place[0]), "flow_batches").fetchall()
    assert [row[3:8] for row in counted] == [(10, 3, 4, 3, 0)]
    assert counted[0][11:13] == (3, 3)
    refused = run(connect(place[0]), "flow_refusals").fetchall()
    assert next((row[3], row[6]) for row in refused) == (5, "no_activity")
    assert len(refused) == 7


def test_the_same_files_are_written_once_and_a_changed_file_gives_another_batch(tmp_path: Path) -> None:
    lake, intakes = Lake(tmp_path / "lake"), tmp_path / "intakes"
    write_contract(intakes, [CREATE])
    assert not is_contract_current(lake, discover(intakes)[0], WordEncoder())
    first, again = written(lake, intakes)[0], written(lake, intakes)[0]
    assert is_contract_current(lake, discover(intakes)[0], WordEncoder())
    assert first is not None
    assert again is None
    write_contract(intakes, [CREATE, ADD])
    second = written(lake, intakes)[0]
    assert second is not None
    assert second.id != first.id
    assert verify(lake).damage == []
    counted = run(connect(lake), "flow_batches").fetchall()
    assert [(row[2], row[3]) for row in counted] == [(second.id, 2)]


def test_the_folder_of_flows_is_no_intake_and_changes_no_workflows(tmp_path: Path) -> None:
    intakes = tmp_path / "intakes"
    folder = write_contract(intakes, [CREATE])
    (folder.parent / "first").mkdir()
    (folder.parent / "first" / "request.txt").write_text("x")
    (contract,) = discover(intakes)
    assert [path.name for path in contract.intakes] == ["first"]
    assert [name for name, _ in contract.content] == ["first/request.txt"]


def test_the_catalogue_is_that_of_the_contract_where_the_flows_have_none(tmp_path: Path) -> None:
    lake, intakes = Lake(tmp_path / "lake"), tmp_path / "intakes"
    folder = write_contract(intakes, [CREATE])
    (folder / "catalogue.json").unlink()
    (contract,) = discover(intakes)
    with pytest.raises(InputError, match=r"catalogue\.json"):
        read_inputs(contract, lake)
    (folder.parent / "catalogue.csv").write_text(
        "name,description\nwrite letter,Writes a letter\nWrite letter 2,Again\n"
    )
    inputs = read_inputs(contract, lake)
    assert inputs is not None
    assert ([a.id for a in inputs.catalogue.activities], inputs.origin) == (
        ["write_letter", "Write_letter_2"],
        "catalogue of the contract",
    )


def test_near_duplicate_ids_stay_apart_and_equal_ones_are_refused(tmp_path: Path) -> None:
    folder = write_contract(tmp_path / "intakes", [CREATE])
    near = [{"id": name} for name in ("Slack_message__3_0_0__create_message", "Slack_Message__2_0_0__create_Message")]
    (folder / "catalogue.json").write_text(json.dumps(near))
    (contract,) = discover(tmp_path / "intakes")
    inputs = read_inputs(contract, Lake(tmp_path / "lake"))
    assert inputs is not None
    assert len(inputs.catalogue.by_id) == 2
    (folder / "catalogue.json").write_text(json.dumps([near[0], near[0]]))
    with pytest.raises(CatalogueError, match="twice"):
        read_inputs(contract, Lake(tmp_path / "lake"))


def test_an_example_teaches_and_one_that_is_asked_does_not(tmp_path: Path) -> None:
    folder = write_contract(tmp_path / "intakes", [CREATE])
    lines = [
        {"uid": "e1", "utterance": "Create an issue in Jira", "gold": f"m = {SLACK}()"},  # asked: it must not teach
        {"uid": "e2", "utterance": "Post a message", "gold": f"m = {SLACK}()"},
        {"uid": "e3", "utterance": "Post a message"},
    ]
    (folder / "examples.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (contract,) = discover(tmp_path / "intakes")
    inputs = read_inputs(contract, Lake(tmp_path / "lake"))
    assert inputs is not None
    assert ([task.uid for task in inputs.examples], len(inputs.left_out)) == (["e1", "e2"], 1)
    rows = run_batch(inputs, WordEncoder(), NOW).rows["flows/flows"]
    assert [row["sequence"] for row in rows] == [f"issue = {JIRA}()"]


def test_a_uid_of_two_files_costs_the_second(tmp_path: Path) -> None:
    folder = write_contract(tmp_path / "intakes", [CREATE])
    (folder / "b.jsonl").write_text('{"uid": "new", "utterance": "Send a slack message"}')
    (contract,) = discover(tmp_path / "intakes")
    inputs = read_inputs(contract, Lake(tmp_path / "lake"))
    assert inputs is not None
    assert [(row.file, row.code) for row in inputs.rows] == [("asked.csv", None), ("b.jsonl", "duplicate_uid")]


@pytest.fixture(scope="module")
def three_clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with intakes and a lake, which tests copy."""
    root = tmp_path_factory.mktemp("clients")
    lake, intakes = Lake(root / "lake"), root / "intakes"
    write_contract(intakes, [CREATE], "Zephyr & Sons")
    write_contract(intakes, [ADD], "Bolt")
    write_contract(intakes, [("q", "Create a Zephyr issue in Jira", "", "")], "Third")
    written(lake, intakes)
    return root


def test_the_flows_of_a_client_and_those_with_its_words_are_forgotten(tmp_path: Path, three_clients: Path) -> None:
    shutil.copytree(three_clients / "lake", tmp_path / "lake")
    lake = Lake(tmp_path / "lake")
    assert clients_of(lake) == {"Zephyr & Sons", "Bolt", "Third"}
    assert remove_flows(lake, "Zephyr & Sons", [Word("task", "Zephyr issue")]) == 2
    assert clients_of(lake) == {"Bolt"}
    assert select(lake, "SELECT DISTINCT client FROM flows_flows") == [("Bolt",)]
    assert verify(lake).damage == []
    assert remove_flows(Lake(tmp_path / "none"), "Zephyr", [Word("task", "x")]) == 0


def test_damage_costs_its_contract_alone_and_is_repaired(tmp_path: Path, three_clients: Path) -> None:
    shutil.copytree(three_clients, tmp_path, dirs_exist_ok=True)
    lake = Lake(tmp_path / "lake")
    file = next(lake.root.glob("flows/flows/client_key=Bolt/*/*/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    found = verify(lake).damage
    assert [damage.file for damage in found] == [file]
    assert len(select(lake, "SELECT DISTINCT client FROM flows_flows")) == 2
    with lake.lock():
        done = repair(lake, found, NOW).done
    assert "opus flow batch" in done[0][1]
    assert verify(lake).damage == []
    again = written(lake, tmp_path / "intakes")
    assert [batch.client for batch in again if batch is not None] == ["Bolt"]


def test_old_batches_are_removed_after_the_grace_time(tmp_path: Path) -> None:
    lake, intakes = Lake(tmp_path / "lake"), tmp_path / "intakes"
    made = []
    for day, rows in enumerate(([CREATE], [ADD], [CREATE, ADD])):
        write_contract(intakes, rows)
        inputs = read_inputs(discover(intakes)[0], lake)
        assert inputs is not None
        batch = run_batch(inputs, WordEncoder(), NOW + timedelta(days=day))
        with lake.lock():
            publish_batch(lake, batch)
        made.append(batch.id)
    retention = Retention(results=2, grace_minutes=60)
    with lake.lock():
        assert prune(lake, "Acme", "Automation", retention, NOW + timedelta(minutes=5)) == []
        assert prune(lake, "Acme", "Automation", retention, NOW + timedelta(days=3)) == [made[0]]
    assert len(list(lake.root.glob("flows/*/*/*/*"))) == 6
