"""Plan against actual: forecasts of a workflow beside the cases that state its id, counted by hand."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import OPTIMIZED
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.reporting.views import connect, shipped_queries
from tests.reporting.process_lake import HOUR, WHERE, Row, write_lake

FORECAST = {"success_probability": 0.9, "cost_usd": 10.0, "lead_time_ms_p50": 2 * HOUR, "lead_time_ms_p90": 4 * HOUR}
DEADLINE = {"deadline_hours": 3.0, "p_deadline": 0.8}


def case(number: int, tasks: list[str], hours: float, cost: float, success: bool, **other: Any) -> Row:
    return {
        "implementation_id": f"c{number:03}",
        "source": "bank",
        "client": "Acme",
        "kind": "executed",
        "success": success,
        "p_ended": 0.9,
        "attributes": [("workflow_id", "f1")],
        "tasks": tasks,
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        "lead_time_ms": HOUR * hours,
        "task_cost_usd": [cost, *[0.0] * (len(tasks) - 1)],
    } | other


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Eighty cases as planned, twenty that leave out Check papers and are refused, and cases that do not count."""
    usual, short = ["t1", "t2", "t3", "t4"], ["t1", "t3", "t3", "t5"]
    cases = [case(n, usual, 1 + n % 2 * 2, 9 + n % 3, n % 8 != 0) for n in range(80)]
    cases += [case(80 + n, short, 5, 20, success=False) for n in range(20)]
    cases.append(case(100, usual, 1, 99, success=True, p_ended=0.1))  # it goes on
    cases.append(case(101, usual, 1, 99, success=True, client="Zenith"))  # the workflow is not Zenith's
    cases.append(case(102, usual, 1, 99, success=True, attributes=[("channel", "web")]))
    cases.append(case(103, usual, 1, 7, success=True, attributes=[("workflow_id", "f9")]))
    made = write_lake(tmp_path_factory.mktemp("plans"), cases)
    row = WHERE | {"workflow_id": "f1", "rank": 1, "title": "Lend"} | FORECAST | DEADLINE
    where = {"client_key": "Acme", "contract_key": "Loans", "result": "r1"}
    write_table(OPTIMIZED, table_of(OPTIMIZED, [row]), made.folder(OPTIMIZED, **where))
    return made


def asked(lake: Lake, name: str) -> list[Row]:
    found = connect(lake).execute(shipped_queries()[name].sql)
    return [dict(zip([c[0] for c in found.description or ()], row, strict=True)) for row in found.fetchall()]


def test_each_forecast_stands_beside_what_became_of_the_cases(lake: Lake) -> None:
    rows = {
        row["measure"]: row for row in asked(lake, "plan_against_actual") if row["workflow_id"] == "f1" and row["rank"]
    }
    figures = {name: (row["forecast"], row["actual"], row["cases"], row["is_missed"]) for name, row in rows.items()}
    assert figures == {
        "success": (0.9, pytest.approx(0.7), 100, True),  # 70 of 80, and none of 20
        "lead time within its median": (0.5, pytest.approx(0.4), 100, True),
        "lead time within its 90th percentile": (0.9, pytest.approx(0.8), 100, True),
        "deadline kept": (0.8, pytest.approx(0.8), 100, False),
        "exactly the planned steps": (None, pytest.approx(0.8), 100, False),
        "cost (USD)": (10.0, pytest.approx(0.8 * (9 * 27 + 10 * 27 + 11 * 26) / 80 + 0.2 * 20), 100, True),
    }
    share = rows["success"]
    assert (share["actual_low"], share["actual_high"]) == (
        pytest.approx(0.6042, abs=5e-4),
        pytest.approx(0.7811, abs=5e-4),
    )


def test_a_workflow_that_is_no_current_one_has_no_forecast_and_misses_nothing(lake: Lake) -> None:
    rows = [row for row in asked(lake, "plan_against_actual") if row["rank"] is None]
    assert {(row["client"], row["workflow_id"]) for row in rows} == {("Acme", "f9"), ("Zenith", "f1")}
    assert {row["forecast"] for row in rows} == {None}
    assert not any(row["is_missed"] for row in rows)


def test_deviations_are_counted_by_step(lake: Lake) -> None:
    rows = asked(lake, "plan_deviations")
    assert {(row["deviation"], row["step"]): (row["cases"], row["share"], row["success_share"]) for row in rows} == {
        ("left out", "Check papers"): (20, 0.2, 0),
        ("left out", "Pay"): (20, 0.2, 0),
        ("added", "Refuse"): (20, 0.2, 0),
        ("repeated", "Decide"): (20, 0.2, 0),
    }


def test_a_lake_without_such_cases_answers_with_no_row(tmp_path: Path) -> None:
    lake = write_lake(tmp_path, [case(0, ["t1"], 1, 1, success=True, attributes=[])])
    assert asked(lake, "plan_against_actual") == asked(lake, "plan_deviations") == []
