"""From a figure back to bytes, links and rows of history: by shipped SQL alone."""

from typing import Any

import pytest

from opus_pipelines.core.schemas import (
    COST_REPORT,
    DECISIONS,
    NEIGHBOURS,
    REWARD_REPORT,
    RUNS,
    SEQUENCES,
    SUBGRAPH_EDGES,
    SUBGRAPH_TASKS,
    WFG_EDGES,
    WFG_NODES,
    WORKFLOW_TASKS,
)
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, run
from tests.reporting.conftest import CLIENT, CONTRACT, HEAD, put, step

LINKS = [
    "report",
    "workflow",
    "intake",
    "intention",
    "near cases",
    "history",
    "history file",
    "SWKG",
    "sequences",
    "WFG",
    "steps",
    "tasks",
    "snapshot",
    "model",
    "run",
]


def answer(lake: Lake, query: str, workflow: str | None = None, **variables: str) -> list[dict[str, Any]]:
    found = run(connect(lake), query, ({"workflow": workflow} if workflow else {}) | variables)
    assert found is not None
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.fixture
def whole(lake: Lake) -> Lake:
    """The lake with all that stands between an intake and its workflows."""
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    run_row = {k: HEAD[k] for k in ("client", "contract", "result")} | {
        "run_id": "run1",
        "code_version": "c1",
        "settings_hash": "s1",
    }
    rows: dict[Any, list[dict[str, Any]]] = {
        SUBGRAPH_TASKS: [{"subgraph_id": "g1", "task_id": t, "role": "terminal"} for t in ("tc", "tp")],
        SUBGRAPH_EDGES: [{"subgraph_id": "g1", "src": "tc", "dst": "tp"}],
        SEQUENCES: [
            {
                "sequence_id": "q1",
                "subgraph_id": "g1",
                "position": i,
                "task_id": t,
                "backend": "history",
                "model_version": "m1",
            }
            for i, t in enumerate(("tc", "tp"))
        ],
        WFG_NODES: [
            {"node": n, "task_id": t, "sequence_ids": ["q1"]} for n, t in (("n0", None), ("n1", "tc"), ("n2", "tp"))
        ],
        WFG_EDGES: [{"src": "n0", "dst": "n1"}, {"src": "n1", "dst": "n2"}],
        REWARD_REPORT: [{"reward_usd": 8.0, "baseline_reward_usd": 3.0}],
    }
    for dataset, found in rows.items():
        put(lake, dataset, lake.folder(dataset, **where), *(HEAD | row for row in found))
    put(lake, RUNS, lake.folder(RUNS, **where), run_row)
    return lake


def test_every_link_of_the_chain_is_a_row(whole: Lake) -> None:
    found = {row["link"]: row for row in answer(whole, "audit", "fa1")}
    assert list(found) == LINKS
    assert {link: row["lost"] for link, row in found.items() if row["lost"]} == {}
    assert {link: row["ids"] for link, row in found.items()} == {
        "report": ["i1"],
        "workflow": ["fa1"],
        "intake": ["k1"],
        "intention": ["i1"],
        "near cases": ["m1"],
        "history": ["m1"],
        "history file": ["claims log/a.csv"],
        "SWKG": ["g1"],
        "sequences": ["q1"],
        "WFG": ["n0", "n1", "n2"],
        "steps": ["n0", "n1", "n2"],
        "tasks": ["tc", "tp"],
        "snapshot": ["w1"],
        "model": ["m1"],
        "run": ["run1"],
    }
    assert (found["run"]["hash"], found["workflow"]["hash"]) == ("c1", "r2")
    assert found["report"]["detail"] == "Reward 8.00 USD, of history's way 3.00"


def test_the_best_workflow_is_meant_where_none_is_named(whole: Lake) -> None:
    assert next(row["ids"] for row in answer(whole, "audit") if row["link"] == "workflow") == ["fa1"]


def test_a_row_of_the_reward_report_is_followed_by_its_intention(whole: Lake) -> None:
    assert next(row["ids"] for row in answer(whole, "audit", intention="i1") if row["link"] == "workflow") == ["fa1"]


@pytest.mark.parametrize("unknown", ["workflow", "intention"])
def test_nothing_is_told_of_what_is_not_there(whole: Lake, unknown: str) -> None:
    assert answer(whole, "audit", **{unknown: "nothing like it"}) == []


@pytest.mark.long
def test_a_row_of_the_cost_report_is_the_sum_of_its_parts_reviews_too(whole: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    head = {k: HEAD[k] for k in ("client", "contract", "result")}
    put(
        whole,
        WORKFLOW_TASKS,
        whole.folder(WORKFLOW_TASKS, **where),
        step("fa1", "n1", 1, "Check", cost_usd=2.0),
        step("fa1", "n9", 2, "Review: Check", kind="review", task_id=None, cost_usd=0.5),
        step("fa2", "n1", 1, "Check", cost_usd=9.0),
    )
    put(
        whole,
        COST_REPORT,
        whole.folder(COST_REPORT, **where),
        head | {"task_id": "tc", "title": "Check", "cost_usd": 2.0},
        head | {"task_id": "review", "title": "Reviews", "cost_usd": 0.5},
    )
    found = [
        (r["task_id"], r["row_cost_usd"], r["workflow_id"], r["cost_usd"], r["intake"])
        for r in answer(whole, "audit_cost")
    ]
    assert found == [("tc", 2.0, "fa1", 2.0, "claim-1"), ("review", 0.5, "fa1", 0.5, "claim-1")]
    assert [r["task_id"] for r in answer(whole, "audit_cost", task="review")] == ["review"]
    orphans = {row["reference"]: (row["rows"], row["orphans"]) for row in answer(whole, "orphans")}
    assert orphans["reports/cost → workflows/tasks"] == (2, 0)


def test_what_leads_nowhere_is_named(lake: Lake) -> None:
    lost = {row["link"]: row["lost"] for row in answer(lake, "audit", "fa1") if row["lost"]}
    assert lost == {"sequences": ["q1"], "steps": ["n1", "n2"]}


def test_the_rows_of_history_behind_each_step(whole: Lake) -> None:
    rows = answer(whole, "audit_figures", "fa1")
    assert [(r["step"], r["case_id"], r["similarity"], r["took_ms"], r["task_key"]) for r in rows] == [
        ("Check", "M1", 0.75, 90_000.0, "check it"),
        ("Check", "M2", None, 90_000.0, "check it"),
    ]
    assert rows[0]["evidence"] == len(rows)


def test_no_row_is_orphaned(whole: Lake) -> None:
    rows = answer(whole, "orphans")
    broken = {row["reference"]: row["orphans"] for row in rows if row["orphans"]}
    assert broken == {}
    assert {row["reference"]: row["rows"] for row in rows}["workflows/tasks → wkg/tasks"] == 3


def test_an_orphan_is_counted_with_an_example(lake: Lake) -> None:
    broken = {row["reference"]: (row["orphans"], row["example"]) for row in answer(lake, "orphans") if row["orphans"]}
    assert broken == {
        "generation/intakes → generation/runs": (2, "k1"),
        "workflows/optimized → generation/sequences": (2, "fa1"),
    }


@pytest.mark.long
def test_a_decision_that_counts_as_a_near_case_is_no_orphan_and_not_lost(whole: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT}
    names = {k: HEAD[k] for k in ("client", "contract")}
    put(
        whole,
        DECISIONS,
        whole.folder(DECISIONS, **where),
        names | {"number": 1, "decision_id": "d1", "decision": "accept"},
    )
    put(
        whole,
        NEIGHBOURS,
        whole.folder(NEIGHBOURS, **where, result="r2"),
        *(HEAD | {"implementation_id": one, "similarity": 0.75} for one in ("m1", "d1")),
    )
    found = {row["reference"]: (row["rows"], row["orphans"]) for row in answer(whole, "orphans")}
    assert found["generation/neighbours → wkg/cases or decisions"] == (2, 0)
    chain = {row["link"]: row for row in answer(whole, "audit", "fa1")}
    assert [chain[link]["ids"] for link in ("near cases", "history")] == [["d1", "m1"], ["m1"]]
    assert [chain[link]["lost"] or [] for link in ("near cases", "history")] == [[], []]
