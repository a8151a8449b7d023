"""Executors that share no folder with the run: the snapshot is brought to them, and work goes out in waves."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation import spark_chunks
from opus_pipelines.generation.chunks import GenerationSetup
from opus_pipelines.generation.snapshot_archive import write_archive
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workers.carried_jobs import Tasks


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


def test_the_setup_of_an_executor_names_the_unpacked_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = GenerationSetup(Path("/lake"), "s1", Settings())
    monkeypatch.setattr("pyspark.SparkFiles.get", lambda name: f"/work/{name}")
    there = setup.on_executor("opus-snapshot-1")
    assert (there.lake, there.settings.paths.lake) == (Path("/work/opus-snapshot-1"), Path("/work/opus-snapshot-1"))
    assert setup.on_executor(None) is setup


def test_chunks_go_out_in_waves_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent: list[list[str]] = []
    told: list[int] = []

    def carry(session: None, setup: Any, jobs: Any, into: Any, tasks: Tasks) -> list[tuple[bool, str]]:
        sent.append([f"{job.job} {folder.name}" for job, folder in zip(jobs, into, strict=True)])
        tasks.progress(len(jobs))
        return [(job.job != "c", f"{job.job} is done") for job in jobs]

    monkeypatch.setattr(spark_chunks, "carry", carry)
    monkeypatch.setattr(spark_chunks, "WAVE_CHUNKS", 2)
    by_spark: Any = spark_chunks.SparkChunks(None, GenerationSetup(tmp_path, "s1", Settings()))  # type: ignore[arg-type]
    made = [tmp_path / name for name in ("0", "1", "2")]
    assert by_spark.do(["a", "b", "d"], None, made, told.append) == ["a is done", "b is done", "d is done"]
    assert sent == [["a 0", "b 1"], ["d 2"]]
    assert told == [2, 3]
    with pytest.raises(OpusError, match="c is done"):
        by_spark.do(["a", "c", "d"], None, made, told.append)
