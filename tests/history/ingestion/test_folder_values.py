"""Folders such as client=Acme state values of all rows in them, and cases of two clients stay apart."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.history.records.files import folder_values, placed

ROWS = [("0", "A", "2024-03-01T09:00:00Z"), ("0", "B", "2024-03-02T09:00:00Z"), ("1", "A", "2024-03-01T09:00:00Z")]
NAMES = ["case_id", "activity", "timestamp"]


def table(rows: list[tuple[str, str, str]], kind: str) -> bytes:
    if kind == "csv":
        return "".join(f"{','.join(row)}\n" for row in [tuple(NAMES), *rows]).encode()
    file = io.BytesIO()
    pq.write_table(pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))), file)
    return file.getvalue()


def cases(bench: Any) -> Any:
    from opus_pipelines.core.schemas import IMPLEMENTATIONS
    from opus_pipelines.lake.layout import read_table

    rows = read_table(IMPLEMENTATIONS, *[s.folder for s in bench.read().sources]).to_pylist()
    assert len({row["implementation_id"] for row in rows}) == len(rows)
    return sorted((r["client"], r["case_id"], len(r["tasks"]), sorted(dict(r["attributes"]).items())) for r in rows)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("many", [1, pytest.param(4_000, marks=pytest.mark.long)])
def test_cases_of_two_clients_stay_apart(bench: Any, kind: str, many: int) -> None:
    for client in ("Acme", "Beta%20AG"):
        more = [(f"n{n}", "A", "2024-03-01T09:00:00Z") for n in range(many)]
        bench.put(f"s/client={client}/region=EU/part.{kind}", table([*ROWS, *more], kind))
    found = [row for row in cases(bench) if not row[1].startswith("n")]
    region = [("region", "EU")]
    assert found == [
        ("Acme", "0", 2, region),
        ("Acme", "1", 1, region),
        ("Beta AG", "0", 2, region),
        ("Beta AG", "1", 1, region),
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_case_of_one_client_may_stand_in_several_folders(bench: Any, kind: str) -> None:
    for client in ("Acme", "Beta"):
        for month, rows in (("2024-03", ROWS[:1]), ("2024-04", ROWS[1:])):
            bench.put(f"s/client={client}/month={month}/part.{kind}", table(rows, kind))
    assert cases(bench) == [("Acme", "0", 2, []), ("Acme", "1", 1, []), ("Beta", "0", 2, []), ("Beta", "1", 1, [])]


def test_a_stated_column_of_the_client_keeps_cases_apart(bench: Any) -> None:
    bench.put("s/source.toml", '[columns]\nclient = "mandant"\n')
    for client in ("x", "y"):
        bench.put(f"s/mandant={client}/part.csv", table(ROWS, "csv"))
    assert [row[:2] for row in cases(bench)] == [("x", "0"), ("x", "1"), ("y", "0"), ("y", "1")]


def test_the_rule_of_success_may_name_a_folder(bench: Any) -> None:
    bench.put("s/source.toml", '[success]\ncolumn = "outcome"\nequals = "paid"\n')
    bench.put("s/outcome=paid/part.csv", table(ROWS[2:], "csv"))
    bench.put("s/outcome=refused/part.csv", table(ROWS[:2], "csv"))
    assert {name: case["success"] for name, case in bench.cases().items()} == {"0": False, "1": True}


def test_a_column_of_the_file_is_not_replaced(bench: Any) -> None:
    bench.put("s/activity=X/part.csv", table(ROWS[2:], "csv"))
    assert bench.cases()["1"]["tasks"][0]["title"] == "A"


def test_values_and_places_of_paths() -> None:
    path = Path("client=Acme%2FNord/day=2024-03-01/empty=__HIVE_DEFAULT_PARTITION__/=x/a.csv")
    assert folder_values(path) == {"client": "Acme/Nord", "day": "2024-03-01"}
    assert placed(Path("/data/client=A/day=1/a.csv")) == Path("client=A/day=1/a.csv")
    assert placed(Path("/client=A/data/a.csv")) == Path("a.csv")
