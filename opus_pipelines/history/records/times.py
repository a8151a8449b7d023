"""Converts times as sources write them to microseconds since 1970 in UTC.

A time without a zone is read in the source's `timezone`; without that setting it is refused, never guessed. In the hour
that the clock repeats in autumn, the first occurrence counts. In the hour that it skips in spring, the offset before
the gap applies: 02:30 is then the moment at which the clock shows 03:30. Seconds, milliseconds and microseconds since
1970 are in UTC by definition.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from opus_pipelines.history.records.values import BadValueError, shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = (
    (end - _EPOCH) // _MICROSECOND for end in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
_CLOCK = (
    r"(?:[T, ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6})\d*)?)?\s*([AaPp][Mm])?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})" + _CLOCK)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})" + _CLOCK)
_NAMED = re.compile(r"(\d{1,2})[ -]([A-Za-z]{3})[a-z]*[ ,-]+(\d{4})" + _CLOCK)
EXCEL_DAYS = "excel"  # a `time_format`: days since 1899-12-30 as spreadsheets count them, 45719.3125 or 45719,3125
_EXCEL_DAY, _EXCEL_FIRST = re.compile(r"(\d{5})(?:[.,](\d+))?"), datetime(1899, 12, 30)
_EXACT = 8  # decimals of a day from which it tells milliseconds; with fewer it is rounded to a second
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class TimeParser:
    """Reads the times of one file.

    `day_first` tells whether 03/04/2020 is in April; with None such a date is refused.
    """

    def __init__(self, timezone: str | None = None, formats: Sequence[str] = (), day_first: bool | None = None) -> None:
        self._zone = ZoneInfo(timezone) if timezone else None
        self._formats = formats
        self.day_first = day_first

    def __call__(self, value: Any) -> int:
        """Returns microseconds since 1970. Raises BadValueError with code bad_time, no_timezone or ambiguous_time."""
        try:
            moment = _iso(value) if not self._formats else None
            if moment is None:
                moment = self._moment(value)
            if moment.tzinfo is None:
                if self._zone is None:
                    raise BadValueError(
                        "no_timezone", f'{shown(value)} states no time zone; timezone = "..." in source.toml says which'
                    )
                moment = moment.replace(tzinfo=self._zone)
            micros = (moment - _EPOCH) // _MICROSECOND
            if not _FIRST <= micros <= _LAST:
                raise OverflowError
            return micros
        except (OverflowError, OSError):
            raise BadValueError("bad_time", f"{shown(value)} is out of the range of times") from None

    def offset(self, clock: datetime) -> timedelta | None:
        """Returns by how much a clock without a zone is before UTC, or None if the source states no zone."""
        return None if self._zone is None else self._zone.utcoffset(clock)

    @property
    def fixed_offset(self) -> timedelta | None:
        """Returns the same where it is one for all times, as in UTC, else None."""
        return None if self._zone is None else self._zone.utcoffset(None)

    def _moment(self, value: Any) -> datetime:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadValueError("bad_time", f"{shown(value)} is no time")
        written = value.strip() if isinstance(value, str) else repr(value)
        for form in self._formats:
            if form == EXCEL_DAYS and (match := _EXCEL_DAY.fullmatch(written)):
                return excel_day(match[1], match[2] or "")
            try:
                return datetime.strptime(written, form)
            except ValueError:
                continue
        if re.fullmatch(r"-?\d+(\.\d+)?", written):
            return _from_digits(written)
        try:
            return datetime.fromisoformat(
                re.sub(r" ?(UTC|GMT)$", "+00:00", written) if written[-1:] in "CT" else written
            )
        except ValueError:
            return self._from_usual(written)

    def _from_usual(self, written: str) -> datetime:
        try:
            if match := _YEAR_FIRST.fullmatch(written):
                return _combined(int(match[1]), int(match[3]), int(match[4]), match.groups()[4:])
            if (match := _NAMED.fullmatch(written)) and match[2].lower() in _MONTHS:
                return _combined(int(match[3]), _MONTHS.index(match[2].lower()) + 1, int(match[1]), match.groups()[3:])
            if match := _NUMERIC.fullmatch(written):
                day, month = self._day_and_month(int(match[1]), int(match[3]), match[2], written)
                return _combined(int(match[4]), month, day, match.groups()[4:])
        except BadValueError:
            raise
        except ValueError:
            pass  # falls through to the one refusal below: no such day or hour
        raise BadValueError(
            "bad_time",
            f"{shown(written)} is no time that can be read; time_format in source.toml says how it is written",
        )

    def _day_and_month(self, first: int, second: int, separator: str, written: str) -> tuple[int, int]:
        day_first = True if separator == "." else self.day_first
        if day_first is None:
            if first <= 12 and second <= 12 and first != second:
                raise BadValueError(
                    "ambiguous_time",
                    f"{shown(written)} may be day or month first; time_format in source.toml says which",
                )
            day_first = second <= 12
        return (first, second) if day_first else (second, first)


def _iso(value: Any) -> datetime | None:
    """Reads an ISO time that begins with its year, which is the most frequent form. Returns None for any other form."""
    if isinstance(value, str) and value[4:5] == "-":
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None


def day_comes_first(values: Iterable[str]) -> bool | None:
    """Returns the order of d/m/Y or m/d/Y dates that a whole column shows.

    The result is True, False, or None if the column shows neither order or both.
    """
    shown = set()
    for value in values:
        match = _NUMERIC.fullmatch(value.strip())
        if match and (int(match[1]) > 12) != (int(match[3]) > 12):
            shown.add(int(match[1]) > 12)
    return shown.pop() if len(shown) == 1 else None


def is_numeric_date(value: str) -> bool:
    """Tells whether the value has the form of 03/04/2020, whose order of day and month the column must show."""
    match = _NUMERIC.fullmatch(value.strip())
    return match is not None and match[2] != "."


def excel_day(days: str, part: str) -> datetime:
    """Returns the moment of a day as spreadsheets count it, without a zone; `part` are its decimals."""
    unit = 1_000 if len(part) >= _EXACT else 1
    units = round(float(f"0.{part or 0}") * 86_400 * unit)
    return _EXCEL_FIRST + timedelta(days=int(days), seconds=units / unit)


def _from_digits(written: str) -> datetime:
    if re.fullmatch(r"(19|20)\d{6}(\d{6})?", written):
        try:
            return datetime.strptime(written, "%Y%m%d" if len(written) == 8 else "%Y%m%d%H%M%S")
        except ValueError:
            pass  # digits that are no calendar day may still be seconds
    digits = len(written.lstrip("-").split(".")[0])
    if not 8 <= digits <= 17:
        raise BadValueError("bad_time", f"{shown(written)} is no time that can be read")
    unit = 1 if digits <= 11 else 1_000 if digits <= 14 else 1_000_000
    whole, _, part = written.partition(".")
    micros = int(whole) * (1_000_000 // unit) + (round(float(f"0.{part}") * (1_000_000 // unit)) if part else 0)
    return _EPOCH + timedelta(microseconds=micros)


def _combined(year: int, month: int, day: int, clock: Sequence[str | None]) -> datetime:
    hour, minute, second, fraction, half, zone = clock
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            raise ValueError("no such hour")
        hours = hours % 12 + (12 if half.lower() == "pm" else 0)
    naive = datetime(year, month, day, hours, int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")))
    if zone is None:
        return naive
    return datetime.fromisoformat(naive.isoformat() + ("+00:00" if zone in {"Z", "UTC", "GMT"} else zone))
