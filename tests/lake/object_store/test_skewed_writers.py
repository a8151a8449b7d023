"""Two writers with wrong clocks, one of which is cut off from the store at random moments for longer than its lease.

After each disturbance a reader sees a whole state with every run that was reported as published, and both writers go on
without help. TEST_FROM and TEST_MOMENTS choose the seeds of the campaign.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_faults import seen
from tests.object_store_server import Server

FIRST, MOMENTS = int(os.environ.get("TEST_FROM", "0")), int(os.environ.get("TEST_MOMENTS", "100"))
LEASE_SECONDS, HOURS = 0.5, 30.0
_WRITER = """
import datetime, json, sys, time
shift = float(sys.argv[1]) * 3600
now, real = time.time, datetime.datetime
time.time = lambda: now() + shift
class Skewed(real):
    @classmethod
    def now(cls, tz=None):
        return real.now(tz) + datetime.timedelta(seconds=shift)
datetime.datetime = Skewed
from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.core.settings import ObjectStore
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import local_root
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        lake = Lake(local_root(asked["url"], ObjectStore(**asked["settings"])))
        with lake.lock():
            with lake.staging() as staged:
                (staged / "new").mkdir()
                (staged / "new" / "x").write_text(asked["name"] * 1000)
                lake.publish(staged / "new", lake.root / "wkg" / asked["name"])
            time.sleep(asked["hold"])
            count = sum(1 for _ in (lake.root / "wkg").glob("h*"))
            lake.replace_json(lake.kept / "count.json", {"count": count})
        said = "published"
    except LakeHeld:
        said = "held"
    except LakeError as error:
        said = "refused: " + str(error)
    print(said, flush=True)
"""


class Writer:
    """A process with a clock that is wrong by some hours."""

    def __init__(self, hours: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(hours)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._line() == "ready"

    def ask(self, machine: Machine, name: str, hold: float) -> None:
        asked = {"url": machine.url, "settings": machine.settings.model_dump(mode="json"), "name": name, "hold": hold}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        return self._line()

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def writers() -> Iterator[tuple[Writer, Writer]]:
    """One is 30 hours behind, the other 30 hours ahead."""
    with pytest.MonkeyPatch.context() as patch:
        from tests.object_store_server import KEY_ID, SECRET

        for name, value in (("ACCESS_KEY_ID", KEY_ID), ("SECRET_ACCESS_KEY", SECRET), ("REGION", "us-east-1")):
            patch.setenv(f"AWS_{name}", value)
        pair = Writer(-HOURS), Writer(HOURS)
        yield pair
        for writer in pair:
            writer.stop()


def check(place: Place, line: Server, writers: tuple[Writer, Writer], seed: int) -> list[str]:
    """One disturbance; returns what the two writers said."""
    draw = random.Random(f"skewed {seed}")
    options = {"lease_seconds": LEASE_SECONDS, "retry_seconds": 0.5}
    one, two = place.machine("one", line, **options), place.machine("two", **options)
    first, second = writers
    first.ask(one, "h0", 0.0)
    assert first.answer() == "published"
    cut_after, cut_for = draw.uniform(0, 1.0), draw.choice([0.3, 2.5])

    def cut() -> None:
        time.sleep(cut_after)
        line.fault = lambda method, path: "error"
        time.sleep(cut_for)
        line.fault = lambda method, path: None

    cutter = threading.Thread(target=cut)
    cutter.start()
    first.ask(one, "h1", draw.uniform(0, 3.5))
    time.sleep(draw.uniform(0, 3.5))
    second.ask(two, "h2", draw.uniform(0, 1.0))
    said = [first.answer(), second.answer()]
    cutter.join()
    truth = {"h0", *(name for name, answer in zip(("h1", "h2"), said, strict=True) if answer == "published")}
    now = seen(place.machine("reader").reader())
    assert truth <= set(now), said
    assert now in (sorted(truth), sorted(truth | {"h1"}), sorted(truth | {"h2"})), said
    second.ask(two, "h3", 0.0)
    assert second.answer() == "published", said
    first.ask(one, "h4", 0.0)
    assert first.answer() == "published", said
    assert {*now, "h3", "h4"} <= set(seen(place.machine("reader").reader())), said
    return said


@pytest.mark.long
@pytest.mark.parametrize(("is_taken", "said"), [(False, "published"), (True, "refused: another writer has taken over")])
def test_a_lease_that_ran_out_is_renewed_by_its_writer_unless_another_took_it(
    place: Place, line: Server, writers: tuple[Writer, Writer], is_taken: bool, said: str
) -> None:
    """The clocks of the two are 60 hours apart, and neither is asked."""
    options = {"lease_seconds": LEASE_SECONDS, "retry_seconds": 0.5}
    one, two = place.machine("one", line, **options), place.machine("two", **options)
    first, second = writers
    first.ask(one, "h0", 2.8)
    time.sleep(0.3)
    line.fault = lambda method, path: "error"
    time.sleep(2.2)
    if is_taken:
        second.ask(two, "h1", 0.0)
        assert second.answer() == "published"
    line.fault = lambda method, path: None
    assert first.answer().startswith(said)
    assert seen(place.machine("reader").reader()) == (["h1"] if is_taken else ["h0"])


@pytest.mark.long
def test_two_skewed_writers(place: Place, line: Server, writers: tuple[Writer, Writer]) -> None:
    check(place, line, writers, -1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(FIRST, FIRST + MOMENTS))
def test_two_skewed_writers_at_random_moments(
    place: Place, line: Server, writers: tuple[Writer, Writer], seed: int
) -> None:
    print(f"said: {check(place, line, writers, seed)}")
