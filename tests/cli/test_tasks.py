"""`opus tasks`: every task, what was merged, and how to overrule it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import ALIASES, TASKS
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.reporting.views import write_views_sql


def alias(
    source: str,
    key: str,
    task: str,
    method: str = "exact",
    similarity: float | None = 1.0,
    former: tuple[str, ...] = (),
) -> dict:
    return {
        "source": source,
        "industry": "claims",
        "task_key": key,
        "title": key.replace("_", " "),
        "task_id": task,
        "method": method,
        "similarity": similarity,
        "former_task_ids": list(former),
    }


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.chdir(tmp_path)
    lake = Lake(tmp_path / "lake")
    write_views_sql(lake)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1", "published_at": "2026-01-02T03:04:05+00:00"})
    write_json(lake.root / "wkg" / "w1" / "manifest.json", {"inputs": {"sources": []}})
    task = {"industries": ["claims"], "sources": ["a", "b"]}
    tasks = [
        task | {"task_id": "t1", "title": "Inspect Property", "implementations": 9},
        task | {"task_id": "t2", "title": "Pay", "implementations": 5, "sources": ["a"]},
        task | {"task_id": "t3", "title": "Check", "implementations": 7},
    ]
    aliases = [
        alias("a", "Inspect Property", "t1"),
        alias("b", "survey_damage", "t1", "embedding", 0.912, ("t9",)),
        alias("a", "Pay", "t2"),
        alias("a", "Check", "t3"),
        alias("b", "check", "t3", "normalised"),
        alias("b", "verify it", "t3", "pinned", None),
    ]
    folder = lake.snapshot_folder("w1")
    write_table(TASKS, table_of(TASKS, tasks), folder / "tasks")
    write_table(ALIASES, table_of(ALIASES, aliases), folder / "task_aliases")
    return lake


@pytest.mark.usefixtures("lake")
def test_tasks_are_listed_by_how_often_they_were_carried_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines[1:]] == ["Inspect", "Check", "Pay"]
    assert "survey damage" in " ".join(lines[1])


@pytest.mark.usefixtures("lake")
def test_tasks_are_found_by_any_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--like", "SURVEY", "--industry", "Claims", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["task_id"], row["keys"], row["former_task_ids"]) for row in rows] == [("t1", 2, ["t9"])]


@pytest.mark.usefixtures("lake")
def test_merged_shows_names_by_source_and_how_to_pin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--merged"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    assert [line.split() for line in blocks[0].splitlines()] == [
        ["Inspect", "Property", "t1", "(before:", "t9)"],
        ["a/Inspect", "Property", "exact", "1.000"],
        ["b/survey_damage", "survey", "damage", "embedding", "0.912"],
    ]
    assert blocks[1].splitlines()[0] == "Check  t3"
    assert blocks[1].splitlines()[3].split() == ["b/verify", "it", "pinned", "-"]
    assert 'tasks = ["a/Inspect Property", "b/survey_damage"]' in blocks[2]


@pytest.mark.usefixtures("lake")
def test_merged_says_so_where_nothing_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--merged", "--like", "pay"]) == 0
    assert capsys.readouterr().out == "no task has more than one name\n"


@pytest.mark.usefixtures("lake")
def test_an_industry_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "--industry", "loans"]) == 1
    said = capsys.readouterr().err
    assert "'loans'" in said
    assert said.endswith(": claims\n")


def test_without_a_snapshot_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tasks"]) == 1
    assert "`opus rebuild` makes one" in capsys.readouterr().err


@pytest.mark.long
def test_it_loads_nothing_heavy(lake: Lake) -> None:
    code = (
        "import sys; from opus_pipelines.cli.main import main; main(['tasks', '--merged'])\n"
        "print(sorted({'dagster', 'torch', 'pyspark', 'transformers', 'faiss'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=lake.root.parent
    )
    assert done.stderr.splitlines()[-1] == "[]"
