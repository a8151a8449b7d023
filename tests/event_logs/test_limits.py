"""How much a file may ask of its reader, each limit at a size that a test can afford."""

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.event_logs import files, records
from opus_pipelines.event_logs.values import BadValueError
from opus_pipelines.log_formats.jsonl import work_before
from tests.history_fixtures import Bench

HEAD = "case,activity,note\n"


def test_a_small_file_that_unpacks_to_countless_lines_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_LINES", 1000)
    content = gzip.compress((HEAD + "1,A,\n" * 100_000).encode())
    bench.put("s/log.csv", "")
    (bench.history / "s" / "log.csv").rename(bench.history / "s" / "log.csv.gz")
    (bench.history / "s" / "log.csv.gz").write_bytes(content)
    (row,) = bench.read().files
    most = max(1000, 5 * len(content))
    assert (row["status"], f"more than {most:,} lines" in row["reason"]) == ("rejected", True)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_file_of_which_hardly_a_record_can_be_used_is_no_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(records, "HOPELESS", 50)
    good, bad = (
        ("1,A,\n", "only one field\n")
        if name == "log.csv"
        else (json.dumps({"id": "1", "tasks": ["A"]}) + "\n", "no JSON\n")
    )
    head = HEAD if name == "log.csv" else ""
    _, rejects, state = bench.one(name, head + good + bad * 99)
    assert (state.failed, len(rejects)) == ([], 99)
    _, rejects, state = bench.one(name, head + good + bad * 101)
    assert "hardly a" in state.failed[0]
    assert state.files[0]["records"] == 0


def test_names_and_texts_have_a_length_that_people_write(bench: Bench) -> None:
    rows = f"{'c' * 10_001},A,\n1,{'A' * 10_001},\n2,A,{'x' * (1 << 20)}y\n3,{'A' * 10_000},{'x' * (1 << 20)}\n"
    cases, rejects, _ = bench.one("log.csv", HEAD + rows)
    assert cases.keys() == {"3"}
    assert [r["reason_code"] for r in rejects] == ["too_long"] * 3
    assert rejects[2]["reason"].startswith("note: the text has 1,048,577 characters")


@pytest.mark.long
def test_reasons_quote_no_more_than_a_person_reads(bench: Any) -> None:
    _, _, state = bench.one("log.csv", ",".join(f"{n}{'x' * 100_000}" for n in range(50)) + "\n")
    assert len(state.files[0]["reason"]) < 4_000


def test_columns_of_one_name_are_told_apart(bench: Bench) -> None:
    cases, *_ = bench.one("log.csv", "case,activity,x (5),x,x\n1,A,a,b,c\n")
    assert dict(cases["1"]["tasks"][0]["attributes"]) == {"x (5)": "a", "x": "b", "x (5) (5)": "c"}


def test_a_text_that_every_row_of_a_parquet_file_repeats_is_weighed_before_it_is_spread_out(bench: Bench) -> None:
    packed = io.BytesIO()
    note = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"case": ["1"] * 1000, "activity": ["A"] * 1000, "note": note}), packed)
    _, _, state = bench.one("log.parquet", packed.getvalue())
    assert "more than 32 MiB" in state.failed[0]


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ({1: [0]}, {1: {0}}),
        ({1: [0], 2: [1], 3: [1, 2, 7]}, {1: {0}, 2: {0}, 3: {0, 7}}),
        ({3: [2], 2: [1], 1: [0]}, {1: {0}, 2: {0}, 3: {0}}),
        ({1: [2, 0], 2: [1]}, {1: {0}, 2: set()}),
        ({1: [1]}, {1: set()}),
    ],
)
def test_what_is_followed_through_dropped_tasks(before: dict[int, list[int]], behind: dict[int, set[int]]) -> None:
    assert work_before(before) == behind


def test_too_many_ways_through_dropped_tasks_are_refused() -> None:
    dense = {place: list(range(place)) for place in range(300, 1500)}
    with pytest.raises(BadValueError, match="steps to tell what its tasks follow"):
        work_before(dense)
