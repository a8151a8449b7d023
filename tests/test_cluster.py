"""On a Spark standalone cluster a rebuild and a generation give the same bytes as on one machine, and go through where
a worker is taken away. TEST_FROM and TEST_MOMENTS choose the moments of the campaign.
"""

import contextlib
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cluster_night import Night, bare_executors, on_one_machine
from tests.kill_points import complaints, leftovers
from tests.spark_cluster import Cluster, can_hide, cluster, without

pytestmark = pytest.mark.nightly
FIRST, MOMENTS = int(os.environ.get("TEST_FROM", "0")), int(os.environ.get("TEST_MOMENTS", "20"))


@pytest.fixture(scope="module", autouse=True)
def bare() -> Iterator[None]:
    with bare_executors():
        yield


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A rebuild and a generation on this machine, in one process."""
    return on_one_machine(tmp_path_factory.mktemp("one-machine"), many=True)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def other(local: Night, root: Path, conf: Mapping[str, str] | None = None) -> Night:
    night = Night(local.inputs, root / "lake", conf)
    night.with_key(local.lake.kept / "private.key")
    return night


def test_the_same_bytes_on_a_cluster(local: Night, two_workers: Cluster, tmp_path: Path) -> None:
    night = other(local, tmp_path)
    night.opus("rebuild", two_workers.master)
    night.opus("generate", two_workers.master)
    assert night.snapshot() == local.snapshot()
    assert len(night.snapshot()) > 10
    assert night.results() == local.results()


@contextlib.contextmanager
def killing_a_worker(made: Cluster, home: Path) -> Iterator[None]:
    """Kills the first worker one second after it has an executor for a run that begins in the block."""
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
    yield
    killer.join(timeout=310)
    assert killed.is_set()


def test_a_worker_that_is_killed_in_the_middle_of_a_rebuild_costs_nothing(local: Night, tmp_path: Path) -> None:
    """The run goes on with the other worker."""
    home = tmp_path / "cluster"
    home.mkdir()
    night = other(local, tmp_path)
    with cluster(home) as made, killing_a_worker(made, home):
        night.opus("rebuild", made.master)
    assert night.snapshot() == local.snapshot()


def test_a_worker_that_is_killed_in_the_middle_of_a_generation_costs_nothing(local: Night, tmp_path: Path) -> None:
    """Its chunks are done again by the other worker, and every intake has one result."""
    home = tmp_path / "cluster"
    home.mkdir()
    night = other(local, tmp_path)
    night.opus("rebuild", "local[2]")
    with cluster(home) as made, killing_a_worker(made, home):
        night.opus("generate", made.master)
    assert len(list(home.glob("work-0/app-*/*"))) == 1  # the killed one had begun
    assert night.results() == local.results()
    assert complaints(night.lake) + leftovers(night.lake) == []


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A rebuild on this machine, in one process."""
    return on_one_machine(tmp_path_factory.mktemp("rebuilt"))


FAULTS = ("the driver killed", "a worker killed", "a worker silent for some seconds", "a worker silent until the end")
SILENT = {  # after so long without an answer a worker counts as lost
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "4s",
    "spark.executor.heartbeatInterval": "2s",
}


@pytest.mark.skipif(not can_hide(), reason="a process may not have its own view of the disk here")
def test_executors_that_share_no_folder_with_the_driver(rebuilt: Night, tmp_path: Path) -> None:
    """The workers see neither the history nor the lake: rows travel to them."""
    night = other(rebuilt, tmp_path)
    hidden = [night.inputs, night.lake.root]
    seen = subprocess.run([*without(hidden), "ls", "-A", *map(str, hidden)], capture_output=True, text=True, check=True)
    home = tmp_path / "cluster"
    home.mkdir()
    assert seen.stdout.split() == [f"{hidden[0]}:", f"{hidden[1]}:"]
    with cluster(home, hidden=hidden) as made:
        night.opus("rebuild", made.master, OPUS_SPARK_SHARED_FILES="false")
    assert list(home.glob("work-*/app-*/*/opus_package"))  # each executor got the package
    assert night.snapshot() == rebuilt.snapshot()


@pytest.mark.skipif(not can_hide(), reason="a process may not have its own view of the disk here")
def test_intakes_are_generated_by_executors_that_share_no_folder_with_the_driver(local: Night, tmp_path: Path) -> None:
    """The workers see neither the intakes nor the lake nor the driver's temporary files: the snapshot is brought to
    them, intakes and vectors travel to them, and rows come back.
    """
    night = other(local, tmp_path)
    night.opus("rebuild", "local[2]")
    drivers, home = tmp_path / "of the driver", tmp_path / "cluster"
    drivers.mkdir()
    home.mkdir()
    with cluster(home, hidden=[night.inputs, night.lake.root, drivers]) as made:
        night.opus("generate", made.master, OPUS_SPARK_SHARED_FILES="false", TMPDIR=str(drivers))
    assert list(home.glob("work-*/app-*/*/opus-snapshot-*/wkg/*/manifest.json"))  # an executor got the snapshot
    assert night.results() == local.results()
    assert len(night.results()["generation/intakes"]) == 4  # a file for each chunk


@pytest.mark.parametrize("number", range(FIRST, FIRST + MOMENTS))
def test_a_rebuild_is_disturbed_at_a_random_moment(
    rebuilt: Night, campaign: Cluster, tmp_path: Path, number: int
) -> None:
    """A killed driver costs its run, and the next one needs no help; what happens to a worker costs nothing.

    A worker that stands still (SIGSTOP) keeps its connections and answers nothing, as behind a network that is cut.
    """
    made, seconds = campaign, rebuilt.seconds
    draw = random.Random(f"cluster {number}")
    fault, worker, after = FAULTS[number % len(FAULTS)], draw.randrange(2), draw.uniform(0.5, seconds)
    at = f"moment {number}: {fault}, after {after:.1f} of {seconds:.1f} s"
    night = other(rebuilt, tmp_path, SILENT)
    process = night.start("rebuild", made.master)
    time.sleep(after)
    if fault == FAULTS[0]:
        process.kill()
        process.communicate(timeout=60)
        assert complaints(night.lake) == [], at
        night.opus("rebuild", made.master)
    else:
        if fault == FAULTS[1]:
            made.kill_worker(worker)
        else:
            made.pause_worker(worker)
            if fault == FAULTS[2]:
                time.sleep(draw.uniform(1.0, 8.0))
                made.go_on(worker)
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, f"{at}; {said[-3000:]}"
        if fault != FAULTS[2]:
            made.replace_worker(worker)
        night.opus("rebuild", made.master)  # the next one, without help
    assert night.snapshot() == rebuilt.snapshot(), at
    assert complaints(night.lake) + leftovers(night.lake) == [], at
    print(f"{at}: the same bytes", flush=True)


@pytest.fixture(scope="module")
def campaign(rebuilt: Night, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose workers are replaced."""
    with cluster(tmp_path_factory.mktemp("campaign")) as made:
        yield made
