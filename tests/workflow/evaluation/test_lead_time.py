"""Lead time: sums of distributions along the critical path, with a fixed seed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings
from opus_pipelines.workflow.evaluation.lead_time import (
    DurationQuantiles,
    Period,
    Sampling,
    StepTime,
    Wait,
    lead_time,
    time_until,
)
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

HOUR = 3.6e6
DAY = 24 * HOUR


def chain(*names: str) -> Workflow:
    ends = ["in", *names, "out"]
    nodes = [InputNode("in", "request"), *(TaskNode(n, n, n) for n in names), OutputNode("out", "answer", 1.0)]
    return Workflow.of(nodes, list(pairwise(ends)))


def fork() -> Workflow:
    """a, then b and c side by side, then d."""
    nodes = [InputNode("in", "request"), *(TaskNode(n, n, n) for n in "abcd"), OutputNode("out", "answer", 1.0)]
    return Workflow.of(nodes, [("in", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "out")])


def known(hours: float, n: int = 10, with_work_n: int = 0) -> Wait:
    return Wait(DurationQuantiles((hours * HOUR,) * 27, n, with_work_n), "edge")


def work(hours: float) -> DurationQuantiles:
    return DurationQuantiles.constant(hours * HOUR)


def test_waiting_and_work_of_a_chain_add_up() -> None:
    times = {
        "a": StepTime({}, work(1)),
        "police": StepTime({"a": known(72)}, work(0.002)),
        "pay": StepTime({"police": known(2)}, work(1)),
    }
    found = lead_time(chain("a", "police", "pay"), times)
    assert found.p50_ms == pytest.approx(76.002 * HOUR)
    assert found.p90_ms == pytest.approx(76.002 * HOUR)
    assert found.basis == "waiting and work"
    assert (found.steps["police"].wait_ms_p50, found.steps["police"].wait_basis, found.steps["police"].wait_n) == (
        72 * HOUR,
        "edge",
        10,
    )
    assert found.steps["a"].wait_ms_p50 is None
    assert [found.within(hours) for hours in (76, 76.01)] == [0.0, 1.0]


def test_the_wait_of_a_join_begins_when_the_last_branch_has_ended() -> None:
    times = {
        "a": StepTime({}, work(1)),
        "b": StepTime({"a": known(5)}, work(1)),
        "c": StepTime({"a": known(20)}, work(2)),
        "d": StepTime({"b": known(100), "c": known(3)}, work(1)),
    }
    assert lead_time(fork(), times).p50_ms == pytest.approx((1 + 20 + 2 + 3 + 1) * HOUR)


def test_where_only_completions_are_known_the_work_is_in_the_time_between_them() -> None:
    times = {"a": StepTime({}, None), "b": StepTime({"a": known(10, with_work_n=10)}, work(4))}
    found = lead_time(chain("a", "b"), {**times, "a": StepTime({}, work(0))})
    assert found.p50_ms == pytest.approx(10 * HOUR)
    assert found.basis == "time between completions"


def test_a_share_of_records_without_durations_counts_the_work_of_the_others() -> None:
    times = {"a": StepTime({}, work(0)), "b": StepTime({"a": known(10, 10, 5)}, work(4))}
    draws = lead_time(chain("a", "b"), times).draws
    assert draws is not None
    assert set(np.round(draws / HOUR, 6)) == {10.0, 14.0}
    assert np.mean(draws / HOUR) == pytest.approx(12, abs=0.15)


@pytest.mark.parametrize("second", [StepTime({}, work(1)), StepTime({"a": known(1)})])
def test_a_step_of_unknown_time_makes_the_lead_time_unknown_and_says_which(second: StepTime) -> None:
    found = lead_time(chain("a", "b"), {"a": StepTime({}, work(1)), "b": second})
    assert (found.p50_ms, found.p90_ms, found.within(5)) == (None, None, None)
    assert found.basis == "unknown: no time of 'b'"


def test_quantiles_of_a_sum_are_those_of_the_convolution() -> None:
    """Two waits of 0 to 10 hours, evenly: the sum has its median at 10 and its 90th percentile at 20 -
    sqrt(20) hours.
    """
    even = Wait(DurationQuantiles.of(np.linspace(0, 10 * HOUR, 10_001)), "edge")
    times = {"a": StepTime({}, work(0)), "b": StepTime({"a": even}, work(0)), "c": StepTime({"b": even}, work(0))}
    found = lead_time(chain("a", "b", "c"), times, Sampling(draws=20_000))
    assert found.p50_ms == pytest.approx(10 * HOUR, rel=0.02)
    assert found.p90_ms == pytest.approx((20 - 20**0.5) * HOUR, rel=0.02)


def test_waits_that_depend_on_each_other_spread_the_sum() -> None:
    even = Wait(DurationQuantiles.of(np.linspace(0, 10 * HOUR, 10_001)), "edge")
    times = {"a": StepTime({}, work(0)), "b": StepTime({"a": even}, work(0)), "c": StepTime({"b": even}, work(0))}
    alone, together = (lead_time(chain("a", "b", "c"), times, Sampling(correlation)) for correlation in (0.0, 0.8))
    assert alone.draws is not None
    assert together.draws is not None
    assert np.std(together.draws) > 1.2 * np.std(alone.draws)
    assert np.median(together.draws) == pytest.approx(np.median(alone.draws), rel=0.05)


def test_the_same_arguments_give_the_same_draws() -> None:
    even = Wait(DurationQuantiles.of(np.linspace(0, 10 * HOUR, 101)), "edge")
    times = {"a": StepTime({}, work(0)), "b": StepTime({"a": even}, work(0))}
    one, two = (lead_time(chain("a", "b"), times, Sampling(0.3, 7)) for _ in range(2))
    assert np.array_equal(one.draws, two.draws)  # type: ignore[arg-type]
    assert not np.array_equal(one.draws, lead_time(chain("a", "b"), times, Sampling(0.3, 8)).draws)  # type: ignore[arg-type]


def test_people_work_in_the_hours_of_the_calendar_and_programs_around_the_clock() -> None:
    office = Calendar.of(CalendarSettings(timezone="UTC"))
    times = {"a": StepTime({}, work(0)), "b": StepTime({"a": known(16)}, work(0))}
    people = {name: StepTime(t.waits, t.work, in_working_time=True) for name, t in times.items()}
    assert lead_time(chain("a", "b"), times, Sampling(calendar=office)).p50_ms == pytest.approx(16 * HOUR)
    found = lead_time(chain("a", "b"), people, Sampling(calendar=office))
    # 16 working hours are two working days: two days later, or four over a weekend
    assert found.p50_ms == pytest.approx(2 * DAY)
    assert found.p90_ms == pytest.approx(4 * DAY)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.floats(0, 0.9), st.integers(0, 5))
def test_a_longer_wait_never_makes_a_shorter_lead_time(waits: list[float], correlation: float, seed: int) -> None:
    names = [f"t{i}" for i in range(len(waits) + 1)]
    spread = [DurationQuantiles.of(np.linspace(0, w * HOUR, 30)) for w in waits]
    more = [DurationQuantiles.of(np.linspace(0, (w + 1) * HOUR, 30)) for w in waits]

    def median(of: list[DurationQuantiles]) -> float:
        times = {names[0]: StepTime({}, work(0))}
        times |= {name: StepTime({names[i]: Wait(of[i], "edge")}, work(0)) for i, name in enumerate(names[1:])}
        found = lead_time(chain(*names), times, Sampling(correlation, seed, draws=200)).p50_ms
        assert found is not None
        return found

    assert median(spread) < median(more)


def test_quantiles_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="never fall"):
        DurationQuantiles(tuple(range(27, 0, -1)), 5)
    with pytest.raises(ValueError, match="no times"):
        DurationQuantiles.of([])


def test_the_time_up_to_a_step_counts_what_comes_before_it_alone() -> None:
    times = {
        "a": StepTime({}, work(1)),
        "b": StepTime({"a": known(5)}, work(1)),
        "c": StepTime({"a": known(20)}, work(2)),
        "d": StepTime(),
    }
    assert time_until(fork(), times, Period("c")).p50_ms == pytest.approx((1 + 20 + 2) * HOUR)
    assert time_until(fork(), times, Period("c", since="a")).p50_ms == pytest.approx(22 * HOUR)
    assert time_until(fork(), times, Period("b", since="c")).p50_ms == 0.0
    assert (time_until(fork(), times, Period("d")).p50_ms, time_until(fork(), times, Period("d")).basis) == (
        None,
        "unknown: no time of 'd'",
    )


def test_working_days_are_counted_in_the_working_time_of_the_calendar() -> None:
    calendar = Calendar.of(CalendarSettings())
    times = {"a": StepTime({}, work(1), True), "b": StepTime({"a": known(20)}, work(3), True)}
    found = time_until(chain("a", "b"), times, Period("b", in_working_time=True), Sampling(calendar=calendar))
    assert calendar.day_hours == 8.0
    assert found.p50_ms == pytest.approx(24 * HOUR)  # three working days
    assert (
        time_until(chain("a", "b"), times, Period("b"), Sampling(calendar=calendar)).p50_ms > 72 * HOUR
    )  # weekends and nights are in it
