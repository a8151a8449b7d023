"""Limits of running cases: which count, and how much of them similar cases use."""

import numpy as np
import pytest

from opus_pipelines.core.settings import Forecasts
from opus_pipelines.forecasts.limits import (
    COST,
    LEAD_TIME,
    SERVICE_LEVEL,
    STEPS,
    Limit,
    LimitReader,
    in_force,
    limits_of,
)
from opus_pipelines.forecasts.similar_prefixes import SimilarPrefixes
from opus_pipelines.forecasts.traces import Trace, Vocabulary

HISTORY = [
    Trace("quick", ["a", "b", "c"], [0.0, 10.0, 20.0], costs_usd=[1.0, 1.0, 1.0]),
    Trace("slow", ["a", "b", "a", "c"], [100.0, 110.0, 150.0, 190.0], costs_usd=[1.0, 1.0, 2.0, None]),
    Trace("without", ["a", "b"], [300.0, 310.0], costs_usd=[1.0, 1.0]),
]
RUNNING = Trace("x", ["a", "b"], [0.0, 10.0], costs_usd=[1.0, 1.0], is_open=True)
AFTER_B = np.array([1, 4, 8])  # rows of `b` in the three cases


@pytest.fixture(scope="module")
def reader() -> LimitReader:
    vocabulary = Vocabulary.of(HISTORY)
    return LimitReader(vocabulary, vocabulary.table(HISTORY))


@pytest.mark.parametrize(
    ("limit", "used", "totals"),
    [
        (Limit(LEAD_TIME, 1.0), 10.0, [20.0, 90.0, 10.0]),
        (Limit(COST, 1.0), 2.0, [3.0, np.nan, 2.0]),
        (Limit(STEPS, 1.0), 2.0, [3.0, 4.0, 2.0]),
        (Limit(SERVICE_LEVEL, 1.0, "c"), 10.0, [20.0, 90.0, -np.inf]),
        (Limit(SERVICE_LEVEL, 1.0, "c", "b"), 0.0, [10.0, 80.0, -np.inf]),
        (Limit(SERVICE_LEVEL, 1.0, "b", "a"), 10.0, [10.0, 10.0, 10.0]),  # it is done
        (Limit(SERVICE_LEVEL, 1.0, "a", "c"), 0.0, [-np.inf] * 3),  # neither is to come
        (Limit(SERVICE_LEVEL, 1.0, "z"), np.nan, [np.nan] * 3),
    ],
)
def test_what_a_case_uses_of_a_limit(reader: LimitReader, limit: Limit, used: float, totals: list[float]) -> None:
    own = Vocabulary.of(HISTORY).table([RUNNING])

    found = reader.totals(own, limit, AFTER_B)

    np.testing.assert_equal((found[0], found[1].tolist()), (used, totals))


def test_the_chance_to_break_one_of_several_limits(reader: LimitReader) -> None:
    own = Vocabulary.of(HISTORY).table([RUNNING])
    like = SimilarPrefixes(AFTER_B, np.array([0.5, 0.3, 0.2]))

    outlooks, broken = reader.outlooks(own, (Limit(LEAD_TIME, 50.0), Limit(STEPS, 2.0), Limit(COST, 2.5)), like)

    assert [round(found.p_broken or 0.0, 3) for found in outlooks] == [0.3, 0.8, 0.714]
    assert [found.expected for found in outlooks] == [20.0, 3.0, 3.0]
    assert broken.tolist() == [1.0, 1.0, 0.0]


def test_the_first_limit_of_a_subject_counts() -> None:
    first, second = Limit(SERVICE_LEVEL, 1.0, "Pay bill"), Limit(SERVICE_LEVEL, 2.0, "pay_bill")

    assert in_force((first,), (second, Limit(COST, 3.0)), (Limit(COST, 4.0),)) == (first, Limit(COST, 3.0))


def test_limits_of_the_settings() -> None:
    table = {"lead_time_hours": 2, "steps": 7, "service_levels": [{"activity": "Pay", "hours": 1, "after": "Check"}]}
    settings = Forecasts.model_validate({"limits": {"claims": table}})

    assert limits_of(settings.limits["claims"]) == (
        Limit(LEAD_TIME, 7200.0),
        Limit(STEPS, 7.0),
        Limit(SERVICE_LEVEL, 3600.0, "Pay", "Check"),
    )


@pytest.mark.parametrize("table", [{"steps": 0}, {"cost_usd": -1}, {"service_levels": [{"hours": 1}]}])
def test_a_limit_that_is_none_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="limits"):
        Forecasts.model_validate({"limits": {"claims": table}})
