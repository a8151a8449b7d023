"""Batches on their way into the lake: sorted by key, whatever their order and wherever they waited."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import REJECTS
from opus_pipelines.history.ingestion.read_file import SmallSpools, Spool, write_sorted


def batch(*positions: int, length: int = 1) -> pa.RecordBatch:
    rows = [{"source": "s", "path": f"p{n % 3}", "position": n, "record": "x" * length * (n % 7)} for n in positions]
    return pa.RecordBatch.from_pylist(rows, schema=REJECTS.schema)


@pytest.mark.parametrize("in_memory", [0, 1 << 20, 1 << 26])
def test_rows_are_sorted_by_key(tmp_path: Path, in_memory: int) -> None:
    """More rows than two row groups, and more bytes than are sorted at once (32 MiB)."""
    numbers = list(range(20_000))
    random.Random(1).shuffle(numbers)
    spools = [Spool(tmp_path / "a", REJECTS.schema, in_memory), Spool(tmp_path / "b", REJECTS.schema, in_memory)]
    for n in range(0, 20_000, 500):
        spools[n // 500 % 2].add(batch(*numbers[n : n + 500], length=300))
    for one in spools:
        one.finish()
    assert (tmp_path / "a").exists() == (in_memory < 1 << 26)
    file = pq.ParquetFile(write_sorted(REJECTS, spools, tmp_path / "made"))
    assert file.schema_arrow.equals(REJECTS.schema)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [8192, 8192, 3616]
    assert file.read()["position"].to_pylist() == sorted(range(20_000), key=lambda n: (n % 3, n))
    for one in spools:
        one.drop()
    assert not (tmp_path / "a").exists()


def test_no_rows_are_a_typed_file(tmp_path: Path) -> None:
    path = write_sorted(REJECTS, [Spool(tmp_path / "a", REJECTS.schema).finish()], tmp_path / "made")
    assert pq.read_table(path).equals(REJECTS.schema.empty_table())


def test_a_change_is_made_of_every_part(tmp_path: Path) -> None:
    one = Spool(tmp_path / "a", REJECTS.schema)
    one.add(batch(2, 1))
    blank = lambda part: part.set_column(6, "record", pa.repeat("", len(part)))
    assert pq.read_table(write_sorted(REJECTS, [one.finish()], tmp_path / "made", blank))["record"].to_pylist() == [
        "",
        "",
    ]


def test_what_was_dropped_is_gone(tmp_path: Path) -> None:
    one = Spool(tmp_path / "a", REJECTS.schema, 0)
    one.add(batch(1))
    one.drop()
    assert list(one.batches()) == []
    assert not (tmp_path / "a").exists()


def test_small_spools_share_batches_and_keep_their_rows(tmp_path: Path) -> None:
    spools = [Spool(tmp_path / f"{n}", REJECTS.schema, in_memory=1 << 20) for n in range(1_300)]
    together = SmallSpools(REJECTS.schema)
    for n, one in enumerate(spools):
        one.add(batch(n, length=300_000 if n == 8 else 1))  # one of them is large
        together.add(one.finish())
    together.add(Spool(tmp_path / "empty", REJECTS.schema).finish())
    spools[3].drop()
    together.flush()
    spools[1_299].drop()
    shared = {id(whole) for one in spools for whole, _, _ in one.pieces()}
    assert len(shared) == 4
    assert [b["position"].to_pylist() for b in spools[1_000].batches()] == [[1_000]]
    rows = pq.read_table(write_sorted(REJECTS, spools, tmp_path / "made"))["position"].to_pylist()
    assert sorted(rows) == [n for n in range(1_300) if n not in (3, 1_299)]


@pytest.mark.parametrize("to_disk", [False, True])
def test_a_spool_travels_as_json(tmp_path: Path, to_disk: bool) -> None:
    spool = Spool(tmp_path / "rows", pa.schema([("number", pa.int32())]))
    spool.add(pa.RecordBatch.from_pydict({"number": pa.array([1, 2], pa.int32())}))
    spool.finish(to_disk=to_disk)
    stated = json.loads(json.dumps(spool.as_plain()))
    assert (stated["bytes"], stated["file"], stated["rows"] is None) == (8, "rows" if to_disk else None, to_disk)
    read = Spool.of_plain(stated)
    read.move(tmp_path)
    assert [batch.to_pydict() for batch in read.batches()] == [{"number": [1, 2]}]
    read.drop()
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_rows_travels_too(tmp_path: Path) -> None:
    empty = Spool(tmp_path / "rows", pa.schema([("number", pa.int32())])).finish()
    assert list(Spool.of_plain(empty.as_plain()).batches()) == []


@pytest.mark.parametrize("name", ["../rows", "/etc/rows", "..", "a/b"])
def test_the_file_of_a_spool_is_in_no_other_folder(name: str) -> None:
    with pytest.raises(ValueError, match="name of a file"):
        Spool.of_plain({"bytes": 1, "file": name, "rows": None})


@pytest.mark.parametrize("rows", ["no base64!", "AAAA", 1])
def test_what_is_no_arrow_is_refused(rows: object) -> None:
    with pytest.raises(ValueError, match=r"rows|base64"):
        Spool.of_plain({"bytes": 1, "file": None, "rows": rows})
