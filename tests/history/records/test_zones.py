"""A time without a zone is refused in every format, or read in the zone that the source states; nothing is guessed."""

import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.history_fixtures import Bench

WITHOUT = "2020-07-04 12:00:00"


def parquet(moments: pa.Array) -> bytes:
    packed = io.BytesIO()
    pq.write_table(pa.table({"case": ["1"], "activity": ["A"], "time": moments}), packed)
    return packed.getvalue()


def ocel(time: str) -> str:
    return json.dumps(
        {
            "objects": [{"id": "1", "type": "o"}],
            "events": [{"type": "A", "time": time, "relationships": [{"objectId": "1"}]}],
        }
    )


def xes(time: str) -> str:
    return (
        '<log><trace><string key="concept:name" value="1"/><event><string key="concept:name" value="A"/>'
        f'<date key="time:timestamp" value="{time}"/></event></trace></log>'
    )


NAIVE = {
    "log.csv": f"case,activity,time\n1,A,{WITHOUT}\n",
    "log.jsonl": json.dumps({"id": "1", "tasks": [{"activity": "A", "time": WITHOUT}]}),
    "log.xes": xes(WITHOUT.replace(" ", "T")),
    "log.ocel.json": ocel(WITHOUT),
    "log.parquet": parquet(pa.array([datetime(2020, 7, 4, 12)], pa.timestamp("us"))),
}
DATES = {"log.csv": "case,activity,time\n1,A,2020-07-04\n", "log.parquet": parquet(pa.array([18447], pa.date32()))}
STATED = {
    "log.csv": "case,activity,time\n1,A,2020-07-04 12:00:00+01:00\n",
    "log.jsonl": json.dumps({"id": "1", "tasks": [{"activity": "A", "time": 1593860400}]}),
    "log.xes": xes("2020-07-04T12:00:00+01:00"),
    "log.ocel.json": ocel("2020-07-04T11:00:00Z"),
    "log.parquet": parquet(pa.array([1593860400], pa.timestamp("s", "Asia/Tokyo"))),
}


@pytest.mark.parametrize("name", NAIVE)
def test_a_time_without_zone_is_refused(bench: Bench, name: str) -> None:
    cases, rejects, _ = bench.one(name, NAIVE[name])
    assert cases == {}
    (row,) = rejects
    assert row["reason_code"] == "no_timezone"
    assert 'timezone = "..." in source.toml says which' in row["reason"]


@pytest.mark.parametrize("name", NAIVE)
def test_or_read_in_the_zone_that_the_source_states(bench: Bench, name: str) -> None:
    cases, rejects, _ = bench.one(name, NAIVE[name], 'timezone = "America/New_York"')
    assert rejects == []
    assert cases["1"]["started_at"] == datetime(2020, 7, 4, 16, tzinfo=UTC)


@pytest.mark.parametrize("name", DATES)
def test_a_date_alone_is_the_start_of_the_day_there(bench: Bench, name: str) -> None:
    assert bench.one(name, DATES[name])[1][0]["reason_code"] == "no_timezone"
    bench.put("t/source.toml", 'timezone = "America/New_York"')
    bench.put(f"t/{name}", DATES[name])
    assert bench.cases("t")["1"]["started_at"] == datetime(2020, 7, 4, 4, tzinfo=UTC)


@pytest.mark.parametrize("name", STATED)
def test_a_zone_that_the_time_states_wins(bench: Bench, name: str) -> None:
    cases, rejects, _ = bench.one(name, STATED[name], 'timezone = "America/New_York"')
    assert rejects == []
    assert cases["1"]["started_at"] == datetime(2020, 7, 4, 11, tzinfo=UTC)


def test_hours_that_a_clock_skips_and_repeats(bench: Bench) -> None:
    times = [
        "2020-03-29 01:59:59",
        "2020-03-29 02:30:00",
        "2020-03-29 03:30:00",
        "2020-10-25 02:30:00",
        "2020-10-25 03:00:00",
    ]
    content = "case,activity,time\n" + "".join(f"{n},A,{time}\n" for n, time in enumerate(times))
    cases, rejects, _ = bench.one("log.csv", content, 'timezone = "Europe/Amsterdam"')
    assert rejects == []
    assert [f"{cases[str(n)]['started_at']:%m-%d %H:%M:%S}" for n in range(5)] == [
        "03-29 00:59:59",
        "03-29 01:30:00",
        "03-29 01:30:00",
        "10-25 00:30:00",
        "10-25 02:00:00",
    ]


def test_an_impossible_zone_refuses_the_source_and_names_the_nearest(bench: Bench) -> None:
    bench.put("s/source.toml", 'timezone = "Europe/Amstrdam"')
    bench.put("s/log.csv", NAIVE["log.csv"])
    (line,) = bench.read().failed
    assert "'Europe/Amstrdam'" in line
    assert "did you mean Europe/Amsterdam?" in line
