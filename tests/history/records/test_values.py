"""Numbers, booleans, lists and times as sources write them."""

from datetime import datetime
from typing import Any

import pytest

from opus_pipelines.history.records import values
from opus_pipelines.history.records.values import BadValueError, TimeParser, day_comes_first


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ({"colour": "red", "owner": {"name": "Ann"}}, ["colour", "owner"]),
        ([{"colour": "red"}, {"colour": "blue", "price": 3}], ["colour", "price"]),
        ('{"colour": "red", "price": null}', ["colour", "price"]),
        ("(True, {'colour': 'red', 'price': None})", ["colour", "price"]),
        ("[{'colour': 'red'}, 'Ann']", ["colour"]),
        ("True", []),
        ("Ann", []),
        ("(True, 'Ann')", []),
        ("{" * 5_000, []),
        (17.5, []),
    ],
)
def test_a_result_is_named_by_its_fields_alone(returned: Any, names: list[str]) -> None:
    assert values.field_names(returned) == names


def test_a_result_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadValueError, match="characters"):
        values.field_names("[" + "1," * values.LONGEST_TEXT + "1]")


def micros(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("2020-03-04T05:06:07.123456Z", "2020-03-04T05:06:07.123456+00:00"),
        ("2020-03-04T05:06:07+02:00", "2020-03-04T03:06:07+00:00"),
        ("2020-03-04 05:06:07 UTC", "2020-03-04T05:06:07+00:00"),
        ("2020-03-04T05:06:07,5+0200", "2020-03-04T03:06:07.5+00:00"),
        ("2020-03-04 05:06:07", "2020-03-04T04:06:07+00:00"),
        ("2020-07-04", "2020-07-03T22:00:00+00:00"),
        ("20200304", "2020-03-03T23:00:00+00:00"),
        ("20200304050607", "2020-03-04T04:06:07+00:00"),
        ("2020/3/4 05:06", "2020-03-04T04:06:00+00:00"),
        ("04.03.2020 05:06:07.5", "2020-03-04T04:06:07.5+00:00"),
        ("25/03/2020 05:06", "2020-03-25T04:06:00+00:00"),
        ("03/25/2020 5:06 PM", "2020-03-25T16:06:00+00:00"),
        ("03/25/2020 12:06 AM", "2020-03-24T23:06:00+00:00"),
        ("4 Mar 2020 05:06:07", "2020-03-04T04:06:07+00:00"),
        ("04-MAR-2020 05:06", "2020-03-04T04:06:00+00:00"),
        ("1583298367", "2020-03-04T05:06:07+00:00"),
        ("1583298367.25", "2020-03-04T05:06:07.25+00:00"),
        ("1583298367250", "2020-03-04T05:06:07.25+00:00"),
        (1583298367250, "2020-03-04T05:06:07.25+00:00"),
        (1583298367.25, "2020-03-04T05:06:07.25+00:00"),
        ("2020-10-25T02:30:00", "2020-10-25T00:30:00+00:00"),
        ("2020-03-29T02:30:00", "2020-03-29T01:30:00+00:00"),
        ("2020-03-29 03:30 +02:00", "2020-03-29T01:30:00+00:00"),
    ],
)
def test_times(written: Any, utc: str) -> None:
    assert TimeParser("Europe/Amsterdam")(written) == micros(utc)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("2020-03-04 05:06:07", "no_timezone"),
        ("2020-03-04", "no_timezone"),
        ("25.03.2020", "no_timezone"),
        ("03/04/2020 05:06", "ambiguous_time"),
        ("32/01/2020", "bad_time"),
        ("2020-13-01T00:00:00Z", "bad_time"),
        ("yesterday", "bad_time"),
        ("nan", "bad_time"),
        ("12", "bad_time"),
        ("9" * 5000, "bad_time"),
        (True, "bad_time"),
        ([1], "bad_time"),
        (float("nan"), "bad_time"),
        ("0001-01-01T00:00:00+14:00", "bad_time"),
        ("9999-12-31T23:59:59-14:00", "bad_time"),
    ],
)
def test_times_that_cannot_be_read(written: Any, code: str) -> None:
    with pytest.raises(BadValueError) as error:
        TimeParser()(written)
    assert error.value.code == code
    assert len(error.value.reason) < 200


def test_stated_formats_and_orders() -> None:
    assert TimeParser("UTC", ["%d/%m/%Y %H.%M"])("03/04/2020 05.06") == micros("2020-04-03T05:06:00+00:00")
    assert TimeParser("UTC", ["excel"])("45719,312500") == micros("2025-03-03T07:30:00+00:00")
    assert TimeParser("Europe/Berlin", ["excel"])("45719.33333333") == micros("2025-03-03T07:00:00+00:00")
    assert TimeParser("UTC", ["excel"])("45719") == micros("2025-03-03T00:00:00+00:00")
    assert TimeParser("UTC", day_first=True)("03/04/2020") == micros("2020-04-03T00:00:00+00:00")
    assert TimeParser("UTC", day_first=False)("03/04/2020") == micros("2020-03-04T00:00:00+00:00")


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (["01/02/2020", "25/02/2020"], True),
        (["01/02/2020", "02/25/2020 10:00"], False),
        (["01/02/2020"], None),
        (["25/02/2020", "02/25/2020"], None),
        (["", "x"], None),
    ],
)
def test_a_whole_column_shows_what_one_date_does_not(column: list[str], shown: bool | None) -> None:
    assert day_comes_first(column) is shown


@pytest.mark.parametrize(
    ("written", "decimal", "value"),
    [
        ("12.5", None, 12.5),
        (" $12.5 ", None, 12.5),
        ("1,234.5", ".", 1234.5),
        ("1.234,5", ",", 1234.5),
        (7, None, 7.0),
        ("1e3", None, 1000.0),
        ("1 234 567,5", ",", 1234567.5),
        ("1\u00a0234,5", ",", 1234.5),
        ("1'234.5", ".", 1234.5),
        ("12,34,567", ".", 1234567.0),
        (",5", ",", 0.5),
        ("-1.234", ",", -1234.0),
        ("1,5e3", ",", 1500.0),
    ],
)
def test_numbers(written: Any, decimal: str | None, value: float) -> None:
    assert values.number(written, decimal) == value


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("nan", "not_finite"),
        ("inf", "not_finite"),
        (float("nan"), "not_finite"),
        (10**400, "not_finite"),
        ("-1", "negative_number"),
        ("1,5", "bad_number"),
        ("x", "bad_number"),
        ("1_000", "bad_number"),
        ("1e300", "bad_number"),
        (1e13, "bad_number"),
        (True, "bad_number"),
        ([1], "bad_number"),
        ({}, "bad_number"),
    ],
)
def test_amounts_that_cannot_be_used(written: Any, code: str) -> None:
    with pytest.raises(BadValueError) as error:
        values.amount(written)
    assert error.value.code == code


def test_a_decimal_comma_is_named() -> None:
    with pytest.raises(BadValueError, match='decimal = ","'):
        values.number("12,50")


@pytest.mark.parametrize(
    ("written", "decimal"), [("1.23", ","), ("1,23", "."), ("1.2345,6", ","), ("1,234.5,6", "."), ("1.234,5.6", ",")]
)
def test_groups_that_are_no_thousands_are_refused(written: str, decimal: str) -> None:
    with pytest.raises(BadValueError, match="no number"):
        values.number(written, decimal)


def test_runs_that_a_record_stands_for() -> None:
    assert [values.weight(v) for v in (1, "12", 3.0)] == [1, 12, 3]
    for wrong in (0, "1.5", -1, 10**10, "many"):
        with pytest.raises(BadValueError):
            values.weight(wrong)


def test_booleans_and_kinds() -> None:
    assert [values.boolean(v) for v in ("Yes", "0", True, 1, "failed")] == [True, False, True, True, False]
    with pytest.raises(BadValueError, match="neither true nor false"):
        values.boolean("maybe")
    assert [values.actor_kind(v) for v in ("Employee", "LLM", "program", "dog")] == ["human", "model", "code", None]


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("a; b", ["a", "b"]),
        ('["a; b", 1]', ["a; b", "1"]),
        (["a", None, {"k": 1}], ["a", '{"k": 1}']),
        ("[broken", ["[broken"]),
        ("a", ["a"]),
    ],
)
def test_lists(written: Any, parts: list[str]) -> None:
    assert values.texts(written) == parts


def test_instructions_are_prose() -> None:
    assert values.instructions("Check it; then\n pay | refuse") == ["Check it; then", "pay | refuse"]


def test_nested_values() -> None:
    record = {"a": {"b": {"c": 1}}, "d": [1, {"e": 2}]}
    assert values.flatten(record) == {"a.b.c": 1, "d": [1, {"e": 2}]}
    assert values.at_path(record, "a.b.c") == 1
    assert values.at_path(record, "a.x.c") is None
