"""A command of many runs holds one lease, and publishes its runs in few commits without losing one."""

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.commits import Head, prune, read_head, write_commit
from opus_pipelines.lake.object_store.lease import Lease, LeaseLost
from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_publication import bucket_of, put, put_and_raise
from tests.lake.object_store.test_writers import RUN_OUT_SECONDS, names
from tests.object_store_server import Server

RUNS = 30


def run(lake: Lake, name: str) -> None:
    with lake.lock():
        put(lake, name, name)


def commits(machine: Machine) -> int:
    return read_head(bucket_of(machine)).number


@pytest.mark.long
def test_many_runs_are_published_in_few_commits(place: Place) -> None:
    machine = place.machine()
    lake = machine.lake()
    with lake.batch():
        for number in range(RUNS):
            run(lake, f"w{number:02}")
            if number == 0:
                assert names(place.machine("two")) == ["w00"]  # at once: nothing has told yet that a commit is slow
    assert names(place.machine("two")) == [f"w{number:02}" for number in range(RUNS)]
    assert commits(machine) < RUNS / 2


def test_a_batch_in_a_folder_alone_has_no_effect(root: Path) -> None:
    lake = Lake(root)
    with lake.batch():
        run(lake, "w0")
        run(lake, "w1")
    assert sorted(one.name for one in (root / "wkg").iterdir()) == ["w0", "w1"]


def test_a_run_that_fails_costs_no_other(place: Place) -> None:
    lake = place.machine().lake()
    with lake.batch():
        run(lake, "w0")
        with pytest.raises(ZeroDivisionError):
            put_and_raise(lake, ZeroDivisionError())
        run(lake, "w2")
    assert names(place.machine("two")) == ["w0", "w1", "w2"]


@pytest.mark.long
def test_other_writers_are_refused_between_the_runs(place: Place) -> None:
    lake, two = place.machine().lake(), place.machine("two").lake()
    code = "import sys; from opus_pipelines.lake.layout import Lake\nwith Lake(sys.argv[1]).lock(): pass"
    with lake.batch():
        run(lake, "w0")
        with pytest.raises(LakeHeld, match="is writing to s3://"), two.lock():
            pass
        done = subprocess.run([sys.executable, "-c", code, str(lake.root)], check=False, capture_output=True, text=True)
        assert "LakeHeld: another run" in done.stderr
    with two.lock():
        put(two, "w1", "x")
    assert names(place.machine("three")) == ["w0", "w1"]


@pytest.mark.long
@pytest.mark.parametrize("fault", ["error", "unheard"])
def test_a_store_that_is_away_for_a_while_delays_what_is_published(place: Place, line: Server, fault: str) -> None:
    """Where the answer to the write of the head was lost, the head is found to be this command's own."""
    machine = place.machine("one", line, retry_seconds=0.4)
    lake = machine.lake()
    with lake.batch():
        run(lake, "w0")
        time.sleep(1.0)  # so that the next commit is due
        is_down: list[bool] = []

        def answer(method: str, path: str) -> str | None:
            if method == "PUT" and path.endswith("head.json") and not is_down:
                is_down.append(True)
                return fault
            return "error" if is_down else None

        line.fault = answer
        run(lake, "w1")
        assert is_down == [True]
        run(lake, "w2")
        line.fault = lambda method, path: None
    assert names(place.machine("two")) == ["w0", "w1", "w2"]


@pytest.mark.long
def test_a_batch_whose_lease_was_taken_over_publishes_nothing_more(place: Place, line: Server) -> None:
    machine = place.machine("one", line, lease_seconds=0.5, retry_seconds=0.5)
    lake, two = machine.lake(), place.machine("two").lake()

    def outlive() -> None:
        with lake.batch():
            run(lake, "w0")
            line.fault = lambda method, path: "error"
            time.sleep(RUN_OUT_SECONDS)
            run(lake, "made, and not sent")
            run(two, "w1")
            line.fault = lambda method, path: None
            time.sleep(1.0)
            with pytest.raises(LakeError, match="nothing more of this run is published"):
                run(lake, "w2")

    with pytest.raises(LeaseLost):
        outlive()
    assert names(place.machine("two")) == ["w0", "w1"]
    run(machine.lake(), "w3")
    assert names(place.machine("two")) == ["w0", "w1", "w3"]


def test_nothing_is_erased_within_a_batch(place: Place) -> None:
    lake = place.machine().lake()
    with lake.batch(), pytest.raises(LakeError, match="nothing is erased"), lake.lock(erase=True):
        pass


@pytest.mark.long
def test_commits_that_stay_are_not_read_to_remove_fewer(place: Place) -> None:
    """Within the time of grace each commit stays, so a prune reads none of them."""
    machine = place.machine(grace_hours=24)
    bucket = bucket_of(machine)
    lease = Lease(bucket, "a folder")
    lease.acquire()
    head: Head | None = read_head(bucket)
    for _ in range(12):
        assert head is not None
        head = write_commit(bucket, head, {}, lease.token)
    assert head is not None
    before = len(place.server.requests)
    assert prune(bucket, head, lease, timedelta(hours=24).total_seconds()) == 0
    assert len(place.server.requests) - before == 2  # the time of the head, and the list of commits
    time.sleep(2.1)  # the store's times are whole seconds
    head = write_commit(bucket, head, {}, lease.token)
    assert head is not None
    assert prune(bucket, head, lease, 1.0) == 11
    lease.release()
