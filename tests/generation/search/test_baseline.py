"""What history paid for this kind of work."""

from typing import Any

import pytest

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.costs import Baseline, baseline, task_baselines

HOUR = 3_600_000.0


def case(costs: list[Any], durations: list[Any], success: bool | None, kinds: list[Any] | None = None) -> Any:
    return {"task_cost_usd": costs, "task_duration_ms": durations, "success": success, "actor_kinds": kinds}


def test_medians_with_stated_prices_for_the_unknown() -> None:
    settings = Cost(
        usd_per_hour={"human": 30, "code": 2}, default_duration_ms={"human": HOUR}, usd_per_hour_of_duration=1
    )
    cases = [
        case([5.0, 3.0], [HOUR, HOUR], True),  # 8 + 2 h
        case([None, 4.0], [HOUR, None], False, ["code", None]),  # 2 + 4 + 2 h
        case([None], [None], None, ["human"]),  # 30 + 1 h
        case([], [], False),
    ]
    assert baseline(cases, settings) == Baseline(10.0, 2 * HOUR, 0.5)


def test_prices_by_role_hold_on_both_sides_of_a_saving() -> None:
    settings = Cost(usd_per_hour={"human": 30, "SUPERVISOR": 60, "big-llm": 5})
    done = {
        "tasks": ("a", "b", "c"),
        "task_cost_usd": (None, None, None),
        "task_duration_ms": (HOUR, HOUR, HOUR),
        "actor_kinds": ("human", "human", "model"),
        "models": (None, None, "big-llm"),
        "actor_groups": ("SUPERVISOR", "clerk", None),
    }
    found = task_baselines([done], settings)
    assert [found.of(task) for task in "abc"] == [60.0, 30.0, 5.0]


def test_nothing_known() -> None:
    assert baseline([], Cost()) == Baseline(None, None, None)
    assert baseline([case([], [], True)], Cost()) == Baseline()
    assert baseline([case([1.0], [1.0], None)], Cost()).success is None
    assert baseline([case([1.0], [0.0], True)], Cost()).cost_usd == pytest.approx(1.0)


def test_a_case_of_which_a_part_is_unknown_tells_no_median() -> None:
    cases = [case([1.0, None], [HOUR, HOUR], True), case([3.0], [None], True), case([5.0], [2 * HOUR], False)]
    assert baseline(cases, Cost()) == Baseline(4.0, 2 * HOUR, pytest.approx(2 / 3))
    assert baseline(cases[:1], Cost()) == Baseline(None, 2 * HOUR, 1.0)
    assert baseline(cases, Cost(usd_per_hour_of_duration=1)).cost_usd == 7.0
