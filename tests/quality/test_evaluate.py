"""An evaluation on the sample's snapshot: rows, controls, bounds, the command and its view."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.records import ContractTerms, GenerationContext
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import LwmRequest, TaskSequence
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.evaluate import TextVectors, differences, evaluate, item_scores
from opus_pipelines.quality.score_rows import means
from opus_pipelines.quality.systems import predict
from opus_pipelines.quality.task_set import Item, TaskSet, read_task_set
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import Plan

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def context(sample_lake: Lake, encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> GenerationContext:
    cached = CachedEncoder(encoder, tmp_path_factory.mktemp("vectors"))
    index, settings = SnapshotIndex(Snapshot.open(sample_lake)), Settings()
    return GenerationContext(index, cached, HistoryBackend(), settings, ContractTerms(settings.cost))


@pytest.fixture(scope="module")
def task_set_file(context: GenerationContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases of two industries of the sample as items: their texts as requests, their tasks as gold plans."""
    path, lines = tmp_path_factory.mktemp("tasks") / "cases.jsonl", []
    industries = context.index.industries[:2]
    for industry in industries:
        rows = context.index.cases.rows_of(industry)[:2].tolist()
        for number, case in enumerate(context.index.cases.at(rows, [1.0] * 2, 1.0)):
            plan = list(dict.fromkeys(case.task_keys))
            lines.append(
                {
                    "id": f"{industry} {number}",
                    "request": f"{case.kind_of_case}",
                    "industry": industry,
                    "gold": {"plan": plan},
                }
            )
    lines.append({"id": "unknown", "request": "Launch a rocket.", "industry": "space", "gold": {"plan": ["ignite"]}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_whole_system_stands_between_floor_and_ceiling(context: GenerationContext, task_set_file: Path) -> None:
    evaluation = evaluate(read_task_set(task_set_file), context)
    node = means(evaluation.rows, "node_f1")
    assert node["ceiling: gold"].mean == 1.0
    assert node["floor: another item's gold"].mean < node["whole system"].mean < 1.0
    assert [row["status"] for row in evaluation.rows[:5]] == ["generated"] * 4 + ["refused"]
    assert "space" in evaluation.rows[4]["reason"]
    assert evaluation.rows[4]["steps"] == []
    assert evaluation.rows[4]["node_f1"] == 0.0
    assert differences(evaluation.rows, "node_f1")["ceiling: gold"].mean == pytest.approx(node["whole system"].mean - 1)
    again = evaluate(read_task_set(task_set_file), context)
    assert (again.id, again.rows) == (evaluation.id, evaluation.rows)


def test_one_item_s_failure_costs_itself_only(context: GenerationContext) -> None:
    class Broken(HistoryBackend):
        def generate(self, request: LwmRequest) -> list[TaskSequence]:
            raise RuntimeError("no such weights")

    known = Item("a", "Handle it.", Plan(("x",)), industry=context.index.industries[0])
    unknown = Item("b", "Do it.", Plan(("y",)), industry="none")
    evaluation = evaluate(TaskSet("two", (known, unknown), (), "0" * 64), replace(context, model=Broken()))
    assert [row["reason"] for row in evaluation.rows[:1]] == ["RuntimeError: no such weights"]
    assert [row["status"] for row in evaluation.rows[:2]] == ["failed", "refused"]


def test_a_tool_that_only_the_item_s_catalogue_has_is_predicted(context: GenerationContext) -> None:
    asked = {"id": "1", "request": "Launch the rocket of our customer.", "industry": "space"}
    procedure = "To launch a rocket:\n1. Check the weather.\n2. Run ignite_engine_2.\n"
    catalogue = {"check_weather": "Asks a weather station.", "ignite_engine_2": "Ignites the second engine."}
    gold = Plan(("check_weather", "ignite_engine_2"))
    item = Item(**asked, context=procedure, gold=gold, catalogue=catalogue)
    bare = replace(item, catalogue={})
    listed, unlisted = predict([item, bare], context)
    assert listed.plan.steps == ("check_weather", "ignite_engine_2")
    assert unlisted.plan.steps != listed.plan.steps


def test_an_evaluation_with_another_catalogue_is_another_one(tmp_path: Path) -> None:
    tasks, catalogue = tmp_path / "tasks.jsonl", tmp_path / "tools.jsonl"
    tasks.write_text('{"id": "1", "request": "Launch.", "gold": {"plan": ["ignite"]}}\n')
    catalogue.write_text('"ignite"\n')
    alone, one = read_task_set(tasks), read_task_set(tasks, catalogue)
    catalogue.write_text('"ignite"\n"land"\n')
    assert len({alone.sha256, one.sha256, read_task_set(tasks, catalogue).sha256}) == 3


def test_scores_by_text_use_the_catalogue_s_descriptions(encoder: TextEncoder) -> None:
    item = Item(
        "a", "x", Plan(("send_mail",)), catalogue={"send_mail": "Send an e-mail", "post_letter": "Write an e-mail"}
    )
    vectors = TextVectors(encoder)
    scores = item_scores(Plan(("post_letter", "other")), item, vectors)
    assert scores["node_f1"] == 0.0
    assert scores["coverage"] == 0.5
    assert scores["outside_catalogue"] == 0.5
    circle = Plan(("a", "b"), frozenset({("a", "b"), ("b", "a")}))
    assert item_scores(circle, Item("c", "x", circle), vectors)["f1_chain"] is None


def test_the_command_prints_a_table_and_its_rows_are_a_view(
    sample_lake: Lake,
    task_set_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = ["--lake", str(sample_lake.root)]
    assert main([*lake, "evaluate", str(task_set_file), "--limit", "3"]) == 0
    shown = capsys.readouterr()
    assert "cases.jsonl: 3 items" in shown.out
    assert "control: nearest case" in shown.out
    sql = "SELECT system, count(*) AS n FROM evaluations_items WHERE task_set = 'cases.jsonl' GROUP BY 1 ORDER BY 1"
    assert main([*lake, "query", sql, "--format", "json"]) == 0
    rows = {row["system"]: row["n"] for row in json.loads(capsys.readouterr().out)}
    assert rows["whole system"] == rows["ceiling: gold"] == 3
    assert main([*lake, "query", "evaluations", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(",")[1:5] == ["cases.jsonl", "whole system", "system", "3"]
    assert main(["--lake", str(tmp_path / "none"), "evaluate", str(task_set_file)]) == 1
    assert "opus rebuild" in capsys.readouterr().err
