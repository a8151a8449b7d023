"""Executors that share no folder with the run: the snapshot is brought to them, and work goes out in waves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.bulk.chunks import SparkChunks, waves
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.snapshot import Snapshot, write_archive
from tests.core.workers.counting import Counting, Doubling, Failing


def test_an_unpacked_archive_is_a_lake_with_the_snapshot(
    lake: Lake, history: Any, rebuild: Any, tmp_path: Path
) -> None:
    cases = history.claims(description="The car was hit while it was parked.")
    name = rebuild(lake, history.write(lake, "claims", cases)).snapshot_id
    write_archive(lake, name, tmp_path / "snapshot.zip")
    with ZipFile(tmp_path / "snapshot.zip") as archive:
        archive.extractall(tmp_path / "there")
    there = Snapshot.open(Lake(tmp_path / "there"), name)
    here = Snapshot.open(lake, name)
    assert there.cases.num_rows == len(cases)
    assert there.cases.equals(here.cases)
    assert len(there.requests) == len(cases)
    assert there.requests == here.requests
    assert sorted(folder.name for folder in (tmp_path / "there").iterdir()) == ["history", "wkg"]


@dataclass(frozen=True)
class CountingAnywhere(Counting):
    """A setup that executors find with the lake."""

    settings: Settings = field(default_factory=Settings)
    archive: str | None = None

    def there(self) -> "CountingAnywhere":
        assert self.archive is None
        return self


@pytest.mark.spark
def test_answers_come_in_the_order_of_the_jobs(spark: Any, tmp_path: Path) -> None:
    jobs: Any = [Doubling(n) for n in (3, 1, 2)]
    chunks: Any = SparkChunks(spark, CountingAnywhere(10))  # type: ignore[arg-type]
    assert chunks.do(jobs, None, [tmp_path] * 3, lambda done: None) == [16, 12, 14]


@pytest.mark.nightly
@pytest.mark.spark
def test_more_chunks_than_go_out_at_once(spark: Any, tmp_path: Path) -> None:
    jobs: Any = [Doubling(n) for n in range(300)]
    chunks: Any = SparkChunks(spark, CountingAnywhere(1))  # type: ignore[arg-type]
    done: list[int] = []
    assert chunks.do(jobs, None, [tmp_path] * 300, done.append) == [1 + 2 * n for n in range(300)]
    assert [len(wave) for wave in waves(jobs, None)] == [128, 128, 44]


@pytest.mark.spark
def test_the_first_job_that_fails_is_the_error_and_the_others_run(spark: Any, tmp_path: Path) -> None:
    jobs: Any = [Failing("first"), Failing("second"), Doubling(1, tmp_path / "ran")]
    chunks: Any = SparkChunks(spark, CountingAnywhere(0))  # type: ignore[arg-type]
    with pytest.raises(OpusError, match="first"):
        chunks.do(jobs, None, [tmp_path] * 3, lambda done: None)
    assert (tmp_path / "ran").exists()


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
