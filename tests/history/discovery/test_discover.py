"""Discovery by columns: the same edges, counts and rejects as the ordinary reading followed by mining."""

import csv
import gzip
import io
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import Spark, parse
from opus_pipelines.history.discovery.discover import Discovered, discover, discover_file
from opus_pipelines.history.formats import csv_log, parquet_log
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.formats import LOG_FORMATS
from opus_pipelines.history.records.raw import Reject
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.wkg.mining.engines import Source, mine_aggregates
from tests.campaigns import examples
from tests.made_logs import CLOCKS, SETTINGS, TYPED, tables, written

DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"
HEAD = "case_id,activity,timestamp,resource"


def made(number: int) -> settings:
    """Settings of a test with made logs, each of which writes over the files of the one before."""
    return settings(
        max_examples=examples(number), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def ordinary(content: bytes, kind: str, stated: SourceSettings, folder: Path) -> Any:
    """The rows of the aggregate of edges without task resolution, the counts, and the rejects of the same log."""
    batches: list[pa.RecordBatch] = []
    rejects: list[Reject] = []
    sink = Assembler(
        LogFile("s", f"log.{kind}", LOG_FORMATS.get(kind)),
        stated,
        OtherFiles(),
        Outlets(batches.append, rejects.append),
    )
    if kind == "csv":
        csv_log.read_by_columns(lambda: io.BytesIO(content), stated, sink, (1 << 60, csv_log.BLOCK))
    else:
        parquet_log.read_by_columns(lambda: io.BytesIO(content), stated, sink, 1 << 60)
    sink.finish()
    table = pa.Table.from_batches(batches, IMPLEMENTATIONS.schema)
    place = folder / "implementations"
    place.mkdir(exist_ok=True)
    pq.write_table(table, place / "part-00000.parquet")
    rows = table.to_pylist()
    aliases = {(row["industry"], task["task_key"], task["task_key"]) for row in rows for task in row["tasks"]}
    source = Source("s", place, tuple(sorted(aliases, key=str)))
    edges = mine_aggregates([source], ("edges",), Spark(), no_spark, folder / "spill")["edges"].to_pylist()
    named = [{k: v for k, v in edge.items() if k != "source"} for edge in edges]
    return (
        sorted(named, key=lambda edge: (edge["src"], edge["dst"])),
        sink.counts,
        Counter((r.code, r.reason) for r in rejects),
    )


def by_columns(content: bytes, kind: str, stated: SourceSettings, folder: Path, in_memory: int = 1 << 28) -> Discovered:
    file = folder / f"log.{kind}"
    file.write_bytes(content)
    return discover_file(file, LOG_FORMATS.get(kind), stated, in_memory)


def both(
    content: bytes, stated: dict[str, Any], folder: Path, kind: str = "csv", in_memory: int = 1 << 28
) -> Discovered | None:
    """Reads both ways, which must agree. None: both refuse the file."""
    typed = parse(SourceSettings, stated, "source.toml")
    reason = None
    try:
        edges, counts, rejects = ordinary(content, kind, typed, folder)
    except InputError as error:
        reason = str(error)
    if reason is not None:
        with pytest.raises(InputError, match=re.escape(reason)):
            by_columns(content, kind, typed, folder, in_memory)
        return None
    found = by_columns(content, kind, typed, folder, in_memory)
    assert [row | {"implementations": row.pop("cases")} for row in found.edges.to_pylist()] == edges
    assert asdict(found.counts) == asdict(counts)
    assert found.rejects == rejects
    if isinstance(typed.weight, int):
        occurrences = sum(row["occurrences"] for row in found.tasks.to_pylist())
        assert occurrences == counts.task_implementations * typed.weight
    return found


def lines(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join((head, *rows, "")).encode()


def at(day: int, hour: int = 10) -> str:
    return f"2020-01-{day:02}T{hour:02}:00:00Z"


def test_edges_and_tasks_of_a_log_in_no_order(tmp_path: Path) -> None:
    content = lines(
        f"2,B,{at(3)},Ann", f"1,A,{at(1)},Ann", f"2,A,{at(2)},Ann", f"1,A,{at(3)},Bob", f"1,B,{at(2)},", f"3,B,{at(9)},"
    )
    found = both(content, {}, tmp_path)
    assert found is not None
    assert found.without_implementations == 3
    assert found.edges.drop_columns(["first_seen", "last_seen"]).to_pylist() == [
        {"src": "A", "dst": "B", "transitions": 2, "cases": 2},
        {"src": "B", "dst": "A", "transitions": 1, "cases": 1},
    ]
    assert found.tasks.drop_columns(["first_seen", "last_seen"]).to_pylist() == [
        {"task": "A", "occurrences": 3, "cases": 2, "starts": 2, "ends": 1},
        {"task": "B", "occurrences": 3, "cases": 3, "starts": 1, "ends": 2},
    ]
    assert [str(row["last_seen"]) for row in found.edges.to_pylist()] == [
        "2020-01-03 10:00:00+00:00",
        "2020-01-03 10:00:00+00:00",
    ]


@pytest.mark.parametrize(
    ("rows", "plain_cases"),
    [
        ([f"1,B,{at(1)},", f"1,A,{at(1)},", f"1,C,{at(1)},"], 2),
        ([f"1,A,{at(1)},", "1,B,,", "1,C,,", f"1,D,{at(1, 9)},"], 2),
        ([f"1,A,{at(1)},x", f"1,A,{at(1)},x", f"1,B,{at(2)},"], 1),
        ([f"1,A,{at(1)},", "1,B,soon,"], 1),
        ([f",A,{at(1)},", f"1,A,{at(1)},"], 2),
        ([f"1,,{at(1)},", f"1,A,{at(1)},"], 1),
        ([f"1,A,{at(1)}", f"1,A,{at(2)},"], 1),
        ([f"a case with a long id,A,{at(1)},", f"a case with a long id,B,{at(2)},"], 2),
        ([f"1,call 06-12345678,{at(1)},", f"1,call 06-87654321,{at(2)},", f"1,A,{at(3)},"], 2),
    ],
    ids=["ties", "no times", "repeated", "bad time", "no case", "no activity", "short row", "long id", "private name"],
)
def test_unusual_rows_are_counted_as_the_ordinary_reading_counts_them(
    rows: list[str], plain_cases: int, tmp_path: Path
) -> None:
    found = both(lines(*rows, f"other,A,{at(1)},", f"other,B,{at(2)},"), {"events": {"repeated": "drop"}}, tmp_path)
    assert found is not None
    assert found.without_implementations == plain_cases


@pytest.mark.parametrize("kinds", [("start", "complete"), ("schedule", "complete"), ("schedule", "assign"), ("start",)])
def test_transitions_are_paired(kinds: tuple[str, ...], tmp_path: Path) -> None:
    rows = [f"{n % 3},{'AB'[n % 2]},{at(1 + (n * 7) % 25)},,{kinds[n // 2 % len(kinds)]}" for n in range(40)]
    assert both(lines(*rows, head=HEAD + ",lifecycle:transition"), {}, tmp_path) is not None


def test_the_weight_of_cases_counts(tmp_path: Path) -> None:
    rows = [f"{n % 3},{'AB'[n % 2]},{at(1 + n)},{1 + n % 3}" for n in range(12)]
    whole = both(lines(*rows), {"weight": 5}, tmp_path)
    by_case = both(lines(*rows), {"weight": {"column": "resource"}}, tmp_path)
    assert whole is not None
    assert by_case is not None
    assert (whole.without_implementations, by_case.without_implementations) == (3, 0)


def test_a_log_on_disk_gives_the_same(tmp_path: Path) -> None:
    rows = [f"{n * 7 % 50},{'ABCD'[n % 4]},{at(1 + n % 28, n % 24)}," for n in range(900)]
    assert both(lines(*rows), {}, tmp_path, in_memory=10) == both(lines(*rows), {}, tmp_path)


@pytest.mark.long
@made(60)
@given(
    table=tables(),
    stated=SETTINGS,
    broken=st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["a,b", '"open', "é\xff"])), max_size=2),
    in_memory=st.sampled_from([10, 1 << 28]),
)
def test_made_tables_give_the_same_edges(
    table: Any, stated: dict[str, Any], broken: list[tuple[int, str]], in_memory: int, tmp_path: Path
) -> None:
    text = written(table[0], table[1], csv.QUOTE_MINIMAL).splitlines(keepends=True)
    for place, line in broken:
        text.insert(1 + place % len(text), line + "\n")
    both("".join(text).encode("cp1252"), stated, tmp_path, in_memory=in_memory)


@pytest.mark.long
@made(40)
@given(
    events=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "a long id of a case", None]),
            st.sampled_from(["A", "B", "C", None]),
            st.sampled_from([0, 1, 2, 3_600_000_000, 1 << 52, None]),
            st.sampled_from(["start", "complete", "schedule", None]),
        ),
        max_size=40,
    ),
    has_transitions=st.booleans(),
    in_memory=st.sampled_from([10, 1 << 28]),
)
def test_random_events_give_the_same_edges(
    events: list[Any], has_transitions: bool, in_memory: int, tmp_path: Path
) -> None:
    names = ["case", "activity", "time", "lifecycle:transition"][: 4 if has_transitions else 3]
    kinds = [pa.string(), pa.string(), pa.timestamp("us", "UTC"), pa.string()]
    columns = [pa.array([event[n] for event in events], kinds[n]) for n in range(len(names))]
    buffer = io.BytesIO()
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), buffer)
    both(buffer.getvalue(), {}, tmp_path, "parquet", in_memory)


@pytest.mark.long
@made(50)
@given(
    rows=st.lists(st.tuples(*TYPED.values(), CLOCKS), min_size=1, max_size=20),
    zone=st.sampled_from([None, "UTC", "Europe/Amsterdam"]),
    stated=st.sampled_from(
        [
            {"timezone": "Europe/Amsterdam"},
            {"timezone": "UTC", "redact": {"hash": ["case_id", "timestamp"], "drop": ["flag"]}},
            {"timezone": "UTC", "time_format": ["%Y-%m-%dT%H:%M:%S"]},
        ]
    ),
)
def test_typed_columns_give_the_same_edges(
    rows: list[Any], zone: str | None, stated: dict[str, Any], tmp_path: Path
) -> None:
    kinds = [pa.int64(), pa.string(), pa.string(), pa.int32(), pa.float64(), pa.bool_(), pa.float64()]
    columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), [*kinds, pa.timestamp("us", zone)], strict=True)]
    buffer = io.BytesIO()
    pq.write_table(pa.table(dict(zip([*TYPED, "timestamp"], columns, strict=True))), buffer)
    both(buffer.getvalue(), stated, tmp_path, "parquet")


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real data")
@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("eventdataR_hospital_billing.csv.gz", {"timezone": "Europe/Amsterdam"}),
        ("eventdataR_traffic_fines.csv.gz", {"timezone": "Europe/Rome", "columns": {"cost": "expense"}}),
        ("real_start_end_BPIC_2017_W.csv.gz", {"timezone": "UTC", "redact": {"hash": ["case_id"]}}),
    ],
)
def test_real_logs_give_the_same_edges(name: str, stated: dict[str, Any], tmp_path: Path) -> None:
    with gzip.open(DATA / name) as file:
        content = b"".join(next(file) for _ in range(5_000))
    found = both(content, stated, tmp_path)
    assert found is not None
    assert found.without_implementations > 0.8 * found.counts.implementations


def test_a_source_of_several_files_is_counted_by_its_implementations(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_bytes(lines(f"1,A,{at(1)},", f"2,A,{at(1)},"))
    (tmp_path / "two.csv").write_bytes(lines(f"1,B,{at(2)},", f"2,C,{at(2)},"))
    found = discover(tmp_path, {})
    assert found.without_implementations == 0
    assert [(row["src"], row["dst"], row["cases"]) for row in found.edges.to_pylist()] == [("A", "B", 1), ("A", "C", 1)]
    assert (found.counts.records, found.counts.implementations) == (4, 2)


@pytest.mark.long
def test_a_plain_log_is_discovered_without_pandas_and_without_a_guess_of_its_delimiter(tmp_path: Path) -> None:
    """Each takes .2 s to import, a third of what a log of a million events takes."""
    log = tmp_path / "log.csv"
    log.write_text(HEAD + "\n" + "".join(f"c{n // 3},Step {n % 3},2024-01-01T00:0{n % 3}:00Z,p\n" for n in range(30)))
    code = (
        "import sys; from opus_pipelines.cli.main import main; "
        f"main(['discover', {str(log)!r}]); print({{'pandas', 'clevercsv'}} & sys.modules.keys(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "set()"
    assert "30 records, 10 cases, 3 tasks, 2 edges" in done.stdout
