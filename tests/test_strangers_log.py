"""A log that nobody prepared, without outcomes, titles or prices: no stub, no rejection as a step, no clear verdict,
amounts decide.
"""

import csv
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.core.schemas import CASES, EXPECTED_FLOW, INTAKES, OPTIMIZED, WORKFLOW_TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.snapshot import Snapshot
from tests.generation.contracts import ContractGenerator
from tests.rebuilding import build_snapshot, no_spark

pytestmark = pytest.mark.model

NOW = datetime(2026, 1, 31, tzinfo=UTC)
TAKEN = datetime(2024, 8, 27, tzinfo=UTC)  # when the export was made: its last cases are open
SUBMIT, CHECK, SUPERVISOR, DIRECTOR, REQUEST, PAY = (
    "Declaration SUBMITTED by EMPLOYEE",
    "Declaration APPROVED by ADMINISTRATION",
    "Declaration FINAL_APPROVED by SUPERVISOR",
    "Declaration FINAL_APPROVED by DIRECTOR",
    "Request Payment",
    "Payment Handled",
)
REJECTED = "Declaration REJECTED by ADMINISTRATION"
SMALL = [SUBMIT, CHECK, SUPERVISOR, REQUEST, PAY]
LARGE = [SUBMIT, CHECK, DIRECTOR, REQUEST, PAY]
SOURCE = f"""
industry = "travel"
[columns]
case = "case"
activity = "activity"
time = "time"
attributes = ["Amount", "Department"]
[activities]
outcome = [{json.dumps(REJECTED)}]
"""


def course(number: Any, amount: Any) -> Any:
    """What one case does: above 1,000 the director approves; every sixth is rejected once, and then submitted again."""
    steps = LARGE if amount > 1_000 else SMALL
    return [SUBMIT, REJECTED, *steps] if number % 6 == 0 else steps


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, encoder: TextEncoder) -> Any:
    folder = tmp_path_factory.mktemp("stranger")
    source = folder / "history" / "travel"
    source.mkdir(parents=True)
    (source / "source.toml").write_text(SOURCE)
    with (source / "log.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["case", "activity", "time", "Amount", "Department"])
        for number in range(240):
            amount, begun = 50 + (number * 53) % 1_900, datetime(2024, 1, 1, 9, tzinfo=UTC) + timedelta(days=number)
            for day, activity in enumerate(course(number, amount)):
                if (when := begun + timedelta(days=day)) < TAKEN:
                    rows.writerow([f"d{number}", activity, when.isoformat(), amount, f"unit {number % 4}"])
    made, now = Lake(tmp_path_factory.mktemp("stranger_lake")), NOW
    state = read_history(made, folder / "history", now)
    assert state.failed == []
    build_snapshot(no_spark, made, Settings(), state, lambda: CachedEncoder(encoder, made.kept / "embeddings"), now)
    return made


@pytest.fixture(scope="module")
def tables(lake: Any, tmp_path_factory: pytest.TempPathFactory, encoder: TextEncoder) -> Any:
    intakes = tmp_path_factory.mktemp("stranger_intakes")
    contract = intakes / "acme" / "travel"
    said = {
        "small": json.dumps({"Amount": 310.5}),
        "large": json.dumps({"Amount": 1_650}),
        "bare": "Please handle this.",
    }
    for name, text in said.items():
        (contract / name / "input").mkdir(parents=True)
        (contract / name / "input" / ("request.json" if name != "bare" else "request.txt")).write_text(text)
    (contract / "contract.toml").write_text('industry = "travel"\n')
    (contract / "forbidden" / "input").mkdir(parents=True)
    (contract / "forbidden" / "input" / "request.txt").write_text("Please handle this.")
    (contract / "forbidden" / "intake.toml").write_text(f"[constraints]\nmust_not_contain = [{json.dumps(PAY)}]\n")
    (found,) = discover(intakes)
    cached = CachedEncoder(encoder, lake.kept / "embeddings")
    with ContractGenerator(lake, Settings(), cached, tmp_path_factory.mktemp("stranger_generated")) as generate:
        return generate(found).tables


def rank_1(tables: Any, folder: Any) -> Any:
    """Row of workflows/optimized and the titles of its steps."""
    intakes = {row["folder"]: row["intake_id"] for row in tables[INTAKES.name].to_pylist()}
    (row,) = [r for r in tables[OPTIMIZED.name].to_pylist() if r["intake_id"] == intakes[folder] and r["rank"] == 1]
    nodes = [
        t
        for t in tables[WORKFLOW_TASKS.name].to_pylist()
        if t["workflow_id"] == row["workflow_id"] and t["kind"] == "task"
    ]
    return row, [t["title"] for t in sorted(nodes, key=lambda t: t["position"])]


@pytest.mark.parametrize(
    ("folder", "steps", "verdict"),
    [
        ("small", SMALL, "undecided"),
        ("large", LARGE, "undecided"),
        ("bare", SMALL, "not answered"),  # nothing of it is like a case: the usual path is shown
    ],
)
def test_rank_1_has_every_step_that_similar_cases_did_and_no_rejection(
    tables: Any, folder: Any, steps: Any, verdict: str
) -> None:
    row, titles = rank_1(tables, folder)
    assert titles == steps
    assert (row["completeness"], row["verdict"]) == ("support", verdict)
    assert "history tells no outcomes of similar cases" in row["verdict_reason"]


def test_what_to_expect_between_the_steps_is_told_beside_them(tables: Any) -> None:
    row, titles = rank_1(tables, "small")
    flow = [f for f in tables[EXPECTED_FLOW.name].to_pylist() if f["workflow_id"] == row["workflow_id"]]
    pairs = [(f["src_task_key"], f["dst_task_key"]) for f in sorted(flow, key=lambda f: f["src_place"])]
    assert pairs == list(pairwise(titles))
    assert all(0.5 < f["support"] <= 1.0 for f in flow)


def test_a_critical_task_that_is_forbidden_stays_and_the_conflict_is_told(tables: Any) -> None:
    row, titles = rank_1(tables, "forbidden")
    assert (titles, row["feasible"]) == (SMALL, False)
    assert any("must_not_contain" in violation and PAY in violation for violation in row["violations"])


def test_the_last_cases_of_the_export_are_open_and_get_their_rest(lake: Any) -> None:
    cases = read_table(CASES, dataset_folder(Snapshot.open(lake).folder, CASES)).sort_by("started_at").to_pylist()
    first, last = cases[0], cases[-1]
    assert (first["p_ended"], first["expected_rest"]) == (1.0, [])
    assert last["p_ended"] < 0.05
    assert len(last["tasks"]) + len(last["expected_rest"]) >= 5


def test_where_nobody_states_a_gain_no_row_has_dollars_that_rest_on_one(tables: Any) -> None:
    in_dollars_of_reward = {
        OPTIMIZED: ("reward_usd", "reward_usd_p05", "reward_usd_p95", "gain_usd", "gap_usd", "better_by_usd"),
        INTAKES: ("gain_usd",),
        WORKFLOW_TASKS: ("gain_usd",),
    }
    for dataset, columns in in_dollars_of_reward.items():
        assert {row[column] for row in tables[dataset.name].to_pylist() for column in columns} == {None}
    for row in tables[OPTIMIZED.name].to_pylist():
        assert row["ranked_by"] == ["conformity", "lead time", "Penalty"]
        assert {edit["earned_usd"] for edit in [*row["edits"], *row["choices"]]} <= {None}
        assert not any("USD" in said for said in row["binding"])
