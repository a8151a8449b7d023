"""Times as exports of several countries write them: calendar digits, hours in words, months by name, two columns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample, with_joined_times
from opus_pipelines.history.records.values import BadValueError, TimeParser


def read(written: str, day_first: bool | None = None) -> str:
    moment = datetime.fromtimestamp(TimeParser("UTC", (), day_first)(written) / 1e6, UTC)
    return moment.isoformat(timespec="milliseconds")[:23].replace("T", " ").removesuffix(".000")


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("202403010900", "2024-03-01 09:00:00"),
        ("2024030109", "2024-03-01 09:00:00"),
        ("20240301090005", "2024-03-01 09:00:05"),
        ("20240301090000123", "2024-03-01 09:00:00.123"),
        ("20240301090000123456", "2024-03-01 09:00:00.123"),
        ("20240301090000.5", "2024-03-01 09:00:00.500"),
        ("20240301090000,5", "2024-03-01 09:00:00.500"),
        ("15032024", "2024-03-15 00:00:00"),
        ("20032024", "2024-03-20 00:00:00"),
        ("19032024", "2024-03-19 00:00:00"),
        ("200320241430", "2024-03-20 14:30:00"),
        ("150320240905", "2024-03-15 09:05:00"),
        ("1709283600", "2024-03-01 09:00:00"),
        ("1709283600123", "2024-03-01 09:00:00.123"),
        ("1709283600123456", "2024-03-01 09:00:00.123"),
        ("1709283600123456789", "2024-03-01 09:00:00.123"),
        ("04.08.2016 9.05 Uhr", "2016-08-04 09:05:00"),
        ("04.08.2016 14:05:00 Uhr", "2016-08-04 14:05:00"),
        ("4. August 2016 um 9 Uhr", "2016-08-04 09:00:00"),
        ("Mo, 14.3.2016 9:05", "2016-03-14 09:05:00"),
        ("14/08/2016 23h24", "2016-08-14 23:24:00"),
        ("4 août 2016 à 14h05", "2016-08-04 14:05:00"),
        ("04-Mär-2024 10:00", "2024-03-04 10:00:00"),
        ("1 de marzo de 2024 9:05 h", "2024-03-01 09:05:00"),
        ("12 mrt 2024 14.05 uur", "2024-03-12 14:05:00"),
        ("13/03/2024 14u05", "2024-03-13 14:05:00"),
        ("13/03/2024 2:05 p. m.", "2024-03-13 14:05:00"),
        ("March 1, 2024 9:05 PM", "2024-03-01 21:05:00"),
        ("1 março 2024 09h05", "2024-03-01 09:05:00"),
        ("1 giugno 2024 ore 9.05", "2024-06-01 09:05:00"),
        ("2024-03-01 9h", "2024-03-01 09:00:00"),
        ("2024-03-01 9:05", "2024-03-01 09:05:00"),
        ("20240301 0905", "2024-03-01 09:05:00"),
        ("Fri, 01 Mar 2024 09:05:00 GMT", "2024-03-01 09:05:00"),
    ],
)
def test_times_that_are_read(written: str, moment: str) -> None:
    assert read(written) == moment


@pytest.mark.parametrize(
    "written",
    [
        "4500012345",
        "20243103",
        "12345678",
        "123456789",
        "12345678901",
        "240301090000",
        "99999999999999",
        "-1709283600",
        "0103202409",
        "1709283600123456789012",
        "Order 20240301",
        "25h99",
        "4 jui 2024",
    ],
)
def test_digits_and_words_that_are_no_time(written: str) -> None:
    with pytest.raises(BadValueError) as caught:
        read(written)
    assert caught.value.code == "bad_time"


@pytest.mark.parametrize(("written", "day_first"), [("01032024", True), ("03012024", False), ("010320240000", True)])
def test_the_column_shows_what_calendar_digits_with_the_year_last_mean(written: str, day_first: bool) -> None:
    with pytest.raises(BadValueError) as caught:
        read(written)
    assert caught.value.code == "ambiguous_time"
    assert read(written, day_first) == "2024-03-01 00:00:00"


def test_a_column_of_days_in_digits_shows_its_order(bench: Any) -> None:
    rows = ["1,A,01032024", "1,B,15032024", "2,A,20032024"]
    cases = bench.one("log.csv", "case_id,activity,timestamp\n" + "\n".join(rows) + "\n", 'timezone = "UTC"')[0]
    assert [t["started_at"].isoformat()[:10] for t in cases["1"]["tasks"]] == ["2024-03-01", "2024-03-15"]


TWO = """timezone = "UTC"
[columns]
start = ["Datum Beginn", "Uhrzeit Beginn"]
end = ["Datum Ende", "Uhrzeit Ende"]
"""


@pytest.mark.parametrize("padding", [0, 2_000])
@pytest.mark.parametrize(
    "clock", ["09h05", "9:05", "9.05 Uhr", "0905", "905", "090500", "09:05 AM", "1899-12-30T09:05:00"]
)
def test_the_day_and_the_hour_stand_in_two_columns(bench: Any, clock: str, padding: int) -> None:
    rows = [f"1,A,14/08/2016,{clock},14/08/2016,11:05", "1,B,15/08/2016,,,", f"1,C,N/A,{clock},,"]
    rows += [f"p{n},A,14/08/2016,{clock},14/08/2016,11:05" for n in range(padding)]
    header = "case_id,activity,Datum Beginn,Uhrzeit Beginn,Datum Ende,Uhrzeit Ende"
    cases, rejects, _ = bench.one("log.csv", "\n".join([header, *rows, ""]), TWO)
    first, second, third = cases["1"]["tasks"]
    assert (first["started_at"].isoformat()[:16], first["duration_ms"]) == ("2016-08-14T09:05", 7_200_000.0)
    assert (second["started_at"].isoformat()[:16], second["ended_at"]) == ("2016-08-15T00:00", None)
    assert (third["started_at"], third["attributes"], rejects) == (None, [], [])


def table(header: str, *rows: str) -> TableSample:
    values = zip(*(row.split(",") for row in rows), strict=True)
    return TableSample({n: Column(n, v) for n, v in zip(header.split(","), values, strict=True)}, len(rows))


@pytest.mark.parametrize(
    ("header", "row", "joined"),
    [
        (
            "Date début,Heure début,Date fin,Heure fin",
            "14/08/2016,11h39,14/08/2016,11h50",
            ["Date début Heure début", "Date fin Heure fin"],
        ),
        (
            "Startdatum,Startzeit,Enddatum,Endzeit",
            "14.08.2016,11:39,14.08.2016,11:50",
            ["Startdatum Startzeit", "Enddatum Endzeit"],
        ),
        ("Datum,Uhrzeit", "14.08.2016,9.05 Uhr", ["Datum Uhrzeit"]),
        ("Uhrzeit,Datum", "11:39,20160814", ["Datum Uhrzeit"]),
        ("Fecha,Hora", "14/08/2016,11:39:00", ["Fecha Hora"]),
        ("datum,tijd,omschrijving", "14-08-2016,14.05,x", ["datum tijd"]),
        ("ERDAT,ERZET,ora", "20160814,x,090500", ["ERDAT ora"]),
        ("Date,Start hour,End hour", "2016-08-14,09:05,10:05", ["Date Start hour", "Date End hour"]),
        ("Date,Amount", "2016-08-14,9.05", []),
        ("Date,Duration", "2016-08-14,01:30", []),
        ("When,Shift start", "2016-08-14 09:05,06:00", []),
    ],
)
def test_which_columns_are_joined(header: str, row: str, joined: list[str]) -> None:
    sample, pairs = with_joined_times(table(header, row, row))
    assert list(pairs) == joined
    assert set(sample.header) == set(header.split(",")) - {part for pair in pairs.values() for part in pair} | set(
        joined
    )
