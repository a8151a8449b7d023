"""The `[calendar]` table of contract.toml, checked where it is read; no array library is loaded for it."""

import re
from datetime import date
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field

from opus_pipelines.core.settings import Section

FIRST_YEAR, LAST_YEAR = 1990, 2060
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


DAY_MINUTES = 24 * 60


_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


def _zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError(f'{name!r} is no time zone; write one of the IANA database, such as "Europe/Amsterdam"')
    return name


def _hours(text: str) -> str:
    start, end = minutes_of(text)
    if not 0 <= start < end <= DAY_MINUTES:
        raise ValueError(
            f'working_hours {text!r}: write the first and the last hour of a working day, such as "09:00-17:00"'
        )
    return text


def _weekday(name: str) -> str:
    if name.lower()[:3] not in WEEKDAYS:
        raise ValueError(f"{name!r} is no day of the week; write {', '.join(WEEKDAYS)}")
    return name.lower()[:3]


def _holiday(text: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        holidays_of(text, FIRST_YEAR)
        return text
    date.fromisoformat(text)
    return text


class CalendarSettings(Section):
    """When the people of a contract work. No `[calendar]` table: they work around the clock, as far as anyone knows."""

    timezone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", description="time zone of the working hours, such as Europe/Amsterdam"
    )
    working_hours: Annotated[str, AfterValidator(_hours)] = Field(
        "09:00-17:00", description="of every working day, local time"
    )
    working_days: tuple[Annotated[str, AfterValidator(_weekday)], ...] = Field(
        WEEKDAYS[:5], min_length=1, description="days of the week"
    )
    holidays: tuple[Annotated[str, AfterValidator(_holiday)], ...] = Field(
        (),
        description='dates on which nobody works ("2026-12-24"), countries or parts of them with their public holidays '
        '("NL", "DE-BY")',
    )


def minutes_of(text: str) -> tuple[int, int]:
    """Returns the first and the last minute of a working day. Raises ValueError for a text that is no working hours."""
    match = _HOURS.fullmatch(text.replace(" ", ""))
    if not match or int(match[2]) > 59 or int(match[4]) > 59:
        raise ValueError(f'{text!r} are no working hours; write them as "09:00-17:00"')
    return int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])


def holidays_of(code: str, year: int) -> set[date]:
    """Returns the public holidays of a country ("NL") or one of its parts ("DE-BY"). Raises ValueError for others."""
    import holidays

    country, _, part = code.upper().partition("-")
    try:
        return set(holidays.country_holidays(country, subdiv=part or None, years=year))
    except NotImplementedError:
        raise ValueError(
            f'{code!r} is neither a date ("2026-12-24") nor a country or part of one whose public holidays are known '
            '("NL", "DE-BY")'
        ) from None
