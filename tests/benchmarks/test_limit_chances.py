"""Which cases are asked for which limits, and the simple baseline."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from limit_chances import Baseline, chosen, total, undecided, until  # type: ignore[import-not-found]

from opus_pipelines.forecasts.limits import COST, LEAD_TIME, SERVICE_LEVEL, STEPS, Limit
from opus_pipelines.forecasts.traces import Trace

SLOW = Trace("slow", ["a", "b", "c"], [0.0, 40.0, 90.0], ["x"] * 3, [1.0, 2.0, 3.0])
QUICK = Trace("quick", ["a", "c"], [100.0, 110.0], ["x"] * 2, [1.0, 1.0])
PAY = Limit(SERVICE_LEVEL, 50.0, "c")


@pytest.mark.parametrize(
    ("limit", "whole"),
    [(Limit(LEAD_TIME, 1.0), 90.0), (Limit(COST, 1.0), 6.0), (Limit(STEPS, 1.0), 3.0), (PAY, 90.0)],
)
def test_what_a_whole_case_uses(limit: Limit, whole: float) -> None:
    assert total(SLOW, limit) == whole


def test_an_activity_that_never_comes_breaks_no_service_level() -> None:
    assert total(QUICK, Limit(SERVICE_LEVEL, 1.0, "b")) == float("-inf")


@pytest.mark.parametrize(("case", "k", "is_asked"), [(SLOW, 1, True), (SLOW, 3, False), (QUICK, 2, False)])
def test_a_service_level_is_asked_until_it_is_kept_or_broken(case: Trace, k: int, is_asked: bool) -> None:
    assert undecided(case, k, PAY) is is_asked


def test_history_ends_at_the_moment() -> None:
    part = until(SLOW, 50.0)

    assert part is not None
    assert (part.activities, part.is_open) == (["a", "b"], True)
    assert until(SLOW, 95.0) is SLOW
    assert until(QUICK, 95.0) is None


def test_limits_are_quantiles_of_ended_cases() -> None:
    limits = chosen([SLOW, QUICK, Trace("open", ["a", "b"], [0.0, 500.0], is_open=True)])

    assert [limit.value for limit in limits if limit.kind == LEAD_TIME] == [50.0, 70.0, 82.0]
    assert {limit.kind for limit in limits} == {LEAD_TIME, STEPS, COST, SERVICE_LEVEL}


def test_the_baseline_is_the_share_of_undecided_cases_with_the_same_last_activity() -> None:
    limit = Limit(LEAD_TIME, 50.0)

    baseline = Baseline([SLOW, QUICK], [limit])

    assert baseline.chance(SLOW, 1, limit) == pytest.approx((1 + 0.5) / 3)  # of `a` and of all one half breaks it
    assert baseline.chance(SLOW, 2, limit) == pytest.approx((1 + 0.5) / 2)  # of `b` the one case
