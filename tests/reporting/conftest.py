"""A lake made by hand: one snapshot, one contract with a current and an older result, names that a path must not
trust.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    IMPLEMENTATIONS,
    INTAKES,
    INTENTIONS,
    NEIGHBOURS,
    OPTIMIZED,
    REJECTS,
    REWARD_REPORT,
    SOURCES,
    TASKS,
    WORKFLOW_EDGES,
    WORKFLOW_TASKS,
    Dataset,
)
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.reporting.views import write_views_sql

CLIENT, CONTRACT, SOURCE = "../Nord/wind 50%", "007", "claims log"
HEAD = {"client": CLIENT, "contract": CONTRACT, "result": "r2", "intake_id": "k1", "intention_id": "i1"}


def put(lake: Lake, dataset: Dataset, folder: Path, *rows: dict[str, Any]) -> None:
    write_table(dataset, table_of(dataset, rows), folder)


def workflow(workflow_id: str, rank: int, reward: float, **more: Any) -> dict[str, Any]:
    return (
        HEAD
        | {
            "workflow_id": workflow_id,
            "rank": rank,
            "title": "Settle a claim",
            "reward_usd": reward,
            "cost_usd": 10.0 - rank,
            "gain_usd": 20.0,
            "success_probability": 0.9,
            "duration_ms": 3_600_000.0,
            "feasible": True,
            "violations": [],
            "tasks": 2,
            "sequence_ids": ["q1"],
            "observed_share": 0.5,
            "in_history": True,
            "baseline_cost_usd": 12.0,
            "saving_usd": 3.0,
            "repetition_usd": 1.5,
            "left_out_usd": -0.5,
            "cheaper_usd": 4.0,
            "compared_steps": 2,
            "case_cost_usd": 14.0,
            "cost_assumed_share": 0.25,
            "cost_unknown_steps": 1,
            "duration_assumed_share": 0.0,
            "duration_unknown_steps": 0,
            "baseline_success": 0.75,
            "snapshot": "w1",
            "model_version": "m1",
            "lead_time_ms_p50": 259_200_000.0,
            "lead_time_ms_p90": 432_000_000.0,
            "lead_time_basis": "waiting and work",
            "deadline_hours": 96.0,
            "p_deadline": 0.75,
            "baseline_lead_time_ms": 270_000_000.0,
        }
        | more
    )


def step(workflow_id: str, node: str, position: int, title: str, **more: Any) -> dict[str, Any]:
    return (
        HEAD
        | {
            "workflow_id": workflow_id,
            "node": node,
            "position": position,
            "kind": "task",
            "task_id": f"t{title[0].lower()}",
            "title": title,
            "actor_kind": "human",
            "cost_usd": 2.0,
            "cost_basis": "rate",
            "duration_ms": 60_000.0,
            "duration_basis": "observed",
            "start_ms": 0.0,
            "finish_ms": 60_000.0,
            "wait_ms_p50": 255_600_000.0,
            "wait_basis": "edge",
            "p": 0.95,
            "p_basis": "prior",
            "evidence": 2,
        }
        | more
    )


@pytest.fixture
def lake(written_once: Path, tmp_path: Path) -> Lake:
    """A copy for each test, which may change it; `views.sql` names its own folder."""
    lake = Lake(shutil.copytree(written_once, tmp_path / "o'lake"))
    write_views_sql(lake)
    return lake


@pytest.fixture(scope="session")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = Lake(tmp_path_factory.mktemp("reporting") / "lake")
    write_views_sql(lake)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1", "published_at": "2026-01-02T03:04:05+00:00"})
    write_json(
        lake.root / "wkg" / "w1" / "manifest.json", {"inputs": {"sources": [{"source": SOURCE, "content": "c1"}]}}
    )
    put(
        lake,
        TASKS,
        lake.snapshot_folder("w1") / "tasks",
        {"task_id": "tc", "title": "Check"},
        {"task_id": "tp", "title": "Pay"},
    )
    put(lake, TASKS, lake.snapshot_folder("w0") / "tasks", {"task_id": "t_old"})
    put(
        lake,
        ALIASES,
        lake.snapshot_folder("w1") / "task_aliases",
        {"source": SOURCE, "task_key": "check it", "task_id": "tc"},
    )
    put(
        lake,
        CASES,
        lake.snapshot_folder("w1") / "cases",
        {"implementation_id": "m1", "source": SOURCE, "tasks": ["tc", "tp"], "success": True},
        {"implementation_id": "m2", "source": SOURCE, "tasks": ["tc"], "success": False},
    )
    tasks = [
        {
            "position": 0,
            "task_key": "check it",
            "actor_kind": "human",
            "actor": "Ann",
            "duration_ms": 90_000.0,
            "success": True,
        }
    ]
    for content in ("c0", "c1"):
        put(
            lake,
            IMPLEMENTATIONS,
            lake.folder(IMPLEMENTATIONS, source_key=SOURCE, content=content),
            *(
                {"implementation_id": m, "source": SOURCE, "case_id": m.upper(), "path": "a.csv", "tasks": tasks}
                for m in ("m1", "m2")
            ),
        )
    rejects = lake.folder(REJECTS, source_key="broken", content="c9")
    put(
        lake,
        REJECTS,
        rejects,
        {"source": "broken", "path": "b.csv", "position": 3, "reason_code": "no_time", "reason": "no time"},
    )
    put(
        lake,
        SOURCES,
        lake.folder(SOURCES),
        {"source": SOURCE, "path": "a.csv", "status": "loaded", "records": 2, "implementations": 2},
        {"source": "broken", "path": "b.csv", "status": "rejected", "reason": "not a CSV", "content": "c9"},
    )
    where = {"client_key": CLIENT, "contract_key": CONTRACT}
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where, result="r1"), workflow("f_old", 1, 99.0, result="r1"))
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where, result="r2"),
        workflow(
            "fa1", 1, 8.0, reward_usd_p05=7.25, reward_usd_p95=8.5, beats_next=0.75, verdict="undecided", best_share=0.7
        ),
        workflow("fa2", 2, 7.5, best_share=0.0, feasible=False, violations=["max_cost_usd: 8.00 exceeds 7.00 by 1.00"]),
    )
    put(
        lake,
        WORKFLOW_TASKS,
        lake.folder(WORKFLOW_TASKS, **where, result="r2"),
        step("fa1", "n0", 0, "Start", kind="input", task_id=None),
        step("fa1", "n1", 1, "Check"),
        step("fa1", "n2", 2, "Pay"),
        step("fa2", "n1", 1, "Check"),
    )
    put(
        lake,
        WORKFLOW_EDGES,
        lake.folder(WORKFLOW_EDGES, **where, result="r2"),
        HEAD | {"workflow_id": "fa1", "src": "n0", "dst": "n1"},
        HEAD | {"workflow_id": "fa1", "src": "n1", "dst": "n2"},
    )
    intake = {k: v for k, v in HEAD.items() if k != "intention_id"}
    put(
        lake,
        INTAKES,
        lake.folder(INTAKES, **where, result="r2"),
        intake
        | {"folder": "claim-1", "title": "A claim", "status": "generated", "gain_basis": "prior", "constraints": "{}"},
        intake
        | {
            "intake_id": "k2",
            "folder": "claim-2",
            "title": "Nothing",
            "status": "refused",
            "reason": "no input: ask the client",
        },
    )
    put(
        lake,
        REWARD_REPORT,
        lake.folder(REWARD_REPORT, **where, result="r2"),
        HEAD | {"reward_usd": 8.0, "verdict": "undecided"},
    )
    put(lake, INTENTIONS, lake.folder(INTENTIONS, **where, result="r2"), HEAD | {"goal": "settle it"})
    put(
        lake,
        NEIGHBOURS,
        lake.folder(NEIGHBOURS, **where, result="r2"),
        HEAD | {"implementation_id": "m1", "similarity": 0.75},
    )
    write_json(
        lake.pointer_path(CLIENT, CONTRACT),
        {
            "client": CLIENT,
            "contract": CONTRACT,
            "result": "r2",
            "snapshot": "w1",
            "model_version": "m1",
            "published_at": "2026-01-02T03:04:05+00:00",
        },
    )
    return lake.root
