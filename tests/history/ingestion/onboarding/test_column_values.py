"""How the times and amounts of a column are written, from the values alone."""

import pytest

from opus_pipelines.history.ingestion.onboarding.table_sample import (
    Column,
    MoneyValues,
    TimeValues,
    money_values,
    time_values,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05+01:00"], TimeValues(1.0)),
        (["2024-01-02 03:04:05", "02.01.2024 03:04", "13/01/2024"], TimeValues(1.0, states_zone=False)),
        (["03/04/2024 10:00", "05/06/2024 11:30"], TimeValues(1.0, ("%d/%m/%Y %H:%M",), ("%d/%m/%Y %H:%M",), False)),
        (["3/25/17", "4/5/17"], TimeValues(1.0, ("%m/%d/%y",), (), False)),
        (["25.3.17 09:00", "5.4.17"], TimeValues(1.0, ("%d.%m.%y", "%d.%m.%y %H:%M"), (), False)),
        (["06/Jan/25 8:07 AM", "13/Mar/25 1:30 PM"], TimeValues(1.0, ("%d/%b/%y %I:%M %p",), (), False)),
        (["20240102", "20240103"], TimeValues(1.0, (), (), False)),
        (["1704163445", "1704163446.5"], TimeValues(1.0)),
        (["12345", "67890"], TimeValues(0.0)),
        (["35.0", "36.5"], TimeValues(0.0)),
        (["red", "blue"], TimeValues(0.0)),
        (["", " "], TimeValues(0.0)),
    ],
)
def test_times(values: list[str], expected: TimeValues) -> None:
    seen = time_values(Column("when", tuple(values)))
    assert TimeValues(seen.readable, seen.formats, seen.guessed, seen.states_zone or not seen.readable) == expected


@pytest.mark.parametrize(
    ("name", "values", "is_time"),
    [
        ("Zeitpunkt", ["45719,3125", "45720,41667"], True),
        ("Start", ["45719.3125", "45720"], False),  # half of them have a time of day
        ("Amount", ["45719.3125", "45720.41667"], False),
        ("time", ["45719.31", "45720.41"], False),  # as amounts are written
        ("time", ["12345.3125", "45720.41667"], False),  # a day of 1933
    ],
)
def test_days_as_spreadsheets_count_them_are_times_in_a_column_that_is_named_so(
    name: str, values: list[str], is_time: bool
) -> None:
    seen = time_values(Column(name, tuple(values)))
    assert (seen.readable, seen.formats) == ((1.0, ("excel",)) if is_time else (0.0, ()))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["9,17 €", "1.234,50 €"], MoneyValues(1.0, ",", ("EUR",))),
        (["$5.00", "1200.5"], MoneyValues(1.0, None, ("USD",))),
        (["9,17", "10"], MoneyValues(1.0, ",", ())),
        (["1,234.50", "10.00"], MoneyValues(1.0, ".", ())),
        (["$1,234,567.50", "8"], MoneyValues(1.0, ".", ("USD",))),
        (["8", "9"], MoneyValues(1.0, None, ())),
        (["low", "9"], MoneyValues(0.5, None, ())),
        ([], MoneyValues(0.0, None, ())),
    ],
)
def test_amounts(values: list[str], expected: MoneyValues) -> None:
    assert money_values(Column("cost", tuple(values))) == expected
