"""How much a file may ask of its reader, each limit at a size that a test can afford."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.jsonl import work_before
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.raw import Counts
from opus_pipelines.history.records.values import BadValueError
from tests.history_fixtures import Bench

HEAD = "case,activity,note\n"


def test_a_small_file_that_unpacks_to_countless_lines_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.csv.gz"
    file.write_bytes(gzip.compress(b"1,A,\n" * 2_000_000))
    with open_data(file) as lines:
        assert len(lines.read()) == 10_000_000
    file.write_bytes(gzip.compress(b"1,A,\n" * 2_000_001))
    with open_data(file) as lines, pytest.raises(InputError, match="more than 2,000,000 lines"):
        lines.read()


@pytest.mark.parametrize(
    ("rejected", "used", "expected"),
    [(20_000, 0, False), (20_001, 0, True), (20_001, 202, True), (20_001, 203, False)],
)
def test_a_file_is_no_log_where_one_record_of_a_hundred_can_be_used(rejected: int, used: int, expected: bool) -> None:
    assert Counts(rejected=rejected).is_no_log(used) is expected


@pytest.mark.long
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_file_of_which_hardly_a_record_can_be_used_is_no_log(bench: Bench, name: str) -> None:
    good, bad = (
        ("1,A,\n", "one field\n")
        if name == "log.csv"
        else (json.dumps({"id": "1", "tasks": ["A"]}) + "\n", "no JSON\n")
    )
    head = HEAD if name == "log.csv" else ""
    _, rejects, state = bench.one(name, head + good + bad * 20_000)
    assert (state.failed, len(rejects)) == ([], 20_000)
    _, rejects, state = bench.one(name, head + good + bad * 20_100)
    assert "hardly a" in state.failed[0]
    assert state.files[0]["records"] == 0


def test_a_few_sentences_outside_the_table_are_no_work_and_more_are_refused(bench: Bench) -> None:
    cases, rejects, state = bench.one("log.csv", HEAD + "1,A,\n" + "this is a remark\n" * 30)
    assert (set(cases), len(rejects), state.files[0]["records_not_work"]) == ({"1"}, 10, 20)


@pytest.mark.long
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
