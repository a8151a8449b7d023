"""One writer at a time: leases, their fencing, two writers at once, and machines whose clocks are wrong."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.lake.object_store.commits import Head, read_head, write_commit
from opus_pipelines.lake.object_store.lease import Lease, LeaseLost
from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_publication import bucket_of, put
from tests.object_store_server import Server

pytestmark = pytest.mark.long

RUN_OUT_SECONDS = 2.1  # a lease of half a second, by times of the store in whole seconds
_DIES = """
import os, sys
from pathlib import Path
from opus_pipelines.lake.layout import Lake
lake = Lake(sys.argv[1])
lock = lake.lock()
lock.__enter__()
with lake.staging() as staged:
    (staged / "new").mkdir()
    (staged / "new" / "x").write_text("made, and not sent")
    lake.publish(staged / "new", lake.root / "wkg" / "w1")
os.kill(os.getpid(), 9)
"""


def names(machine: Machine) -> list[str]:
    """The folders that a reader who begins now sees below wkg."""
    folder = machine.reader().root / "wkg"
    return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []


@contextmanager
def cut(line: Server) -> Iterator[None]:
    """Cuts a machine off until its lease has run out, and within the block."""
    line.fault = lambda method, path: "error"
    time.sleep(RUN_OUT_SECONDS)
    yield
    line.fault = lambda method, path: None


def test_a_second_writer_is_told_who_writes(place: Place) -> None:
    one, two = place.machine("one").lake(), place.machine("two").lake()
    with (
        one.lock(),
        pytest.raises(LakeHeld, match=r"another run \(process \d+ on .*\) is writing to s3://"),
        two.lock(),
    ):
        pass
    with two.lock():
        put(two, "w1", "x")
    assert names(place.machine("three")) == ["w1"]


def test_of_writers_at_once_none_publishes_into_the_run_of_another(place: Place) -> None:
    lakes = [place.machine(str(number)).lake() for number in range(6)]
    start = threading.Barrier(len(lakes))

    def write(number: int) -> bool:
        start.wait()
        try:
            with lakes[number].lock():
                put(lakes[number], f"w{number}", "x")
                time.sleep(0.3)
        except LakeHeld:
            return False
        return True

    with ThreadPoolExecutor(len(lakes)) as pool:
        won = [f"w{number}" for number, has_won in enumerate(pool.map(write, range(6))) if has_won]
    assert won != []
    assert names(place.machine("reader")) == won


def test_of_conditional_writes_of_the_head_exactly_one_wins(place: Place) -> None:
    bucket = bucket_of(place.machine())
    for _ in range(3):
        before = read_head(bucket)
        start = threading.Barrier(8)

        def commit(token: int, before: Head = before, start: threading.Barrier = start) -> Head | None:
            start.wait()
            return write_commit(bucket, before, {}, token)

        with ThreadPoolExecutor(8) as pool:
            heads = [head for head in pool.map(commit, range(8)) if head is not None]
        assert heads == [read_head(bucket)]


def test_a_writer_whose_lease_was_taken_over_publishes_nothing(place: Place, line: Server) -> None:
    one, two = place.machine("one", line, lease_seconds=0.5, retry_seconds=0.5).lake(), place.machine("two")
    with one.lock():
        put(one, "w0", "before")

    def outlive() -> None:
        with one.lock():
            put(one, "w1", "late")
            with cut(line):
                lake = two.lake()
                with lake.lock():
                    put(lake, "w2", "new")

    with pytest.raises(LeaseLost, match="another writer has taken over s3://"):
        outlive()
    assert names(two) == ["w0", "w2"]
    with one.lock():  # the next run of that machine begins from what the other one published
        put(one, "w3", "again")
    assert names(two) == ["w0", "w2", "w3"]


def test_the_old_writer_is_fenced_off_before_the_new_one_publishes(place: Place) -> None:
    machine = place.machine("one", lease_seconds=0.5)
    one, two = machine.lake(), place.machine("two").lake()
    with one.lock():
        put(one, "w0", "before")
    old, head = Lease(bucket_of(machine), "a machine that stood still"), read_head(bucket_of(machine))
    old.acquire()
    old.stop()  # it renews its lease no more, and does not know that time went by
    time.sleep(RUN_OUT_SECONDS)
    with two.lock():
        assert write_commit(bucket_of(machine), head, {}, old.token) is None
        put(two, "w1", "new")
    assert names(place.machine("two")) == ["w0", "w1"]


def test_a_run_whose_lease_was_taken_over_is_told_before_it_ends(place: Place, line: Server) -> None:
    one, two = place.machine("one", line, lease_seconds=0.5, retry_seconds=0.5).lake(), place.machine("two").lake()

    def outlive() -> None:
        with one.lock():
            with cut(line), two.lock():
                pass
            time.sleep(1)
            put(one, "w1", "late")

    with pytest.raises(LakeError, match="nothing more of this run is published"):
        outlive()
    assert names(place.machine("two")) == []


def test_a_lease_that_ran_out_and_that_nobody_took_goes_on(place: Place, line: Server) -> None:
    lake = place.machine("one", line, lease_seconds=0.5, retry_seconds=0.5).lake()
    with lake.lock():
        put(lake, "w1", "late, but alone")
        with cut(line):
            pass
    assert names(place.machine("two")) == ["w1"]


def test_a_dead_writer_is_followed_at_once_on_its_machine_and_after_its_lease_on_others(place: Place) -> None:
    machine = place.machine("one")
    lake = machine.lake()
    with lake.lock():
        put(lake, "w0", "x")
    died = subprocess.run([sys.executable, "-c", _DIES, str(lake.root)], check=False, env=os.environ)
    assert died.returncode == -9
    two = place.machine("two").lake()
    with pytest.raises(LakeHeld, match="its lease ends by itself within 30 s"), two.lock():
        pass
    assert names(place.machine("two")) == ["w0"]
    with machine.lake().lock():
        put(lake, "w2", "x")
    assert names(place.machine("two")) == ["w0", "w1", "w2"]


def test_a_store_that_ignores_conditions_takes_no_lake(place: Place) -> None:
    """S3Proxy 2.6 answers 200 to a conditional write whose condition does not hold."""
    lake = place.machine().lake()
    place.server.ignores_conditions = True
    with pytest.raises(LakeError, match="the store ignores the conditions of writes"), lake.lock():
        pass
    place.server.ignores_conditions = False
    with lake.lock():
        put(lake, "w0", "x")
    assert names(place.machine("two")) == ["w0"]


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_wrong_clock_of_a_machine_ends_no_lease(place: Place, hours: int, tmp_path: Path) -> None:
    """The second machine's clock is wrong by more than a day: it neither takes a lease that lives nor waits for one
    that ended."""
    lake = place.machine("one").lake()
    two = place.machine("two").lake()
    code = (
        "import sys, time, datetime\n"
        f"shift = {hours} * 3600\n"
        "now, real = time.time, datetime.datetime\n"
        "time.time = lambda: now() + shift\n"
        "class Skewed(real):\n"
        "    @classmethod\n"
        "    def now(cls, tz=None): return real.now(tz) + datetime.timedelta(seconds=shift)\n"
        "datetime.datetime = Skewed\n"
        "from opus_pipelines.core.errors import LakeHeld\n"
        "from opus_pipelines.lake.layout import Lake\n"
        "try:\n"
        "    with Lake(sys.argv[1]).lock(): print('taken')\n"
        "except LakeHeld: print('held')\n"
    )

    def attempt() -> str:
        done = subprocess.run([sys.executable, "-c", code, str(two.root)], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    with lake.lock():
        assert attempt() == "held"
    lease = Lease(bucket_of(place.machine("one", lease_seconds=0.5)), "a dead machine")
    lease.acquire()
    lease.stop()
    time.sleep(RUN_OUT_SECONDS)
    assert attempt() == "taken"
