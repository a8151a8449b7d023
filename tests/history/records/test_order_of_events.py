"""Events of one time: a column, or the nanoseconds, order them; else their place in the file does."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample, order_column

ROWS = ["1,Pay,2024-03-01,3", "1,Register,2024-03-01,1", "1,Check,2024-03-01,2", "1,Close,2024-03-02,1"]
STEPS = ["Register", "Check", "Pay", "Close"]


@pytest.mark.parametrize("padding", [0, pytest.param(3_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("column", "stated"), [("sorting", ""), ("_SORTING", ""), ("Rang", '[columns]\norder = "Rang"\n')]
)
def test_a_column_orders_events_of_one_day(bench: Any, keys: Any, column: str, stated: str, padding: int) -> None:
    rows = [*ROWS, *(f"p{n},Register,2024-03-01,1" for n in range(padding))]
    content = "\n".join([f"case_id,activity,timestamp,{column}", *rows, ""])
    cases, rejects, _ = bench.one("log.csv", content, f'timezone = "UTC"\n{stated}')
    assert (keys(cases["1"]), rejects, cases["1"]["tasks"][0]["attributes"]) == (STEPS, [], [])


def test_the_same_in_xes_and_an_event_without_a_number_comes_last(bench: Any, keys: Any) -> None:
    time = '<date key="time:timestamp" value="2024-03-01T00:00:00Z"/>'
    event = f'<event><string key="concept:name" value="{{}}"/>{time}{{}}</event>'
    events = (
        event.format("B", '<int key="n" value="2"/>')
        + event.format("C", "")
        + event.format("A", '<int key="n" value="1"/>')
    )
    content = f'<log><trace><string key="concept:name" value="1"/>{events}</trace></log>'
    assert keys(bench.one("log.xes", content, '[columns]\norder = "n"\n')[0]["1"]) == ["A", "B", "C"]


@pytest.mark.parametrize("padding", [0, pytest.param(3_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("2024-01-01T09:00:00.000000002Z", "2024-01-01T09:00:00.000000001Z"),
        ("2024-01-01T09:00:00.0000012+00:00", "2024-01-01T09:00:00.0000011+00:00"),
        ("1709283600123456789", "1709283600123456788"),
    ],
)
def test_nanoseconds_keep_their_order(bench: Any, keys: Any, later: str, earlier: str, padding: int) -> None:
    rows = [f"1,Second,{later}", f"1,First,{earlier}", *(f"p{n},A,2024-01-01T00:00:00Z" for n in range(padding))]
    assert keys(bench.one("log.csv", "\n".join(["case_id,activity,timestamp", *rows, ""]))[0]["1"]) == [
        "First",
        "Second",
    ]


@pytest.mark.parametrize("padding", [0, 2_000])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_typed_nanoseconds_keep_their_order(bench: Any, keys: Any, zone: str | None, padding: int) -> None:
    times = pa.array([1_709_283_600_000_000_002, 1_709_283_600_000_000_001, *[0] * padding], pa.timestamp("ns", zone))
    ids, names = ["1", "1", *(f"p{n}" for n in range(padding))], ["Second", "First", *["A"] * padding]
    bench.put("s/source.toml", 'timezone = "UTC"')
    table = pa.table({"case_id": ids, "activity": names, "timestamp": times})
    pq.write_table(table, bench.history / "s" / "log.parquet", version="2.6")
    assert keys(bench.cases()["1"]) == ["First", "Second"]


@pytest.mark.parametrize(
    ("name", "numbers", "is_found"),
    [
        ("sorting", "3124", True),
        ("Reihenfolge", "3124", True),
        ("volgorde", "3124", True),
        ("Ordre", "3124", True),
        ("Order", "1112", False),
        ("Amount", "3124", False),
    ],
)
def test_init_finds_the_column_that_orders(name: str, numbers: str, is_found: bool) -> None:
    days = ("2024-03-01", "2024-03-01", "2024-03-01", "2024-03-02")
    values = {"case": ("1",) * 4, "step": tuple("PRCX"), "day": days, name: tuple(numbers)}
    sample = TableSample({key: Column(key, cells) for key, cells in values.items()}, 4)
    assert order_column(sample, "case", "day", ("case", "step", "day")) == (name if is_found else None)
