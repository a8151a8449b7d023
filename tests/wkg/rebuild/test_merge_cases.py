"""Tests of the merge of the cases of all sources: sorted, whole, whatever the order and the row groups of the files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import CASES
from opus_pipelines.lake.layout import PART
from opus_pipelines.wkg.rebuild.cases import merge_cases, write_case_batches


def _file(place: Path, ids: str, group: int = 2) -> Path:
    """Writes a case for each letter, with the name of the file as its source, in row groups of `group`."""
    rows = [{"implementation_id": one, "source": place.stem, "tasks": [one, one * 2], "weight": 1} for one in ids]
    tables = [pa.Table.from_pylist(rows[n : n + group], schema=CASES.schema) for n in range(0, len(rows), group)]
    write_case_batches(tables, place)
    return place


@pytest.mark.parametrize(
    ("one", "other"),
    [("acegi", "bdfh"), ("abcde", "fghi"), ("", "abcdefghi"), ("ihgfe", "dcba"), ("fgabc", "hide")],
    ids=["interleaved", "one after the other", "an empty source", "descending", "two sorted parts in a file"],
)
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_the_rows_of_all_files_are_written_in_order(one: str, other: str, rows: int, tmp_path: Path) -> None:
    files = [_file(tmp_path / "one.parquet", one), _file(tmp_path / "other.parquet", other, group=3)]
    assert merge_cases(files, tmp_path / "cases", rows) == 9
    found = pq.ParquetFile(tmp_path / "cases" / PART).read()
    assert found.schema.names == CASES.schema.names
    assert "".join(found["implementation_id"].to_pylist()) == "abcdefghi"
    assert found["source"].to_pylist() == ["one" if case in one else "other" for case in "abcdefghi"]
    assert found["tasks"].to_pylist()[3] == ["d", "dd"]


@pytest.mark.parametrize("sources", [0, 1])
def test_no_cases_are_a_file_without_rows(sources: int, tmp_path: Path) -> None:
    files = [_file(tmp_path / f"{n}.parquet", "") for n in range(sources)]
    assert merge_cases(files, tmp_path / "cases") == 0
    assert pq.ParquetFile(tmp_path / "cases" / PART).read().num_rows == 0


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    file = _file(tmp_path / "one.parquet", "abc")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(pa.ArrowInvalid):
        merge_cases([file], tmp_path / "cases")
