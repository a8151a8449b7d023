"""On a Spark standalone cluster a rebuild and a generation give the same bytes as on one machine, and go through where
a worker is taken away.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.lake.layout import Lake
from tests.jobs.test_run_jobs import write_inputs
from tests.spark_cluster import Cluster, cluster

pytestmark = pytest.mark.nightly
INTAKES = 70  # of the contract: more than are generated in the process of the run


class Night:
    """A lake beside the inputs that all lakes share, and `opus` as it is typed."""

    def __init__(self, inputs: Path, lake: Path, key: Path | None = None) -> None:
        self.inputs, self.lake = inputs, Lake(lake)
        if key is not None:  # the same hashes of attributes
            kept = lake / "wkg" / "kept"
            kept.mkdir(parents=True)
            shutil.copy(key, kept)

    def opus(self, command: str, master: str) -> None:
        environment = os.environ | {
            "OPUS_LAKE": str(self.lake.root),
            "OPUS_HISTORY": str(self.inputs / "history"),
            "OPUS_INTAKES": str(self.inputs / "intakes"),
            "OPUS_SPARK_MASTER": master,
            "OPUS_SPARK_CONF": '{"spark.executor.memory": "700m"}',
        }
        done = subprocess.run(
            [sys.executable, "-m", "opus_pipelines.cli.main", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    def snapshot(self) -> dict[str, bytes]:
        """The tables of the snapshot and its index, by name."""
        folder = self.lake.snapshot_folder(self.lake.current_snapshot() or "")
        files = (f for f in folder.rglob("*") if f.is_file() and (f.suffix == ".parquet" or f.parent.name == "index"))
        return {f.relative_to(folder).as_posix(): f.read_bytes() for f in files}

    def results(self) -> dict[str, list[bytes]]:
        """The files of every dataset of the results but generation/runs, which has times."""
        datasets = [d for d in DATASETS.values() if "result" in d.partitions and d is not RUNS]
        return {d.name: [f.read_bytes() for f in sorted(self.lake.folder(d).rglob("*.parquet"))] for d in datasets}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A rebuild and a generation on this machine, in one process."""
    root = tmp_path_factory.mktemp("one-machine")
    settings = write_inputs(root)
    shutil.rmtree(settings.paths.intakes / "Acme" / "Wholesale")
    shutil.rmtree(settings.paths.intakes / "Acme" / "Retail" / "order-2")
    first = settings.paths.intakes / "Acme" / "Retail" / "order-1"
    for number in range(2, INTAKES + 1):
        copy = first.parent / f"order-{number}"
        shutil.copytree(first, copy)
        (copy / "input" / "text.txt").write_text(f"An order of {number} chairs.")
    night = Night(root, root / "lake")
    night.opus("rebuild", "local[2]")
    night.opus("generate", "local[2]")
    return night


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def other(local: Night, root: Path) -> Night:
    return Night(local.inputs, root / "lake", local.lake.kept / "private.key")


def test_the_same_bytes_on_a_cluster(local: Night, two_workers: Cluster, tmp_path: Path) -> None:
    night = other(local, tmp_path)
    night.opus("rebuild", two_workers.master)
    night.opus("generate", two_workers.master)
    assert night.snapshot() == local.snapshot()
    assert len(night.snapshot()) > 10
    assert night.results() == local.results()


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(local: Night, tmp_path: Path) -> None:
    """It is killed as soon as it has an executor for the run; the run goes on with the other worker."""
    home = tmp_path / "cluster"
    home.mkdir()
    night = other(local, tmp_path)
    with cluster(home) as made:
        killed = threading.Event()

        def kill() -> None:
            end = time.monotonic() + 300
            while time.monotonic() < end and not list((home / "work-0").glob("app-*/*/stderr")):
                time.sleep(0.1)
            time.sleep(1.0)  # the executor has begun
            made.kill_worker(0)
            killed.set()

        killer = threading.Thread(target=kill)
        killer.start()
        night.opus("rebuild", made.master)
        killer.join(timeout=310)
        assert killed.is_set()
    assert night.snapshot() == local.snapshot()
