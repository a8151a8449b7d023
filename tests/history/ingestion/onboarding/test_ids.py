"""Spellings of one id are doubted, and ids that a spreadsheet has rounded are refused."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from opus_pipelines.history.ingestion.onboarding.trial import findings_of, reading


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("1.0", "1", 1),
        ("1,0", "1", 1),
        ("0012", "12", 1),
        ("INC0012", "INC12", 1),
        ("abc-1", "ABC-1", 1),
        ("A  1", "A 1", 1),
        ("10", "1", 0),
        ("1.10", "1.1", 0),
        ("A0", "A", 0),
        ("1.05", "1.5", 0),
    ],
)
def test_two_spellings_of_one_id_are_doubted(bench: Any, first: str, second: str, alike: int) -> None:
    for name, ident in (("a", first), ("b", second)):
        file = f'case_id,activity,timestamp\n"{ident}",Pay,2024-03-01T09:00:00Z\n'
        bench.put(f"s/{name}.csv", file)
    with reading(bench.history / "s") as trial:
        assert (len(findings_of(trial).alike_ids), trial.total("implementations")) == (alike, 2)


def test_ids_that_a_spreadsheet_has_rounded_are_rejected(bench: Any) -> None:
    rows = "".join(f"{ident},Pay,2024-03-01T09:00:00Z\n" for ident in ("4.50E+09", "4,5E+9", "4500000000", "E+09"))
    bench.put("s/a.csv", "case_id;activity;timestamp\n" + rows.replace(",P", ";P").replace(",2", ";2"))
    with reading(bench.history / "s") as trial:
        assert sorted({code for code, _ in trial.rejects}) == ["rounded_id"]
        assert (trial.total("records_rejected"), trial.total("implementations")) == (2, 2)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_in_one_file_and_others_in_the_next_are_joined_on_demand(bench: Any, kind: str) -> None:
    for name, day, ids in (("a", 1, pa.array([1.0, 2.0])), ("b", 2, pa.array([1, 2]))):
        times = [f"2024-03-0{day}T09:00:00Z"] * 2
        table = pa.table({"case_id": ids, "activity": ["Register", "Check"], "timestamp": times})
        file = bench.put(f"s/{name}.{kind}", "")
        pq.write_table(table, file) if kind == "parquet" else csv.write_csv(table, file)
    bench.put("s/source.toml", '[columns]\ncase = "case_id"\nstrip_zeros = true\n')
    with reading(bench.history / "s") as trial:
        assert (findings_of(trial).cases, findings_of(trial).tasks) == (2, 4)
