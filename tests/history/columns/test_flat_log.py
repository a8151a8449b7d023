"""Flat logs by columns: the same rows, rejects, counts and refusals as row by row, whatever the log looks like."""

import csv
import gzip
import io
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import parse
from opus_pipelines.history.columns.flat_log import Refusal
from opus_pipelines.history.columns.flat_rows import Rows
from opus_pipelines.history.formats import csv_log, parquet_log
from opus_pipelines.history.formats.table_log import TableLog
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import LOG_FORMATS
from opus_pipelines.history.records.raw import Reject
from opus_pipelines.history.records.source_settings import SourceSettings
from tests.campaigns import examples
from tests.made_logs import CELLS, CLOCKS, SETTINGS, TYPED, tables, written

ALWAYS, NEVER = -1, 1 << 60
DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "event_logs"


class Read:
    """What came of one file: rows by case, rejects, counts, cases that are joined, or why the file was refused."""

    def __init__(
        self,
        content: bytes,
        stated: dict[str, Any],
        kind: str = "csv",
        few: int = ALWAYS,
        block: int = csv_log.BLOCK,
        others: OtherFiles | None = None,
    ) -> None:
        batches: list[pa.RecordBatch] = []
        self.rejects: list[Reject] = []
        typed = parse(SourceSettings, stated, "source.toml")
        file = LogFile("s", f"log.{kind}", LOG_FORMATS.get(kind))
        sink = Assembler(file, typed, others or OtherFiles(), Outlets(batches.append, self.rejects.append))
        self.reason = None
        self.by_columns = False
        try:
            if kind == "csv":
                self.by_columns = csv_log.read_by_columns(lambda: io.BytesIO(content), typed, sink, (few, block))
            else:
                self.by_columns = parquet_log.read_by_columns(lambda: io.BytesIO(content), typed, sink, few)
            sink.finish()
        except InputError as error:
            self.reason = str(error)
        self.rows = pa.Table.from_batches(batches, IMPLEMENTATIONS.schema).sort_by("case_id").to_pylist()
        self.sink = sink

    def outcome(self) -> Any:
        sink = self.sink
        found = (self.rows, sorted(map(asdict, self.rejects), key=lambda r: r["position"]), asdict(sink.counts))
        state = (sink.case_ids, sink.quarantined_ids, sink.parts, sink.log_has_work, sink.waited_for_work)
        return self.reason or (*found, *state, sink.encoding, sink.mixed_encodings)


def both(
    content: bytes,
    stated: dict[str, Any] | None = None,
    kind: str = "csv",
    block: int = csv_log.BLOCK,
    others: OtherFiles | None = None,
) -> Read:
    """Reads both ways, which must agree."""
    by_columns = Read(content, stated or {}, kind, ALWAYS, block, others)
    by_records = Read(content, stated or {}, kind, NEVER, others=others)
    assert not by_records.by_columns
    assert by_columns.outcome() == by_records.outcome()
    return by_columns


def lines(*rows: str, head: str = "case_id,activity,timestamp,resource,cost,case:kind") -> bytes:
    return "\n".join((head, *rows, "")).encode()


AT = "2020-01-0{}T10:00:00Z".format
PLAIN = tuple(f"c{n % 7},step {n % 3},{AT(1 + n % 5)},r{n % 2},{n}.5,k{n % 7}" for n in range(35))


def test_plain_rows_are_read_by_columns() -> None:
    read = both(
        lines("b,B,2020-01-02,Ann,2,x", "a,A,2020-01-01T00:00:00Z,Bob,,y", "b,A,2020-01-01,,1.5,"), {"timezone": "UTC"}
    )
    assert read.by_columns
    one, two = read.rows
    assert (one["case_id"], two["case_id"], two["cost_usd"], two["attributes"]) == ("a", "b", 3.5, [("kind", "x")])
    assert [(t["task_key"], t["actor"], t["wait_ms"]) for t in two["tasks"]] == [
        ("A", None, None),
        ("B", "Ann", 86_400_000.0),
    ]


@pytest.mark.parametrize(
    ("rows", "cases", "left_out"),
    [
        ({"only": {"activity": ["step 0", "step 1"]}}, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"], 11),
        ({"without": {"case_id": ["c0", "c6"]}}, ["c1", "c2", "c3", "c4", "c5"], 10),
        ({"only": {"resource": ["r1 "]}, "without": {"case:kind": ["k1", "k2", "k3", "k4", "k5", "k6"]}}, [], 35),
    ],
)
@pytest.mark.parametrize("redact", [{}, {"hash": ["resource", "case:kind"]}])
def test_rows_that_the_settings_leave_out_are_counted_as_no_work(
    rows: dict[str, Any], cases: list[str], left_out: int, redact: dict[str, Any]
) -> None:
    read = both(lines(*PLAIN), {"rows": rows, "redact": redact}, block=300)
    assert [row["case_id"] for row in read.rows] == cases
    assert (read.sink.counts.records, read.sink.counts.not_work) == (35, left_out)


def test_rows_are_left_out_by_a_column_that_is_there() -> None:
    assert "stage" in str(both(lines(*PLAIN), {"rows": {"only": {"stage": ["x"]}}}).reason)


@pytest.mark.parametrize(("columns", "by_columns"), [(200, True), (1_000, False)])
def test_few_rows_of_a_wide_table_are_read_by_records(columns: int, by_columns: bool) -> None:
    others = ",".join(f"c{n}" for n in range(columns))
    content = f"case_id,activity,{others}\na,A{',' * columns}\n".encode()
    read = Read(content, {}, few=len(content) // 2)
    assert read.by_columns is by_columns
    assert [(row["case_id"], row["tasks"][0]["task_key"]) for row in read.rows] == [("a", "A")]


@pytest.mark.parametrize(
    "row",
    [
        "c1,step 1,soon,r1,1,k1",
        "4.50E+09,step 1,2020-01-01T10:00:00Z,r1,1,k1",
        "c1,,2020-01-01T10:00:00Z,r1,1,k1",
        " ,step 1,2020-01-01T10:00:00Z,r1,1,k1",
        "c1,step 1,2020-01-01T10:00:00Z,r1,dear,k1",
        "c1,step 1,2020-01-01T10:00:00Z,r1,3 EUR,k1",
        "c1,step 1,2020-01-01T10:00:00,r1,3,k1",
        "c1,step 1,2020-01-01T10:00:00Z,r1,3",
        "c1,step 1,2020-01-01T10:00:00Z,r1,3,k1,more",
        'c1,"step 1" more,2020-01-01T10:00:00Z,r1,3,k1',
        'c1,step "1",2020-01-01T10:00:00Z,r1,3,k1',
        'c1,"say ""1""",2020-01-01T10:00:00Z,r1,3,k1',
        'c1,"two\nlines",2020-01-01T10:00:00Z,r1,3,k1',
        'c1,"never ended,2020-01-01T10:00:00Z,r1,3,k1',
        'c1,"a, b",2020-01-01T10:00:00Z,"",3,k1',
        "c1,call 06-12345678,2020-01-01T10:00:00Z,ann@example.com,3,k1",
        "\n\nc1,blank lines,2020-01-01T10:00:00Z,r1,3,k1\r",
        PLAIN[3],
    ],
)
def test_an_unusual_row_is_read_by_records_and_the_rest_by_columns(row: str) -> None:
    for block in (64, 300, csv_log.BLOCK):
        assert both(lines(*PLAIN[:20], row, *PLAIN[20:]), block=block).by_columns


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        (lines(*PLAIN).replace(b"\n", b"\r"), {}),
        (lines(*PLAIN), {"activity": "{activity} {resource}"}),
        (lines(*PLAIN), {"currency": "EUR"}),
        (lines(*PLAIN), {"columns": {"event_id": "resource"}}),
        (lines(*PLAIN), {"columns": {"model": "resource"}}),
        (lines(*PLAIN), {"encoding": ["utf-8", "cp1252"]}),
        (lines(*(f"c{n},A,soon,,," for n in range(30))), {}),
        (lines(), {}),
        (lines("a,A", "a,B", "b,A", head="case_id,activity"), {}),
    ],
)
def test_what_columns_cannot_do_is_read_by_records(content: bytes, stated: dict[str, Any]) -> None:
    both(content, stated)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_encodings(encoding: str) -> None:
    rows = [f"ca{n % 4},Prüfung {n % 3},{AT(1 + n % 5)},Müller,1,é" for n in range(40)]
    content = lines(*rows).decode().encode(encoding)
    read = both(content, block=500)
    assert read.by_columns
    assert {t["task_key"] for t in read.rows[0]["tasks"]} == {"Prüfung 0", "Prüfung 1", "Prüfung 2"}
    if encoding != "utf-16":
        both(content + b"ca1,bad \xff\x81,2020-01-01T10:00:00Z,,,\n", block=500)


def test_held_and_forgotten_cases() -> None:
    others = OtherFiles(held=frozenset({"c2"}), has_work=True)
    read = both(lines(*PLAIN), others=others)
    assert read.by_columns
    assert [part.case.case_id for part in read.sink.parts] == ["c2"]
    forgotten = Forgotten(b"key").with_client("k3")
    read = both(lines(*PLAIN), {"client": {"column": "case:kind"}}, others=OtherFiles(forgotten=forgotten))
    assert "c3" not in {row["case_id"] for row in read.rows}


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(
    table=tables(),
    stated=SETTINGS,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    broken=st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from(["a,b", '"x" y', '"open', "", "\x00", "é\xff"])), max_size=2
    ),
    encoding=st.sampled_from(["utf-8", "cp1252"]),
    block=st.sampled_from([100, 1000, 1 << 20]),
)
def test_made_tables_are_the_same_both_ways(
    table: Any, stated: dict[str, Any], quoting: int, broken: list[tuple[int, str]], encoding: str, block: int
) -> None:
    text = written(table[0], table[1], quoting).splitlines(keepends=True)
    for place, line in broken:
        text.insert(1 + place % len(text), line + "\n")
    both("".join(text).encode(encoding), stated, block=block)


def test_made_tables_often_go_by_columns() -> None:
    header = [*CELLS, "timestamp"]
    row = {"activity": "A", "cost": "3", "timestamp": "2026-01-05T08:00:00Z"}
    rows = [[f"c{n % 9}" if name == "case_id" else row.get(name, "") for name in header] for n in range(60)]
    wild = [["c1", "A", "", "", "", "dear", "", "", "", "", "", "2026-01-05T08:00:00Z"]]
    assert both(written(header, rows + wild, csv.QUOTE_MINIMAL).encode()).by_columns


@pytest.mark.long
@settings(max_examples=examples(50), deadline=None)
@given(
    rows=st.lists(st.tuples(*TYPED.values(), CLOCKS), min_size=1, max_size=20),
    zone=st.sampled_from([None, "UTC", "Europe/Amsterdam"]),
    stated=st.sampled_from(
        [
            {"timezone": "Europe/Amsterdam"},
            {"columns": {"task_success": "flag"}, "success": {"column": "share", "equals": 0.1}},
            {"timezone": "UTC", "redact": {"hash": ["case_id", "timestamp"], "mask": ["share"]}, "decimal": ","},
            {"timezone": "UTC", "time_format": ["%Y-%m-%dT%H:%M:%S"]},
        ]
    ),
)
def test_typed_columns_are_the_same_both_ways(rows: list[Any], zone: str | None, stated: dict[str, Any]) -> None:
    kinds = [pa.int64(), pa.string(), pa.string(), pa.int32(), pa.float64(), pa.bool_(), pa.float64()]
    names = [*TYPED, "timestamp"]
    columns = [pa.array(c, k) for c, k in zip(zip(*rows, strict=True), [*kinds, pa.timestamp("us", zone)], strict=True)]
    buffer = io.BytesIO()
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), buffer)
    both(buffer.getvalue(), stated, "parquet")


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real data")
@pytest.mark.parametrize(
    ("name", "stated"),
    [
        (
            "eventdataR_hospital_billing.csv.gz",
            {"timezone": "Europe/Amsterdam", "success": {"column": "isclosed", "equals": ["True"]}},
        ),
        (
            "eventdataR_traffic_fines.csv.gz",
            {"timezone": "Europe/Rome", "columns": {"cost": "expense", "case_cost": "amount"}},
        ),
        (
            "real_start_end_BPIC_2017_W.csv.gz",
            {"timezone": "UTC", "rates": {"User_14": 40.0}, "redact": {"hash": ["case_id"]}},
        ),
    ],
)
def test_real_logs_are_the_same_both_ways(name: str, stated: dict[str, Any]) -> None:
    with gzip.open(DATA / name) as file:
        content = b"".join(next(file) for _ in range(5_000))
    assert both(content, stated).by_columns
    buffer = io.BytesIO()
    pq.write_table(arrow_csv.read_csv(io.BytesIO(content)), buffer)
    assert both(buffer.getvalue(), stated, "parquet").by_columns


def collected(table: Any, stated: dict[str, Any], in_memory: int, folder: Path) -> Any:
    """What comes of rows that are given in parts of seven to the reading by columns."""
    header, rows = table
    batches: list[pa.RecordBatch] = []
    rejects: list[Reject] = []
    typed = parse(SourceSettings, stated, "source.toml")
    outlets = Outlets(batches.append, rejects.append, folder=folder)
    sink = Assembler(LogFile("s", "log.csv", LOG_FORMATS.get("csv")), typed, OtherFiles(), outlets)
    log = TableLog(header, typed, sink, in_memory).by_columns()
    assert log is not None
    log.refuse(Refusal(1, "bad_row", "it has one field", "b", "b"))
    log.refuse(Refusal(2, "bad_row", "it has no field", "", None))
    for first in range(0, len(rows), 7):
        some = list(zip(*rows[first : first + 7], strict=True))
        columns = {name: pa.array(values, pa.string()) for name, values in zip(header, some, strict=True)}
        log.add(Rows(columns, np.arange(first + 3, first + 3 + len(some[0]))))
    log.finish()
    sink.finish()
    found = pa.Table.from_batches(batches, IMPLEMENTATIONS.schema).sort_by("case_id").to_pylist()
    return found, sorted(map(asdict, rejects), key=lambda r: r["position"]), asdict(sink.counts)


@pytest.mark.long
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), stated=SETTINGS)
def test_rows_on_disk_give_the_same_as_rows_in_memory(table: Any, stated: dict[str, Any], tmp_path: Path) -> None:
    assert collected(table, stated, 0, tmp_path) == collected(table, stated, 1 << 28, tmp_path)
