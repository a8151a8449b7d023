"""The evaluation of flows from utterances: what teaches, rows by item, means with intervals, and the lake."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import EVALUATION_UTTERANCES
from opus_pipelines.flows.batches.scoring import BASELINE, WRITER, folds_of, others, without_domain
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.lake.layout import Lake
from opus_pipelines.quality.score_rows import Evaluation, means, publish
from opus_pipelines.quality.utterances import (
    Asking,
    by_tag,
    evaluate_utterances,
    is_utterances,
    limited,
    read_set,
)
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.wkg.upkeep.verify import verify
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from tests.flows.batches.batches import ADD, CREATE, JIRA, SLACK
from tests.flows.from_text.flow_examples import ENTRIES, WordEncoder, catalogue

TRELLO = "Trello_Board__2_0_0__create_Board"


def write_set(folder: Path) -> tuple[Path, Path]:
    asked = [
        {"uid": CREATE[0], "utterance": CREATE[1], "gold": CREATE[3], "tags": ["linear", "7"]},
        {"uid": ADD[0], "utterance": ADD[1], "prior": ADD[2], "gold": ADD[3], "tags": "linear_update"},
        {"uid": "wrong", "utterance": "Create a board in Trello", "gold": f"m = {SLACK}()", "tags": ["linear"]},
        {"uid": "cake", "utterance": "Remove the invoice", "prior": f"b = {TRELLO}()", "gold": f"b = {TRELLO}()"},
        {"uid": "without", "utterance": "Create a board in Trello"},
        {"uid": "bad", "utterance": "Create a board in Trello", "gold": "import os"},
    ]
    path, activities = folder / "asked.jsonl", folder / "activities.json"
    path.write_text("\n".join(json.dumps(one) for one in asked))
    activities.write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]))
    return path, activities


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    given = read_set(*write_set(tmp_path_factory.mktemp("set")))
    assert len(given.rejected) == 1
    return evaluate_utterances(given, WordEncoder(), Asking("catalogue alone"))


@pytest.mark.long
def test_every_item_has_a_row_of_the_writer_and_of_the_baseline(evaluation: Evaluation) -> None:
    own = [(r["item"], r["exact_semantic"], r["parsed"]) for r in evaluation.rows if r["system"] == WRITER]
    assert own == [("new", 1.0, 1.0), ("add", 1.0, 1.0), ("wrong", 0.0, 1.0), ("cake", 1.0, 1.0)]
    assert [r["item"] for r in evaluation.rows if r["system"] == BASELINE] == ["new", "add", "wrong", "cake"]
    assert [bool(r["reason"]) for r in evaluation.rows if r["item"] == "cake"] == [True, False]
    assert {r["cost_usd"] for r in evaluation.rows} == {0.0}


def test_means_have_intervals_and_tags_count(evaluation: Evaluation) -> None:
    found = means(evaluation.rows, "exact_semantic", "item")[WRITER]
    assert (found.mean, found.n) == (0.75, 4)
    assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
    assert [row[:4] for row in by_tag(evaluation.rows)] == [("linear", 2, 1, 1), ("linear_update", 1, 1, 1)]
    assert BASELINE not in means(evaluation.rows, "recall_10", "item")


@pytest.mark.long
def test_rows_go_to_the_lake_once(evaluation: Evaluation, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.lock():
        publish(lake, EVALUATION_UTTERANCES, evaluation)
        publish(lake, EVALUATION_UTTERANCES, evaluation)
    assert verify(lake).damage == []
    found = run(connect(lake), "utterance_scores").fetchall()
    assert [(row[3], row[4], row[5], row[6]) for row in found if row[3] == WRITER] == [
        (WRITER, None, 4, 0.75),
        (WRITER, "linear", 2, 0.5),
        (WRITER, "linear_update", 1, 1.0),
    ]


def test_a_set_without_a_catalogue_or_without_references_is_refused(tmp_path: Path) -> None:
    path, activities = write_set(tmp_path)
    with pytest.raises(InputError, match="--catalogue"):
        read_set(path)
    bare = tmp_path / "bare.csv"
    bare.write_text("uid,utterance\n1,Do it\n")
    with pytest.raises(InputError, match="gold"):
        read_set(bare, activities)
    with pytest.raises(InputError, match="protocol"):
        evaluate_utterances(read_set(path, activities), WordEncoder(), Asking("guess"))
    assert [is_utterances(one) for one in (path, bare, tmp_path, activities, tmp_path / "no")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert len(limited(read_set(path, activities), 2).asked) == 2


def test_nothing_that_is_asked_teaches() -> None:
    tasks = [FlowTask(str(n), f"text {n % 6}", expected=parse_ir(f"x = {JIRA}()")) for n in range(7)]
    for asked, teaching in folds_of(tasks):
        assert not {t.utterance for t in asked} & {t.utterance for t in teaching}
    assert [len(asked) for asked, _ in folds_of(tasks)] == [2, 2, 1, 1, 1]
    assert [task.uid for task in others(tasks, [FlowTask("z", "text 0")])] == ["1", "2", "3", "4", "5"]
    assert [len(asked) for asked, _ in folds_of(tasks[:2])] == [1, 1]


def test_across_domains_no_flow_teaches_that_shares_an_application() -> None:
    def task(uid: str, *names: str) -> FlowTask:
        return FlowTask(uid, uid, expected=parse_ir("\n".join(f"x{n} = {name}()" for n, name in enumerate(names))))

    teaching = [task("jira", JIRA), task("both", SLACK, JIRA), task("board", TRELLO)]
    assert [t.uid for t in without_domain(catalogue(), task("asked", JIRA), teaching)] == ["board"]
    deleted = replace(task("asked", SLACK), prior=parse_ir(f"x = {SLACK}()\ny = {TRELLO}()"))
    assert [t.uid for t in without_domain(catalogue(), deleted, teaching)] == ["jira"]
