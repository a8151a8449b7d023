"""The `[calendar]` table of contract.toml, checked where it is read, and working time by its hours and holidays.

Moments are milliseconds since 1970 in UTC, and working time is in milliseconds. Both directions are exact: the calendar
is a list of working intervals in which a moment or an amount of working time is looked up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.workflow.evaluation.calendar_settings import (
    FIRST_YEAR,
    LAST_YEAR,
    WEEKDAYS,
    CalendarSettings,
    holidays_of,
    minutes_of,
)
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR
from opus_pipelines.workflow.evaluation.success import Floats


@dataclass(frozen=True)
class Calendar:
    """A list of working intervals in order, each (n,) in ms; `worked_ms` is the working time before each start."""

    starts_ms: Floats
    ends_ms: Floats
    worked_ms: Floats

    @classmethod
    def of(cls, settings: CalendarSettings) -> "Calendar":
        """Returns the calendar of these settings; equal settings give the same object, because it is a long list."""
        return _written_out(settings)

    @property
    def day_hours(self) -> float:
        """The median hours of a working day."""
        return float(np.median(self.ends_ms - self.starts_ms)) / MS_PER_HOUR

    def working_ms(self, moments: Floats) -> Floats:
        """Returns the working time from the beginning of the calendar up to each moment."""
        place = np.maximum(np.searchsorted(self.starts_ms, moments, "right") - 1, 0)
        inside = np.clip(moments, self.starts_ms[place], self.ends_ms[place]) - self.starts_ms[place]
        return np.asarray(self.worked_ms[place] + inside)

    def moments_ms(self, worked: Floats) -> Floats:
        """Returns the moment at which so much working time has passed since the beginning of the calendar.

        Where a working day ends exactly there, it is the end of that day and not the beginning of the next one.
        """
        place = np.clip(np.searchsorted(self.worked_ms, worked, "left") - 1, 0, None)
        return np.asarray(self.starts_ms[place] + (worked - self.worked_ms[place]))

    def is_working(self, moments: Floats) -> NDArray[np.bool_]:
        """Returns which moments are working time."""
        place = np.maximum(np.searchsorted(self.starts_ms, moments, "right") - 1, 0)
        return np.asarray((moments >= self.starts_ms[place]) & (moments < self.ends_ms[place]))

    def after(self, moments: Floats, working_ms: Floats) -> Floats:
        """Returns the moment at which so much working time has passed since each of these moments."""
        done = self.moments_ms(self.working_ms(moments) + working_ms)
        return np.where(working_ms > 0, done, moments)

    def arrivals(self, shares: Floats, year: int) -> Floats:
        """Returns moments spread evenly over the working time of a year: share 0 is its beginning, 1 its end."""
        first, last = (self.working_ms(np.array([_utc_ms(datetime(y, 1, 1, tzinfo=UTC))]))[0] for y in (year, year + 1))
        return self.moments_ms(first + shares * (last - first))


@lru_cache(8)
def _written_out(settings: CalendarSettings) -> Calendar:
    spans = np.array(list(_intervals(settings)), dtype=np.float64)
    lengths = spans[:, 1] - spans[:, 0]
    return Calendar(spans[:, 0], spans[:, 1], np.cumsum(lengths) - lengths)


def _intervals(settings: CalendarSettings) -> Iterator[tuple[float, float]]:
    zone, (first, last) = ZoneInfo(settings.timezone), minutes_of(settings.working_hours)
    days = {WEEKDAYS.index(name) for name in settings.working_days}
    dates = {date.fromisoformat(text) for text in settings.holidays if text[:4].isdigit()}
    countries = [text for text in settings.holidays if not text[:4].isdigit()]
    day = date(FIRST_YEAR, 1, 1)
    free: set[date] = set()
    while day.year <= LAST_YEAR:
        if (day.month, day.day) == (1, 1):
            free = dates.union(*(holidays_of(code, day.year) for code in countries))
        if day.weekday() in days and day not in free:
            midnight = datetime(day.year, day.month, day.day)
            start, end = (_utc_ms((midnight + timedelta(minutes=m)).replace(tzinfo=zone)) for m in (first, last))
            if end > start:
                yield start, end
        day += timedelta(days=1)


def _utc_ms(moment: datetime) -> float:
    return moment.timestamp() * 1000
