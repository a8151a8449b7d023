"""Parquet logs: the columns mean what a CSV file's do, whatever their types."""

import io
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

AT = datetime(2020, 1, 1, 12, tzinfo=UTC)


def packed(**columns: Any) -> bytes:
    table = pa.table(
        {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def test_typed_columns(bench: Any) -> None:
    content = packed(
        case_id=[7, 7, 8],
        activity=["A", "B", "A"],
        start_time=pa.array([AT, AT, None], pa.timestamp("ns", "UTC")),
        end_time=pa.array([AT, None, None], pa.timestamp("ms", "Europe/Amsterdam")),
        cost=pa.array([Decimal("1.50"), None, None]),
        instructions=[["Do", "it"], None, None],
        nested=[{"at": AT}, None, None],
        raw=[b"\xff", None, None],
        ok=[True, False, None],
    )
    cases, rejects, state = bench.one(
        "log.parquet", content, '[columns]\ninstructions = "instructions"\ntask_success = "ok"'
    )
    assert rejects == []
    first, second = cases["7"]["tasks"]
    assert (first["started_at"], first["duration_ms"], first["cost_usd"], first["instructions"]) == (
        AT,
        0.0,
        1.5,
        ["Do", "it"],
    )
    assert (first["success"], second["success"], cases["8"]["tasks"][0]["started_at"]) == (True, False, None)
    assert dict(first["attributes"]) == {"nested": '{"at": "2020-01-01T12:00:00+00:00"}', "raw": "\\xff"}
    row = state.files[0]
    assert (row["format"], row["records"], row["records_used"], row["implementations"]) == ("parquet", 3, 3, 2)
    assert cases["7"]["kind"] == "executed"


def test_times_without_zone_need_the_setting(bench: Any) -> None:
    content = packed(case_id=["1"], activity=["A"], timestamp=pa.array([AT.replace(tzinfo=None)], pa.timestamp("us")))
    _, rejects, _ = bench.one("log.parquet", content)
    assert [(r["position"], r["position_unit"], r["reason_code"]) for r in rejects] == [(1, "record", "no_timezone")]
    assert bench.one("log.parquet", content, 'timezone = "Europe/Amsterdam"')[0]["1"]["started_at"].hour == 11


def test_rows_that_cannot_be_used_are_rejected_and_the_rest_goes_on(bench: Any, keys: Any) -> None:
    content = packed(
        case_id=["1", None, "1", "1", "2"], activity=["A", "A", None, "B", "C"], cost=[1.0, 1.0, 1.0, float("inf"), 1.0]
    )
    cases, rejects, state = bench.one("log.parquet", content)
    assert {case_id: keys(case) for case_id, case in cases.items()} == {"2": ["C"]}
    assert [(r["position"], r["reason_code"]) for r in rejects] == [
        (1, "case_quarantined"),
        (2, "no_case"),
        (3, "no_activity"),
        (4, "not_finite"),
    ]
    assert (state.files[0]["records"], state.files[0]["records_used"]) == (5, 1)


def test_a_case_that_csv_and_parquet_share_is_put_together(bench: Any, keys: Any) -> None:
    bench.put("s/a.csv", "case_id,activity\n1,A\n")
    cases, rejects, _ = bench.one("b.parquet", packed(case_id=["1"], activity=["B"]))
    assert (keys(cases["1"]), rejects) == (["A", "B"], [])


def test_packed_once_more(bench: Any) -> None:
    assert list(bench.one("log.parquet.gz", packed(case_id=["1"], activity=["A"]))[0]) == ["1"]


LOG = packed(case_id=["1"] * 100, activity=[f"A{n}" for n in range(100)])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1", "broken or cut off"),
        (b"PAR1" + bytes(100) + b"PAR1", "broken or cut off"),
        (LOG[: len(LOG) // 2], "broken or cut off"),
        (LOG[:20] + bytes(200) + LOG[220:], "broken or cut off"),
        (packed(ref=["1"], step=["A"]), "it cannot be told which column is the case"),
        (b"", "the file is empty"),
    ],
    ids=["magic", "zeros", "cut", "holed", "columns", "empty"],
)
def test_whole_files_that_are_refused(bench: Any, content: bytes, reason: str) -> None:
    _, rejects, state = bench.one("log.parquet", content)
    assert reason in state.files[0]["reason"]
    assert (state.files[0]["status"], rejects) == ("rejected", [])


def test_a_small_file_that_claims_millions_of_rows_is_refused(bench: Any) -> None:
    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(6_000_000, np.int32)), ["1"])
    _, rejects, state = bench.one("log.parquet", packed(case_id=rows, activity=pa.nulls(6_000_000, pa.string())))
    assert "claims 6,000,000 rows" in state.files[0]["reason"]
    assert (state.files[0]["status"], rejects) == ("rejected", [])


@pytest.mark.long
def test_times_are_read_without_pandas(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_bytes(
        packed(case_id=["1"], activity=["A"], timestamp=pa.array([AT], pa.timestamp("ns", "UTC")))
    )
    code = (
        "import sys; from pathlib import Path; import pyarrow.parquet as pq; from "
        "opus_pipelines.history.formats import parquet_log as p\n"
        f"file = pq.ParquetFile({str(tmp_path / 'log.parquet')!r})\n"
        "print(list(p._rows(file, file.schema_arrow.names, 1 << 20))[0]['timestamp'], 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2020-01-01T12:00:00+00:00 False\n"


def test_dates_that_python_has_not_are_refused_or_said(bench: Any) -> None:
    days, spans = pa.array([2**31 - 1, 18447], pa.date32()), pa.array([2**60, 1], pa.duration("s"))
    content = packed(case_id=pa.array(["1", "2"]), activity=pa.array(["A", "A"]), time=days, x=spans)
    cases, rejects, _ = bench.one("log.parquet", content, 'timezone = "UTC"')
    assert cases.keys() == {"2"}
    assert "'a date32[day] out of range' is no time" in rejects[0]["reason"]
