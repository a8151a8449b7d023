"""A source that grew: mining the changed cases only gives, to the last bit, what mining all cases gives."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Spark
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.estimates.aggregate_columns import AGGREGATES, KEYS, summed
from opus_pipelines.wkg.rebuild import aggregates
from opus_pipelines.wkg.rebuild.aggregates import SourcePart, mine_missing

START = datetime(2020, 1, 1, tzinfo=UTC)
ALWAYS_SPARK = Spark(mine_from_mib=0)
_SMALL = st.integers(0, 3)
_TIMES = st.none() | st.integers(0, 5).map(lambda n: START + timedelta(hours=n))


def edge(src: str, dst: str, times: int, wait: int | None, seen: datetime | None) -> dict[str, Any]:
    return {
        "src": src,
        "dst": dst,
        "transitions": times,
        "implementations": 1,
        "wait_sum": None if wait is None else Decimal(wait),
        "wait_n": 0 if wait is None else 1,
        "first_seen": seen,
        "last_seen": seen,
    }


EDGES = st.lists(
    st.builds(edge, st.sampled_from("ab"), st.sampled_from("ab"), st.integers(1, 3), st.none() | _SMALL, _TIMES),
    min_size=1,
    max_size=3,
)


def added_up(cases: list[list[dict[str, Any]]], name: str) -> pa.Table:
    table = pa.Table.from_pylist([row for case in cases for row in case], schema=AGGREGATES[name])
    return summed(table, KEYS[name])


@pytest.mark.long
@given(st.lists(EDGES, max_size=6), st.lists(EDGES, max_size=6), st.data())
@settings(max_examples=300, deadline=None)
def test_taking_away_and_adding_is_adding_up_anew_or_is_refused(
    before: list[list[dict[str, Any]]], came: list[list[dict[str, Any]]], data: Any
) -> None:
    gone = data.draw(st.integers(0, len(before)))
    made = aggregates.combined(
        "edges",
        KEYS["edges"],
        aggregates.Delta(*(added_up(part, "edges") for part in (before, before[:gone], came))),
        most_texts=64,
    )
    expected = added_up(before[gone:] + came, "edges")
    if made is not None:
        assert made.sort_by([(key, "ascending") for key in KEYS["edges"]]).to_pylist() == expected.to_pylist()
    elif gone == 0:
        pytest.fail("nothing was taken away, and yet it was refused")


def test_an_earliest_time_that_goes_is_mined_from_all_cases() -> None:
    tables = [
        added_up([[edge("a", "b", 1, 5, START + timedelta(hours=n))] for n in hours], "edges")
        for hours in ((0, 1, 2), (0,), (3,))
    ]
    assert aggregates.combined("edges", KEYS["edges"], aggregates.Delta(*tables), most_texts=64) is None
    again = added_up([[edge("a", "b", 2, 7, START)]], "edges")
    delta = aggregates.Delta(tables[0], tables[1], again)
    found = aggregates.combined("edges", KEYS["edges"], delta, most_texts=64)
    assert found is not None
    assert found.to_pylist() == [
        {
            "src": "a",
            "dst": "b",
            "transitions": 4,
            "implementations": 3,
            "first_seen": START,
            "last_seen": START + timedelta(hours=2),
        }
    ]


def test_a_full_list_of_texts_is_mined_from_all_cases() -> None:
    rows = [{"task_id": "t", "field": "input", "value": f"v{n}", "count": 1} for n in range(4)]
    old = pa.Table.from_pylist(rows, schema=AGGREGATES["texts"])
    none = old.slice(0, 0)
    assert (
        aggregates.combined("texts", KEYS["texts"], aggregates.Delta(old, none, old.slice(0, 1)), most_texts=4) is None
    )
    found = aggregates.combined(
        "texts", KEYS["texts"], aggregates.Delta(old, old.slice(1, 1), old.slice(0, 1)), most_texts=5
    )
    assert found is not None
    assert {row["value"]: row["count"] for row in found.to_pylist()} == {"v0": 2, "v2": 1, "v3": 1}


HEADER = "case_id,activity,start,end,resource,note,cost,case:client\n"


def day(number: int, draw: random.Random) -> str:
    """A day's export: new cases, further events of open ones, and a correction of an event of the day before."""
    rows = []
    for case in range(max(0, number - 2), number + 1):
        for place in range(4):
            at = START + timedelta(days=number, hours=6 * place + case % 5)
            end = at + timedelta(minutes=draw.randint(1, 90))
            who = draw.choice(["Ann", "Bob", ""])
            note = f"n{draw.randint(0, 9)}"
            rows.append(
                f"c{case},{draw.choice('ABC')},{at.isoformat()},{end.isoformat()},{who},{note},{place}.5,K{case % 2}\n"
            )
    return HEADER + "".join(rows)


class WatchedSession:
    """A Spark session that records how many rows the files of each read have."""

    def __init__(self, session: Any) -> None:
        self._session, self.rows_read = session, list[tuple[int, ...]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def read(self) -> "WatchedSession":
        return self

    def schema(self, schema: Any) -> "WatchedSession":
        self._schema = schema
        return self

    def parquet(self, *paths: str) -> Any:
        self.rows_read.append(tuple(pq.ParquetFile(path).metadata.num_rows for path in paths))
        return self._session.read.schema(self._schema).parquet(*paths)


@pytest.mark.spark
def test_every_night_mines_the_touched_cases_and_gives_the_aggregates_of_mining_all(tmp_path: Path, spark: Any) -> None:
    history, lake = tmp_path / "history", Lake(tmp_path / "lake")
    (history / "s").mkdir(parents=True)
    settings = (
        '[columns]\ntask_description = "note"\ncost = "cost"\nclient = "case:client"\nstart = "start"\nend = "end"\n'
    )
    (history / "s" / "source.toml").write_text(settings)
    watched = WatchedSession(spark)
    draw = random.Random(5)
    for number in range(11):
        (history / "s" / f"day_{number}.csv").write_text(day(number, draw))
        if number < 9:
            continue
        (source,) = read_history(lake, history, START, HistoryOptions(max_quarantined_share=0)).sources
        part = SourcePart("s", source.content, source.folder, tuple((None, key, f"t{key}") for key in "ABC"))
        watched.rows_read.clear()
        assert mine_missing(lake, [part], lambda: watched, ALWAYS_SPARK) == ["s"]
        if number == 9:
            assert set(watched.rows_read) == {(10,)}
            continue
        assert set(watched.rows_read) == {(2, 3)}  # two open cases go on, one is new
        fresh = Lake(tmp_path / f"fresh{number}")
        assert mine_missing(fresh, [part], lambda: spark, ALWAYS_SPARK) == ["s"]
        files = sorted(f.name for f in part.place(fresh).glob("*.parquet"))
        assert files == sorted(f.name for f in part.place(lake).glob("*.parquet"))
        assert len(files) >= 7
        for name in files:
            one, other = (pq.ParquetFile(part.place(place) / name).read() for place in (lake, fresh))
            assert one.num_rows > 0
            assert one.equals(other), name
