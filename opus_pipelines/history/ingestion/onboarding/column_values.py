"""Classifies the values of a column: times (format, with or without zone), amounts of money, decimal signs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from opus_pipelines.history.ingestion.onboarding.column_words import names_role
from opus_pipelines.history.ingestion.onboarding.table_sample import Column
from opus_pipelines.history.records.money import Money
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.times import EXCEL_DAYS, TimeParser, day_comes_first
from opus_pipelines.history.records.values import BadValueError

LOOKED_AT = 5_000  # distinct values of a column
FIRST_LOOK = 50
MOSTLY = 0.9
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
# Dates that the readers accept only with a stated format: two-digit years, months in words, time before date.
_DAY_FIRST = ("%d.%m.%y", "%d/%m/%y", "%d-%m-%y")
_MONTH_FIRST = ("%m/%d/%y", "%m-%d-%y")
_NEUTRAL = ("%d-%b-%y", "%d/%b/%y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%Y%m%d", "%y-%m-%d")
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])(\d{6})?|1\d{9}(\d{3}|\d{6})?(\.\d+)?")
_EXCEL_DAY = re.compile(r"(\d{5})(?:[.,](\d+))?")
_FIRST_EXCEL_DAY, _LAST_EXCEL_DAY = 29_221, 65_746  # 1980 to 2079
MONEY_DECIMALS = 2  # an amount has so many; a time of day needs more
_COMMA = re.compile(r"[^\d,.]*\d{1,3}(?:[.\s']?\d{3})*,\d{1,2}[^\d,.]*")
_POINT = re.compile(r"[^\d,.]*\d{1,3}(?:[,\s']?\d{3})*\.\d+[^\d,.]*")

_GROUPED = re.compile(r"[^\d,.]*\d{1,3}(?:,\d{3})+\.\d+[^\d,.]*")


@dataclass(frozen=True)
class TimeValues:
    """How a column of times is written.

    `readable` is the share of its values that are times. `formats` are those that `time_format` must state, and
    `guessed` those among them that rest on the country's custom and not on the values. `states_zone`: every value
    states its zone.
    """

    readable: float
    formats: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    states_zone: bool = True


def time_values(column: Column, day_first_usual: bool = True) -> TimeValues:
    """Returns how the times of a column are written.

    `day_first_usual` is the order of day and month that applies if the column itself does not show it.
    """
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    if values and _are_excel_days(column.name, values):
        return TimeValues(1.0, (EXCEL_DAYS,), states_zone=False)
    if not values or _are_plain_numbers(values):
        return TimeValues(0.0)
    if len(values) > FIRST_LOOK and _times_of(values[:FIRST_LOOK], day_first_usual).readable < MOSTLY / 2:
        return TimeValues(0.0)  # most columns hold no times, and trying every form on all their values takes long
    return _times_of(values, day_first_usual)


def _times_of(values: Sequence[str], day_first_usual: bool) -> TimeValues:
    shown = day_comes_first(values)
    formats, guessed = [], []
    left = _unread(values, TimeParser("UTC", (), shown))
    ambiguous = [value for value in left if re.match(r"\d{1,2}[/-]\d{1,2}[/-]\d{4}", value)]
    if ambiguous:
        chosen = _formats(ambiguous, ("%d/%m/%Y", "%d-%m-%Y") if day_first_usual else ("%m/%d/%Y", "%m-%d-%Y"))
        formats, guessed = list(chosen), list(chosen)
    others = [value for value in left if value not in set(ambiguous)]
    two_digits = _two_digit_years(others, day_first_usual if shown is None else shown)
    formats += _formats(others, (*two_digits, *_NEUTRAL))
    still = _unread(values, TimeParser("UTC", formats, shown))
    readable = 1 - len(still) / len(values)
    zoned = not _unread([value for value in values if value not in set(still)], TimeParser(None, formats, shown))
    return TimeValues(readable, tuple(formats), tuple(guessed), zoned)


def _two_digit_years(values: Sequence[str], day_first: bool) -> tuple[str, ...]:
    """Returns the formats of dates such as 3/25/17: with day or month first, as the values show, else as is usual."""
    shown = set()
    for value in values:
        match = re.match(r"(\d{1,2})[/.-](\d{1,2})[/.-]\d{2}\b", value)
        if match and (int(match[1]) > 12) != (int(match[2]) > 12):
            shown.add(int(match[1]) > 12)
    first = shown.pop() if len(shown) == 1 else day_first
    return (*_DAY_FIRST, *_MONTH_FIRST) if first else (*_MONTH_FIRST, *_DAY_FIRST)


def _are_excel_days(name: str, values: Sequence[str]) -> bool:
    """Tells whether a column that is named as a time has days as spreadsheets count them, most with a time of day."""
    if not any(names_role(name, role) for role in ("time", "start", "end")):
        return False
    days = [match for value in values if (match := _EXCEL_DAY.fullmatch(value))]
    is_recent = all(_FIRST_EXCEL_DAY <= int(match[1]) <= _LAST_EXCEL_DAY for match in days)
    of_clocks = sum(len(match[2] or "") > MONEY_DECIMALS for match in days)
    return len(days) == len(values) and is_recent and of_clocks > len(days) / 2


def _are_plain_numbers(values: Sequence[str]) -> bool:
    """Tells whether the values are numbers, but neither calendar days nor seconds since 1970 of the last decades."""
    numbers = [value for value in values if re.fullmatch(r"-?\d+(\.\d+)?", value)]
    if len(numbers) < MOSTLY * len(values):
        return False
    moments = [value for value in numbers if _DIGITS.fullmatch(value)]
    return len(moments) < len(values)


def _unread(values: Iterable[str], parse: TimeParser) -> list[str]:
    left = []
    for value in values:
        try:
            parse(value)
        except BadValueError:
            left.append(value)
    return left


def _formats(values: Sequence[str], dates: Sequence[str]) -> tuple[str, ...]:
    """Returns the fewest formats, tried in this order, that read as many of the values as possible."""
    left, chosen = list(values), []
    for form in [date + clock for date in dates for clock in _CLOCKS]:
        rest = [value for value in left if not _fits(value, form)]
        if len(rest) < len(left):
            chosen.append(form)
            left = rest
    return tuple(chosen)


def _fits(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class MoneyValues:
    """Amounts of a column.

    `readable` is the share of its values that are amounts with this decimal sign. `currencies` are the signs or letters
    written in them, most frequent first.
    """

    readable: float
    decimal: str | None
    currencies: tuple[str, ...]


def money_values(column: Column) -> MoneyValues:
    """Returns how the values of the column are written as amounts of money."""
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    if not values:
        return MoneyValues(0.0, None, ())
    commas, points = (sum(pattern.fullmatch(value) is not None for value in values) for pattern in (_COMMA, _POINT))
    # A point is the sign of every program; it is stated only where commas group thousands, which are refused otherwise.
    is_grouped = any(_GROUPED.fullmatch(value) for value in values)
    decimal = "," if commas > points else "." if is_grouped else None
    money = Money(SourceSettings(decimal=decimal))
    counts: dict[str, int] = {}
    bad = 0
    for value in values:
        try:
            amount = money.read(value)
        except BadValueError:
            bad += 1
        else:
            if re.search(r"[^\d\s.,+'-]", value):
                counts[amount.currency] = counts.get(amount.currency, 0) + 1
    return MoneyValues(1 - bad / len(values), decimal, tuple(sorted(counts, key=lambda code: (-counts[code], code))))
