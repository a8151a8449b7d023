"""workflows/changes: how a contract's rank-1 workflows differ from those of its result before, and the cases behind
that.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import (
    CASES,
    IMPLEMENTATIONS,
    INTAKES,
    NEIGHBOURS,
    OPTIMIZED,
    RUNS,
    WORKFLOW_CHANGES,
    WORKFLOW_TASKS,
    Dataset,
)
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.lake.layout import Lake, dataset_folder, read_json, read_table, table_of, write_json, write_table
from opus_pipelines.reporting.views import connect, run, write_views_sql

NOW = datetime(2026, 1, 31, tzinfo=UTC)
CHECKED, UNCHECKED = ("Register", "Check", "Pay"), ("Register", "Pay")


def snapshot(lake: Lake, name: str, cases: dict[str, tuple[str, ...]]) -> None:
    """A snapshot of one source with these cases and their tasks."""
    folder = lake.folder(IMPLEMENTATIONS, source_key="claims log", content=name)
    hashes = [{"implementation_id": case, "content_hash": "".join(tasks)} for case, tasks in cases.items()]
    write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, hashes), folder)
    rows = [{"implementation_id": case, "source": "claims log", "tasks": list(tasks)} for case, tasks in cases.items()]
    write_table(CASES, table_of(CASES, rows), dataset_folder(lake.snapshot_folder(name), CASES))
    source = {"source": "claims log", "content": name, "folder": folder.relative_to(lake.root).as_posix()}
    write_json(lake.snapshot_folder(name) / "manifest.json", {"inputs": {"sources": [source]}})


def publish(
    lake: Lake,
    result: str,
    snapshot: str,
    best: dict[str, tuple[str, ...]],
    near: tuple[str, ...] = (),
    reward: float = 10.0,
    content: str = "same",
    code: str = "c",
    actor: str = "human",
) -> list[dict[str, Any]]:
    """Publish a result whose rank 1 of each Intention has these steps; returns its rows of workflows/changes."""
    made = ContractResult("Acme", "Retail", result, snapshot, "m", {})
    rows: dict[Dataset, list[dict[str, Any]]] = {
        INTAKES: [{"intake_id": "k1", "folder": "2026-07", "content_hash": content, "status": "generated"}],
        RUNS: [{"run_id": "x", "generated_at": NOW, "settings_hash": "s", "code_version": code}],
        NEIGHBOURS: [
            {"intake_id": "k1", "intention_id": "n1", "implementation_id": case, "similarity": 0.9} for case in near
        ],
        OPTIMIZED: [],
        WORKFLOW_TASKS: [],
    }
    for number, (intention, steps) in enumerate(best.items()):
        ids = {"intake_id": "k1", "intention_id": intention}
        for rank in (1, 2):
            workflow = f"f{number}{'-'.join(steps)}{rank}"
            rows[OPTIMIZED].append(
                ids
                | {
                    "workflow_id": workflow,
                    "rank": rank,
                    "title": " ".join(steps),
                    "reward_usd": reward - rank,
                    "success_probability": 0.9,
                    "verdict": "clear",
                    "feasible": True,
                }
            )
            rows[WORKFLOW_TASKS] += [
                ids
                | {
                    "workflow_id": workflow,
                    "node": f"n{i}",
                    "position": i,
                    "kind": "task",
                    "task_id": f"t{step}",
                    "title": step,
                    "actor_kind": actor,
                }
                for i, step in enumerate(steps)
            ]
    made.tables = {dataset.name: result_table(made, dataset, found) for dataset, found in rows.items()}
    publish_contract(lake, made, NOW)
    where = {"client_key": "Acme", "contract_key": "Retail", "result": result}
    return read_table(WORKFLOW_CHANGES, lake.folder(WORKFLOW_CHANGES, **where)).to_pylist()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    snapshot(lake, "w1", {"i1": ("tRegister", "tPay"), "i2": ("tRegister", "tPay")})
    snapshot(
        lake,
        "w2",
        {"i1": ("tRegister", "tPay"), "i2": ("tRegister", "tCheck", "tPay"), "i3": ("tRegister", "tCheck", "tPay")},
    )
    return lake


def test_the_first_result_has_no_changes_and_neither_has_the_same_workflow(lake: Lake) -> None:
    assert publish(lake, "r1", "w1", {"n1": CHECKED}) == []
    assert publish(lake, "r2", "w1", {"n1": CHECKED}, code="d") == []


@pytest.mark.long
def test_other_steps_because_of_a_case_that_came_and_one_that_changed(lake: Lake) -> None:
    publish(lake, "r1", "w1", {"n1": UNCHECKED}, near=("i1", "i2"))
    (row,) = publish(lake, "r2", "w2", {"n1": CHECKED}, near=("i1", "i2", "i3"), reward=12.0)
    assert (row["change"], row["folder"], row["before"], row["result"]) == ("steps", "2026-07", "r1", "r2")
    assert (row["snapshot_before"], row["snapshot_after"]) == ("w1", "w2")
    assert (row["steps_before"], row["steps_after"]) == (list(UNCHECKED), list(CHECKED))
    assert (row["steps_added"], row["steps_removed"]) == (["Check"], [])
    assert (row["reward_usd_before"], row["reward_usd_after"]) == (9.0, 11.0)
    assert (row["because"], row["sources"]) == (["snapshot"], ["claims log"])
    assert (row["cases"], row["implementation_ids"]) == (2, ["i2", "i3"])


@pytest.mark.parametrize(
    ("more", "change", "because"),
    [
        ({"reward": 8.0, "content": "other"}, "figures", ["intake"]),
        ({"actor": "code", "code": "d"}, "ways", ["code"]),
        ({"reward": 8.0}, "figures", []),
    ],
)
def test_other_figures_and_other_ways_without_a_new_snapshot(
    lake: Lake, more: dict[str, Any], change: str, because: list[str]
) -> None:
    publish(lake, "r1", "w1", {"n1": CHECKED})
    (row,) = publish(lake, "r2", "w1", {"n1": CHECKED}, **more)
    assert (row["change"], row["because"], row["cases"], row["sources"]) == (change, because, 0, [])


def test_intentions_that_came_and_went(lake: Lake) -> None:
    publish(lake, "r1", "w1", {"n1": CHECKED, "n2": UNCHECKED})
    rows = publish(lake, "r2", "w1", {"n1": CHECKED, "n3": UNCHECKED})
    assert {(row["intention_id"], row["change"]) for row in rows} == {("n2", "removed"), ("n3", "added")}


@pytest.mark.long
def test_earlier_results_stay_comparable(lake: Lake) -> None:
    write_views_sql(lake)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1", "before": None, "published_at": NOW.isoformat()})
    publish(lake, "r1", "w1", {"n1": UNCHECKED}, reward=10.0)
    assert connect(lake).sql("SELECT count(*) FROM workflows_earlier").fetchall() == [(0,)]
    publish(lake, "r2", "w1", {"n1": CHECKED}, reward=12.0)
    publish(lake, "r3", "w2", {"n1": CHECKED}, reward=13.0)
    connection = connect(lake)
    ranked = "SELECT result, rank, reward_usd FROM workflows_{} WHERE rank = 1 ORDER BY result"
    assert connection.sql(ranked.format("optimized")).fetchall() == [("r3", 1, 12.0)]
    assert connection.sql(ranked.format("earlier")).fetchall() == [("r1", 1, 9.0), ("r2", 1, 11.0)]
    changes = connection.sql("SELECT before, result, change FROM workflows_changes ORDER BY before").fetchall()
    assert changes == [("r1", "r2", "steps"), ("r2", "r3", "figures")]
    current = run(connection, "changes")
    assert current is not None
    assert current.project("before, after").fetchall() == [
        ("reward 11.0, success 0.9, clear", "reward 12.0, success 0.9, clear")
    ]


@pytest.mark.long
def test_a_result_that_is_current_again_follows_another_one(lake: Lake) -> None:
    write_views_sql(lake)
    write_json(
        lake.root / "wkg" / "current.json",
        {"snapshot": "w1", "before": None, "published_at": (NOW - timedelta(1)).isoformat()},
    )
    publish(lake, "r1", "w1", {"n1": UNCHECKED})
    publish(lake, "r2", "w1", {"n1": CHECKED})
    rows = publish(lake, "r1", "w1", {"n1": UNCHECKED})
    assert {(row["before"], tuple(row["steps_removed"])) for row in rows} == {("r2", ("Check",))}
    assert (read_json(lake.pointer_path("Acme", "Retail")) or {})["before"] == "r2"
    found = run(connect(lake), "changes")
    assert found is not None
    assert found.project("what, which, change, before, after").fetchall() == [
        ("workflow", "Acme / Retail / 2026-07", "steps", "Register > Check > Pay", "Register > Pay"),
    ]
