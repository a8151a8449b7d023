"""Checks of figures on tables made by hand."""

import math
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import ALIASES, EDGES, TASK_IMPLEMENTATIONS, TASKS, WAITS, Dataset
from opus_pipelines.lake.layout import dataset_folder, table_of, write_table
from opus_pipelines.wkg.checks import ALIKE, FINITE, ORDERED, RISING, WHOLE, check_figures, check_snapshot

WAIT = {
    "level": "task",
    "dst": "t1",
    "wait_n": 4,
    "with_work_n": 1,
    "wait_ms_mean": 60_000.0,
    "wait_ms_p50": 50_000.0,
    "wait_ms_p90": 90_000.0,
    "wait_ms_quantiles": [0.0, 50_000.0, 90_000.0],
}
OTHER = WAIT | {
    "dst": "t0",
    "wait_ms_quantiles": [95_000.0, 99_000.0],
}  # a list may begin above where the one before it ends, or below


def failed(dataset: Dataset, *rows: dict[str, Any]) -> dict[str, str]:
    return {c.name: c.detail for c in check_figures({dataset: table_of(dataset, rows)}) if not c.passed}


def test_sound_waits_pass_every_check() -> None:
    assert failed(WAITS, OTHER, WAIT) == {}
    assert failed(WAITS) == {}
    assert {c.name for c in check_figures({WAITS: table_of(WAITS, [WAIT])})} == {FINITE, ORDERED, RISING, WHOLE}


@pytest.mark.parametrize(
    ("wrong", "name", "said"),
    [
        ({"wait_ms_mean": math.inf}, FINITE, "wait_ms_mean"),
        ({"wait_ms_quantiles": [0.0, math.nan]}, FINITE, "wait_ms_quantiles"),
        ({"wait_ms_p90": 40_000.0}, ORDERED, "wait_ms_p50 > wait_ms_p90"),
        ({"with_work_n": 5}, ORDERED, "with_work_n > wait_n"),
        ({"wait_ms_quantiles": [0.0, 90_000.0, 50_000.0]}, RISING, "wait_ms_quantiles in 1 rows"),
        ({"wait_ms_quantiles": None}, WHOLE, "wait_ms_quantiles in 1 rows"),
        ({"wait_n": None}, WHOLE, "wait_n in 1 rows"),
    ],
)
def test_a_wrong_waiting_time_is_named(wrong: dict[str, Any], name: str, said: str) -> None:
    assert failed(WAITS, OTHER, WAIT | wrong) == {name: f"1 wrong: {said}"}


def test_a_pair_has_no_more_successes_than_outcomes_and_no_more_outcomes_than_transitions() -> None:
    pair = {"src": "a", "dst": "b", "transitions": 9, "dst_p_n": 8, "dst_p_successes": 7, "dst_q_n": 1}
    assert failed(EDGES, pair) == {}
    assert failed(EDGES, pair | {"dst_p_successes": 9}) == {ORDERED: "1 wrong: dst_p_successes > dst_p_n"}
    assert failed(EDGES, pair | {"dst_q_n": 10}) == {ORDERED: "1 wrong: dst_q_n > transitions"}


def test_waits_of_edges_and_working_times_of_ways_are_held_too() -> None:
    edge = {"src": "a", "dst": "b", "wait_ms_p50": 2.0, "wait_ms_p90": 1.0}
    assert failed(EDGES, edge) == {ORDERED: "1 wrong: wait_ms_p50 > wait_ms_p90"}
    assert RISING in failed(TASK_IMPLEMENTATIONS, {"task_id": "a", "duration_ms_quantiles": [2.0, 1.0]})


def test_clients_that_look_alike_are_named(tmp_path: Path) -> None:
    rows = [
        {"task_id": "t1", "clients": ["Acme", "Bolt GmbH"]},
        {"task_id": "t2", "clients": ["Acm\u0435", "bolt\u00a0gmbh", "Bolt"]},
    ]
    for dataset in (TASKS, ALIASES):
        write_table(dataset, table_of(dataset, rows if dataset is TASKS else []), dataset_folder(tmp_path, dataset))
    (found,) = [c for c in check_snapshot(tmp_path, (TASKS, ALIASES)) if c.name == ALIKE]
    assert not found.passed
    assert not found.blocking
    assert "'Acme' and 'Acm\\u0435'" in found.detail
    assert "'Bolt GmbH' and 'bolt\\xa0gmbh'" in found.detail
    assert "2 wrong" in found.detail
