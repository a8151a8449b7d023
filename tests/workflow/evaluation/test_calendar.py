"""Working hours and holidays."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings

HOUR = 3_600_000.0
OFFICE = CalendarSettings(timezone="Europe/Amsterdam", working_hours="09:00-17:00", holidays=("NL", "2026-06-03"))


def ms(text: str, zone: str = "Europe/Amsterdam") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000


def shown(moment: float) -> str:
    return (
        datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo("Europe/Amsterdam")).strftime("%Y-%m-%d %H:%M")
    )


@pytest.mark.parametrize(
    ("start", "hours", "end"),
    [
        ("2026-06-01 10:00", 2, "2026-06-01 12:00"),
        ("2026-06-01 16:00", 2, "2026-06-02 10:00"),
        ("2026-06-05 16:00", 8, "2026-06-08 16:00"),  # over a weekend
        ("2026-06-06 12:00", 1, "2026-06-08 10:00"),  # begun on a Saturday
        ("2026-06-02 16:00", 2, "2026-06-04 10:00"),  # 3 June is a day off of this contract
        ("2026-04-24 16:00", 2, "2026-04-28 10:00"),  # Friday; Monday 27 April is King's Day
        ("2026-03-27 16:00", 2, "2026-03-30 10:00"),  # clocks go forward on the Sunday between
        ("2026-06-01 10:00", 0, "2026-06-01 10:00"),
    ],
)
def test_work_passes_in_working_hours_only(start: str, hours: float, end: str) -> None:
    calendar = Calendar.of(OFFICE)
    assert shown(calendar.after(np.array([ms(start)]), np.array([hours * HOUR]))[0]) == end


@pytest.mark.parametrize(
    ("moment", "is_working"),
    [
        ("2026-06-01 09:00", True),
        ("2026-06-01 17:00", False),
        ("2026-06-01 08:59", False),
        ("2026-06-06 10:00", False),
        ("2026-04-27 10:00", False),
        ("2026-06-03 10:00", False),
    ],
)
def test_working_time_ends_with_the_working_day(moment: str, is_working: bool) -> None:
    assert Calendar.of(OFFICE).is_working(np.array([ms(moment)])).tolist() == [is_working]


def test_a_working_week_has_forty_hours() -> None:
    calendar = Calendar.of(OFFICE)
    week = np.array([ms("2026-06-08 00:00"), ms("2026-06-15 00:00")])
    assert np.diff(calendar.working_ms(week)).tolist() == [40 * HOUR]


moments = st.floats(ms("2020-01-01 00:00"), ms("2030-01-01 00:00"))


@settings(max_examples=80, deadline=None)
@given(moments, st.floats(1.0, 2_000 * HOUR))
def test_so_much_working_time_lies_between_start_and_end(start: float, amount: float) -> None:
    calendar = Calendar.of(OFFICE)
    end = calendar.after(np.array([start]), np.array([amount]))
    assert end[0] > start
    assert np.diff(calendar.working_ms(np.array([start, end[0]])))[0] == pytest.approx(amount, abs=1.0)


def test_requests_arrive_during_working_time() -> None:
    calendar = Calendar.of(OFFICE)
    assert calendar.is_working(calendar.arrivals(np.linspace(0.001, 0.999, 200), 2026)).all()


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"timezone": "Mars/Base"}, "no time zone"),
        ({"working_hours": "9 to 5"}, "working hours"),
        ({"working_hours": "17:00-09:00"}, "working_hours"),
        ({"working_days": ("funday",)}, "no day of the week"),
        ({"working_days": ()}, "at least 1"),
        ({"holidays": ("XX",)}, "neither a date"),
        ({"holidays": ("2026-02-30",)}, "day is out of range"),
        ({"hours": "09:00-17:00"}, "hours"),
    ],
)
def test_what_cannot_be_a_calendar_is_refused(stated: dict, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CalendarSettings.model_validate(stated)
