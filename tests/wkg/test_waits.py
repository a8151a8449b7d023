"""Waiting times between tasks, from a history small enough to reckon by hand."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import CASES, EDGES, TASK_IMPLEMENTATIONS, TASKS, WAITS, Dataset
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.workflow.evaluation.lead_time import LEVELS

pytestmark = pytest.mark.long

HOUR = 3_600_000.0


def rows(lake: Lake, dataset: Dataset) -> list[dict[str, Any]]:
    snapshot = lake.current_snapshot()
    assert snapshot
    return read_table(dataset, dataset_folder(lake.snapshot_folder(snapshot), dataset)).to_pylist()


def police(history: Any, days: float, actor: str, minutes: float | None = 10.0) -> dict[str, Any]:
    """A claim whose police report is ready after so many days; without minutes only its completion is known."""
    case: dict[str, Any] = history.case(
        int(days * 10), [history.step("Register"), history.step("Police", actor_kind=actor)]
    )
    register, report = case["tasks"]
    start = register["ended_at"] + timedelta(days=days)
    report |= {"started_at": start, "ended_at": start + timedelta(minutes=minutes or 0), "wait_ms": days * 24 * HOUR}
    report["duration_ms"] = None if minutes is None else minutes * 60_000
    case |= {"started_at": register["started_at"], "ended_at": report["ended_at"]}
    return case


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory, history: Any, rebuild: Any) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("waits") / "lake")
    human = [police(history, days, "human") for days in (1, 2, 3, 4, 5)]
    code = [police(history, days + 0.5, "code", None) for days in (1, 2, 3)]
    rebuild(lake, history.write(lake, "insurer", [*human, *code]))
    return lake


def test_an_edge_has_the_quantiles_of_its_waiting_time_and_says_how_often_work_is_in_it(mined: Lake) -> None:
    (edge,) = rows(mined, EDGES)
    # 1, 1.5, 2, 2.5, 3, 3.5, 4 and 5 days: the median lies half way between 2.5 and 3, the 90th percentile .3 of the
    # way from 4 to 5
    assert (edge["wait_n"], edge["wait_with_work_n"]) == (8, 3)
    assert edge["wait_ms_p50"] == pytest.approx(2.75 * 24 * HOUR, rel=0.03)
    assert edge["wait_ms_p90"] == pytest.approx(4.3 * 24 * HOUR, rel=0.03)
    assert edge["wait_ms_mean"] == pytest.approx(22.5 / 8 * 24 * HOUR)


def test_waiting_time_is_kept_by_edge_way_task_and_resource(mined: Lake) -> None:
    found = {
        (r["level"], r["actor_kind"]): (r["wait_n"], r["with_work_n"], r["wait_ms_p50"] / HOUR / 24)
        for r in rows(mined, WAITS)
    }
    assert found == {
        ("edge", None): (8, 3, pytest.approx(2.75, rel=0.03)),
        ("edge_way", "human"): (5, 0, pytest.approx(3, rel=0.03)),
        ("edge_way", "code"): (3, 3, pytest.approx(2.5, rel=0.03)),
        ("way", "human"): (5, 0, pytest.approx(3, rel=0.03)),
        ("way", "code"): (3, 3, pytest.approx(2.5, rel=0.03)),
        ("task", None): (8, 3, pytest.approx(2.75, rel=0.03)),
        ("resource", "human"): (5, 0, pytest.approx(3, rel=0.03)),
        ("resource", "code"): (3, 3, pytest.approx(2.5, rel=0.03)),
    }
    quantiles = next(r["wait_ms_quantiles"] for r in rows(mined, WAITS) if r["level"] == "task")
    assert len(quantiles) == len(LEVELS)
    assert quantiles == sorted(quantiles)
    assert [quantiles[0], quantiles[-1]] == [24 * HOUR, 5 * 24 * HOUR]


def test_tasks_and_ways_have_both_waiting_and_working_time(mined: Lake) -> None:
    task = next(r for r in rows(mined, TASKS) if r["title"] == "Police")
    assert (task["wait_n"], task["duration_ms_p50"]) == (8, 600_000.0)
    assert task["wait_ms_p90"] == pytest.approx(4.3 * 24 * HOUR, rel=0.03)
    ways = {w["actor_kind"]: w for w in rows(mined, TASK_IMPLEMENTATIONS) if w["task_id"] == task["task_id"]}
    assert ways["human"]["duration_ms_quantiles"] == [600_000.0] * len(LEVELS)
    assert ways["code"]["duration_ms_quantiles"] is None
    assert ways["human"]["wait_ms_p50"] == pytest.approx(3 * 24 * HOUR, rel=0.03)


def test_a_case_keeps_its_lead_time_and_the_times_of_its_steps(mined: Lake) -> None:
    cases = {c["lead_time_ms"]: c for c in rows(mined, CASES)}
    assert sorted(cases) == [
        pytest.approx(d * 24 * HOUR + m * 60_000)
        for d, m in (
            (1, 10),
            (1.5, 0),
            (2, 10),
            (2.5, 0),
            (3, 10),
            (3.5, 0),
            (4, 10),
            (5, 10),
        )
    ]
    assert cases[2.5 * 24 * HOUR]["task_wait_ms"] == [None, 2.5 * 24 * HOUR]
    assert all(len(c["task_started_at"]) == 2 for c in cases.values())


def test_two_sources_added_up_are_one_source(
    lake: Lake, tmp_path_factory: pytest.TempPathFactory, history: Any, rebuild: Any
) -> None:
    cases = [police(history, days, "human") for days in (1, 2, 3, 4, 5, 6)]
    other = Lake(tmp_path_factory.mktemp("one") / "lake")
    rebuild(lake, history.write(lake, "a", cases[:2]), history.write(lake, "b", cases[2:]))
    rebuild(other, history.write(other, "a", cases))
    comparable = lambda found: [{k: v for k, v in r.items() if k not in ("src", "dst")} for r in rows(found, WAITS)]
    assert comparable(lake) == comparable(other)


def test_waiting_time_without_moments_is_unknown_and_not_0(lake: Lake, history: Any, rebuild: Any) -> None:
    """Flows and models tell what follows what, and no times."""
    untimed = {"started_at": None, "ended_at": None}
    flow = [
        history.step(name, predecessors=before, **untimed) for name, before in (("A", []), ("B", [0]), ("C", [0, 1]))
    ]
    rebuild(lake, history.write(lake, "flows", [history.case(1, flow)]))
    assert rows(lake, WAITS) == []


def test_waiting_time_of_no_pair_is_unknown(lake: Lake, history: Any, rebuild: Any) -> None:
    rebuild(lake, history.write(lake, "lone", [history.case(1, [history.step("A")])]))
    assert rows(lake, WAITS) == []
    assert pa.Table.from_pylist(rows(lake, TASKS))["wait_ms_p90"].null_count == 1
