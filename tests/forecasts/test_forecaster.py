"""Forecasts of a made process: an intake, then a check; what is rejected ends soon, what is approved takes days."""

import random

import numpy as np
import pytest

from opus_pipelines.forecasts.forecaster import Forecaster, TooLittleHistory, newest_cases
from opus_pipelines.forecasts.limits import LEAD_TIME, Limit
from opus_pipelines.forecasts.similar_prefixes import MOST_COLUMNS, informative_columns
from opus_pipelines.forecasts.traces import END, Trace

HOUR, DAY = 3600.0, 86400.0
A_DAY = (Limit(LEAD_TIME, DAY),)


def history(cases: int, observed_until: float = float("inf")) -> list[Trace]:
    """The checker decides: `strict` rejects after an hour, `mild` approves, and payment follows two days later."""
    draw, found = random.Random(1), []
    for n in range(cases):
        begin = n * HOUR
        mild = draw.random() < 0.5
        steps = [("intake", 0.0, "desk", 1.0), ("check", HOUR * draw.uniform(1, 3), "mild" if mild else "strict", 2.0)]
        if mild:
            steps += [("approve", 5 * HOUR, "desk", 4.0), ("pay", 2 * DAY + HOUR * draw.uniform(5, 9), "bank", 8.0)]
        else:
            steps += [("reject", 4 * HOUR, "desk", 1.0)]
        seen = [s for s in steps if begin + s[1] <= observed_until]
        if seen:
            found.append(
                Trace(
                    f"case{n}",
                    [s[0] for s in seen],
                    [begin + s[1] for s in seen],
                    [s[2] for s in seen],
                    [s[3] for s in seen],
                    is_open=len(seen) < len(steps),
                    success=mild if len(seen) == len(steps) else None,
                )
            )
    return found


RUNNING = [
    Trace("a", ["intake", "check"], [0.0, 2 * HOUR], ["desk", "mild"], is_open=True),
    Trace("b", ["intake", "check"], [0.0, 2 * HOUR], ["desk", "strict"], is_open=True),
    Trace("c", ["intake", "check", "approve", "pay"], [0.0, 2 * HOUR, 5 * HOUR, 2.3 * DAY], is_open=True),
]


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return Forecaster(history(400), calendar=False)


def test_who_did_the_last_step_decides_what_follows(forecaster: Forecaster) -> None:
    approved, rejected, paid = forecaster.forecast(RUNNING)

    assert (approved.following[0].activity, approved.rest) == ("approve", ("approve", "pay"))
    assert (rejected.following[0].activity, rejected.rest) == ("reject", ("reject",))
    assert (paid.following[0].activity, paid.rest) == (END, ())
    assert approved.following[0].probability > 0.8


def test_remaining_time_cost_and_success(forecaster: Forecaster) -> None:
    approved, rejected, paid = forecaster.forecast(RUNNING, limits=[A_DAY] * 3)

    assert 2 * DAY < approved.remaining_s.low <= approved.remaining_s.middle <= approved.remaining_s.high < 2.4 * DAY
    assert HOUR <= rejected.remaining_s.middle <= 3 * HOUR
    assert (paid.remaining_s.middle, paid.remaining_cost_usd.middle) == (0.0, 0.0)
    assert (approved.remaining_cost_usd.middle, rejected.remaining_cost_usd.middle) == (12.0, 1.0)
    assert approved.p_success > 0.9
    assert rejected.p_success < 0.1
    assert approved.p_limit > 0.95
    assert rejected.p_limit < 0.05


@pytest.mark.long
def test_open_cases_do_not_make_the_work_look_shorter() -> None:
    """Half of the history is still open two days after it began; the payments of the newest nobody saw."""
    cut = Forecaster(history(400, observed_until=400 * HOUR), calendar=False)

    assert 2 * DAY < cut.forecast(RUNNING)[0].remaining_s.middle < 2.4 * DAY


def test_cases_that_are_known_only_because_they_lasted_do_not_make_the_work_look_longer() -> None:
    """An export of what ended in the last hours holds all approved cases of the days before, and no rejected one."""
    cases = [t for t in history(400, observed_until=400 * HOUR) if t.is_open or t.times[-1] >= 360 * HOUR]
    begun = Trace("new", ["intake"], [0.0], ["desk"], is_open=True)

    (found,) = Forecaster(cases, calendar=False).forecast([begun], limits=[A_DAY])

    assert 0.35 < found.p_limit < 0.65


def test_a_long_silence_rules_out_what_would_have_happened_by_then(forecaster: Forecaster) -> None:
    both = Trace("d", ["intake", "check"], [0.0, 2 * HOUR], [None, None], is_open=True)

    (now,) = forecaster.forecast([both])
    (silent,) = forecaster.forecast([both], silent=[3.5 * HOUR])

    assert silent.similar < now.similar


@pytest.mark.long
def test_the_same_history_gives_the_same_forecasts(forecaster: Forecaster) -> None:
    assert Forecaster(history(400), calendar=False).forecast(RUNNING) == forecaster.forecast(RUNNING)


@pytest.mark.long
def test_without_costs_and_outcomes_nothing_is_claimed_about_them() -> None:
    bare = [Trace(t.case_id, t.activities, t.times) for t in history(60)]

    approved, _, paid = Forecaster(bare).forecast(RUNNING)

    assert (approved.remaining_cost_usd, approved.p_success, approved.p_limit) == (None, None, None)
    assert paid.remaining_cost_usd is None  # an empty sum of unknown costs is unknown, too


def test_an_activity_that_history_never_saw(forecaster: Forecaster) -> None:
    (found,) = forecaster.forecast([Trace("new", ["intake", "escalate"], [0.0, HOUR], is_open=True)])

    assert found.steps == 2
    assert sum(f.probability for f in found.following) <= 1.0 + 1e-9


@pytest.mark.parametrize("traces", [[], history(1), [Trace("o", ["a", "b"], [0.0, 1.0], is_open=True)] * 5])
def test_too_little_history(traces: list[Trace]) -> None:
    with pytest.raises(TooLittleHistory, match="two ended cases"):
        Forecaster(traces)


def test_a_history_of_one_activity() -> None:
    (found,) = Forecaster([Trace(f"c{n}", ["only"], [float(n)]) for n in range(5)]).forecast(
        [Trace("x", ["only"], [0.0], is_open=True)]
    )

    assert (found.following[0].activity, found.rest, found.remaining_s.middle) == (END, (), 0.0)


def test_a_running_case_without_events_is_named(forecaster: Forecaster) -> None:
    with pytest.raises(ValueError, match="'nothing'"):
        forecaster.forecast([Trace("nothing", [], [])])


def test_a_forest_is_grown_on_the_columns_that_tell_most() -> None:
    x = np.zeros((50, MOST_COLUMNS + 40), np.float32)
    x[::2, 20 : 20 + MOST_COLUMNS] = np.linspace(1, 2, MOST_COLUMNS, dtype=np.float32)
    assert informative_columns(x).tolist() == list(range(20, 20 + MOST_COLUMNS))
    assert informative_columns(x[:, :MOST_COLUMNS]).tolist() == list(range(MOST_COLUMNS))


def test_of_a_wide_vocabulary_the_newest_cases_are_learnt_from() -> None:
    """Each event has columns for each activity, so their product is bounded: 6,000 activities once were 7 GB."""
    traces = [
        Trace(f"c{n:05}", [f"a{5 * n + k}" for k in range(5)], [n * HOUR + k for k in range(5)], is_open=False)
        for n in range(1_200)
    ]
    newest = newest_cases(traces)
    assert [trace.case_id for trace in newest] == [
        f"c{n:05}" for n in range(200, 1_200)
    ]  # 5,000 events, 5,000 activities
    assert newest_cases(history(50))[0].case_id == "case0"
