"""Counts per activity, from implementations as the lake has them; parts add up to the whole."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.records.activity_kinds import (
    Evidence,
    activity_names,
    add_up,
    by_activity,
    evidence_of,
    evidence_of_batch,
)
from opus_pipelines.lake.layout import table_of, write_table

START = datetime(2024, 1, 1, 9, 30, 15, tzinfo=UTC)
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)


def step(key: str, hours: float = 0.0, actor: str | None = "Ann", **more: Any) -> Any:
    return {"task_key": key, "started_at": START + timedelta(hours=hours), "ended_at": None, "actor": actor, **more}


def case(number: int, *steps: Any, **more: Any) -> Any:
    return {
        "implementation_id": f"i{number}",
        "kind": "executed",
        "weight": 1,
        "industry": "travel",
        "tasks": list(steps),
        **more,
    }


CASES = [
    case(
        1, step("submit"), step("reject", actor="SYSTEM", wait_ms=0.0), step("submit", duration_ms=0.0), success=False
    ),
    case(
        2,
        step("submit", duration_ms=5.0, wait_ms=7.0),
        step("end trip", actor=None) | {"started_at": MIDNIGHT},
        success=True,
    ),
    case(3, step("submit", actor=" missing "), weight=10),
    case(4, step("submit"), step("reject"), kind="model"),
    case(5),
]


def read(cases: list[Any], folder: Path) -> Any:
    write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, cases), folder)
    return by_activity(evidence_of(folder))


def test_what_is_counted(tmp_path: Path) -> None:
    found, whole = read(CASES, tmp_path)
    assert whole == Evidence(cases=13, cases_known=2, cases_succeeded=1)
    assert found == {
        "submit": Evidence(
            occurrences=14,
            executed=13,
            first=12,
            last=11,
            followed=2,
            named=3,
            timed=2,
            instant=1,
            waited=1,
            dated=13,
            cases=12,
            cases_known=2,
            cases_succeeded=1,
        ),
        "reject": Evidence(
            occurrences=2,
            executed=1,
            followed=1,
            repeat_follows=1,
            automatic=1,
            waited=1,
            no_wait=1,
            dated=1,
            cases=1,
            cases_known=1,
        ),
        "end trip": Evidence(
            occurrences=1, executed=1, last=1, dated=1, whole_hour=1, cases=1, cases_known=1, cases_succeeded=1
        ),
    }
    assert activity_names(tmp_path) == ["end trip", "reject", "submit"]


def test_no_cases(tmp_path: Path) -> None:
    assert read([], tmp_path) == ({}, Evidence())


STEPS = st.lists(
    st.builds(step, st.sampled_from("abc"), st.floats(0, 3), st.sampled_from(["Ann", "system", "", None])), max_size=5
)
HISTORY = st.lists(
    st.tuples(STEPS, st.sampled_from([True, False, None]), st.integers(1, 3), st.sampled_from(["x", None])), max_size=8
)


@pytest.mark.long
@given(HISTORY, st.integers(0, 8))
def test_parts_add_up_to_the_whole(history: Any, cut: Any) -> None:
    cases = [case(i, *s, success=ok, weight=w, industry=industry) for i, (s, ok, w, industry) in enumerate(history)]
    table = table_of(IMPLEMENTATIONS, cases)
    counted = lambda part: [evidence_of_batch(batch) for batch in part.combine_chunks().to_batches()]
    whole = add_up(counted(table))
    assert add_up([*counted(table.slice(cut)), *counted(table.slice(0, cut))]).equals(whole)
    steps = whole.filter(pc.is_valid(whole["task_key"]))
    assert sum(steps["occurrences"].to_pylist()) == sum(len(s) * w for s, _, w, _ in history)
