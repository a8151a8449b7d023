"""An empty lake, and a page made by hand: two intakes, one of them with a name that a page must not trust."""

from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.pages.contract import ContractPage
from opus_pipelines.workflow.files import AnnotatedWorkflow, InputEntry, OutputEntry, TaskEntry, WorkflowFile

HOSTILE = '<script>alert("x")</script>'


def ranked(workflow: str, intention: str, rank: int, reward: float | None, **more: Any) -> dict[str, Any]:
    return {
        "workflow_id": workflow,
        "intention_id": intention,
        "rank": rank,
        "intake": f"in-{intention}",
        "intake_title": f"Claim {intention}",
        "goal": "settle it",
        "steps": ["Check", "Pay"],
        "reviews": 1,
        "new_tasks": 0,
        "reward_usd": reward,
        "reward_usd_p05": None,
        "reward_usd_p95": None,
        "success_probability": 0.9,
        "cost_usd": 10.0,
        "baseline_cost_usd": 12.5,
        "saving_usd": 2.5,
        "repetition_usd": 1.5,
        "left_out_usd": -0.5,
        "cheaper_usd": 3.5,
        "cost_assumed_share": 0.25,
        "cost_unknown_steps": 1,
        "duration_ms": 3_600_000.0,
        "duration_assumed_share": 0.0,
        "duration_unknown_steps": 0,
        "case_cost_usd": 14.0,
        "baseline_duration_ms": None,
        "baseline_success": 0.75,
        "observed_share": 0.5,
        "feasible": True,
        "violations": [],
        "verdict": None,
        "risks": None,
        "unread": None,
        "rules_not_applied": None,
        "beats_next": None,
        "best_share": None,
        "compared": 25,
        "penalty": None,
        "baseline_reward_usd": None,
        "uplift_usd": None,
        "in_history": False,
        "edits": None,
        "binding": None,
        "nearest": 0.6,
        "decision": None,
        "decided_by": None,
        "decided_why": None,
        "decision_note": None,
        "better_workflow_id": None,
        "better_by_usd": None,
        "last_decision": None,
        "last_number": None,
        "last_why": None,
        "last_by": None,
        "completeness": "outcomes",
        "gain_usd": 20.0,
        "applied_number": 0,
        "lead_time_ms_p50": 259_200_000.0,
        "lead_time_ms_p90": 432_000_000.0,
        "baseline_lead_time_ms": None,
        "deadline_hours": 96.0,
        "p_deadline": 0.75,
    } | more


def described(title: str) -> AnnotatedWorkflow:
    file = WorkflowFile(
        title=title,
        inputs=(InputEntry(id="i", title="Claim"),),
        tasks=(TaskEntry(id="a", title=title, cost_usd=1.0),),
        outputs=(OutputEntry(id="o", title="Letter", gain_usd=9.0),),
        edges=(("i", "a"), ("a", "o")),
    )
    return AnnotatedWorkflow(file, "f1")


@pytest.fixture
def page() -> ContractPage:
    head = {
        "client": HOSTILE,
        "contract": "007 & sons",
        "result": "r2",
        "snapshot": "w1",
        "model_version": "m1",
        "stale": True,
        "published_at": "2026-01-02 03:04:05+00:00",
        "intakes": 3,
        "generated": 2,
        "refused": 1,
        "failed": 0,
        "code_version": "c",
        "settings_hash": None,
    }
    workflows = [
        ranked(
            "f1",
            "n1",
            1,
            8.0,
            reward_usd_p05=7.0,
            reward_usd_p95=9.0,
            beats_next=0.6,
            verdict="undecided",
            intake_title=HOSTILE,
            edits=[{"kind": "review", "what": "a review after Check", "earned_usd": 1.5}],
            binding=["max_cost_usd 10: costs 0.40 USD"],
        ),
        ranked("f2", "n1", 2, 7.9, violations=["max_cost_usd: 8.00 exceeds 7.00 by 1.00"], feasible=False),
        ranked(
            "f3",
            "n2",
            1,
            -1.0,
            feasible=False,
            violations=["must_contain: Audit <b>"],
            baseline_cost_usd=None,
            saving_usd=None,
            cost_usd=None,
            cost_assumed_share=None,
            cost_unknown_steps=2,
        ),
    ]
    costs = [
        {
            "title": HOSTILE,
            "workflows": 2,
            "cost_usd": 9.0,
            "share": 0.9,
            "baseline_cost_usd": None,
            "saving_usd": None,
            "cost_human_usd": 9.0,
            "cost_model_usd": 0.0,
            "cost_compute_usd": 0.0,
            "duration_ms": 1000.0,
            "observed_share": 1.0,
            "cost_assumed_share": 0.5,
            "cost_unknown_steps": 1,
            "duration_assumed_share": None,
            "duration_unknown_steps": 0,
        }
    ]
    refused = [{"intake": "../x", "status": "refused", "reason": f"no input: {HOSTILE}"}]
    return ContractPage(
        head, workflows, costs, refused, [{"source": "a & b", "cases": 7, "nearest": 0.5}], {"f1": described(HOSTILE)}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    with lake.lock():
        lake.ensure_empty()
    return lake
