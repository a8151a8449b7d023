"""Executors that share no folder with the run: the snapshot is brought to them, and work goes out in waves."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

from opus_pipelines.generation.spark_chunks import waves
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.wkg.snapshot_archive import write_archive


def test_an_unpacked_archive_is_a_lake_with_the_snapshot(sample_lake: Lake, tmp_path: Path) -> None:
    name = sample_lake.required_snapshot()
    write_archive(sample_lake, name, tmp_path / "snapshot.zip")
    with ZipFile(tmp_path / "snapshot.zip") as archive:
        archive.extractall(tmp_path / "there")
    there = Snapshot.open(Lake(tmp_path / "there"), name)
    here = Snapshot.open(sample_lake, name)
    assert there.cases.equals(here.cases)
    assert there.requests == here.requests
    assert sorted(folder.name for folder in (tmp_path / "there").iterdir()) == ["history", "wkg"]


def test_chunks_go_out_in_waves(tmp_path: Path) -> None:
    jobs: Any = ["a", "b", "c"]
    folders = [tmp_path / job for job in jobs]
    for folder in folders:
        folder.mkdir()
        (folder / "intakes.arrow").write_bytes(b"some bytes")
    assert [[job.job for job in wave] for wave in waves(jobs, None, chunks=2)] == [["a", "b"], ["c"]]
    assert [[job.job for job in wave] for wave in waves(jobs, folders, packed_bytes=20)] == [["a", "b"], ["c"]]
    assert [[one.name for one in job.contents] for wave in waves(jobs, folders) for job in wave] == [
        ["intakes.arrow"],
        ["intakes.arrow"],
        ["intakes.arrow"],
    ]
