"""A lake of random cases of two sources and three clients, made by hand, whose process is asked about."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from opus_pipelines.core.schemas import CASES, INTAKES, INTENTIONS, OPTIMIZED, TASKS, WORKFLOW_EDGES, WORKFLOW_TASKS
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.reporting.views import write_views_sql

Row = dict[str, Any]
TITLES = {"t1": "Register", "t2": "Check papers", "t3": "Decide", "t4": "Pay", "t5": "Refuse"}
HOUR = 3_600_000.0
WHERE = {"client": "Acme", "contract": "Loans", "result": "r1", "intake_id": "k1", "intention_id": "i1"}
ORDERS = [("t1", "t2"), ("t2", "t3"), ("t3", "t4")]


def cases_of(seed: int) -> list[Row]:
    """Cases of two sources, in which steps repeat, times and costs are missing, some go on, and some are models."""
    draw, rows = random.Random(seed), []
    for number in range(160):
        tasks = draw.choice(
            [["t1", "t2", "t3", "t4"], ["t1", "t2", "t2", "t3", "t5"], ["t1", "t3", "t2", "t3", "t4"], ["t2", "t5"]]
        )
        start = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=draw.uniform(0, 24 * 150))
        starts = [start + timedelta(hours=3 * place) for place in range(len(tasks))]
        work = [draw.choice([None, 0.5, 1.0]) for _ in tasks]
        rows.append(
            {
                "implementation_id": f"c{number:03}",
                "source": draw.choice(["bank", "shop"]),
                "client": draw.choice(["Acme", "Zenith", None]),
                "contract": None,
                "kind": "model" if number % 20 == 7 else "executed",
                "success": draw.choice([True, True, False, None]),
                "p_ended": draw.choice([0.9, 0.99, 0.1]),
                "attributes": [("channel", draw.choice(["web", "phone"])), ("only", "one")],
                "tasks": tasks,
                "started_at": start,
                "lead_time_ms": HOUR * (3 * (len(tasks) - 1) + 1),
                "task_started_at": starts,
                "task_actors": [draw.choice(["Ann", "Bo", None]) for _ in tasks],
                "actor_groups": [None for _ in tasks],
                "task_duration_ms": [None if hours is None else HOUR * hours for hours in work],
                "task_wait_ms": [None, *(draw.choice([None, HOUR, 2 * HOUR]) for _ in tasks[1:])],
                "task_cost_usd": [draw.choice([None, 1.0, 2.5]) for _ in tasks],
            }
        )
    return rows


def write_lake(folder: Path, cases: list[Row], titles: dict[str, str] = TITLES) -> Lake:
    """A lake with these cases, and with a contract of Acme that has three rules and one ranked workflow."""
    lake = Lake(folder)
    write_views_sql(lake)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w1", "published_at": "2026-01-02T03:04:05+00:00"})
    snapshot = lake.snapshot_folder("w1")
    write_json(snapshot / "manifest.json", {"inputs": {"sources": []}})
    write_table(
        TASKS, table_of(TASKS, [{"task_id": t, "title": title} for t, title in titles.items()]), snapshot / "tasks"
    )
    write_table(CASES, table_of(CASES, cases), snapshot / "cases")
    where = {"client_key": "Acme", "contract_key": "Loans", "result": "r1"}

    def put(dataset: Any, *rows: Row) -> None:
        write_table(dataset, table_of(dataset, [WHERE | row for row in rows]), lake.folder(dataset, **where))

    intake = {"client": "Acme", "contract": "Loans", "result": "r1", "intake_id": "k1", "title": "A loan"}
    write_table(INTAKES, table_of(INTAKES, [intake]), lake.folder(INTAKES, **where))
    put(OPTIMIZED, {"workflow_id": "f1", "rank": 1, "title": "Decide on a loan", "reward_usd": 5.0})
    put(
        WORKFLOW_TASKS,
        *({"workflow_id": "f1", "node": f"n{t}", "kind": "task", "task_id": t} for t in ("t1", "t2", "t3", "t4")),
    )
    put(WORKFLOW_EDGES, *({"workflow_id": "f1", "src": f"n{a}", "dst": f"n{b}"} for a, b in ORDERS))
    rules = [("must_contain", "check_papers"), ("before", "Check papers before Decide"), ("max_cost_usd", "6")]
    put(INTENTIONS, {"constraints": [{"kind": k, "value": v, "status": "in force"} for k, v in rules]})
    write_json(
        lake.pointer_path("Acme", "Loans"),
        {"client": "Acme", "contract": "Loans", "result": "r1", "snapshot": "w1", "model_version": "m1"}
        | {"published_at": "2026-01-02T03:04:05+00:00"},
    )
    return lake
