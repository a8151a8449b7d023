"""The store fails, stands still or cuts connections at random moments of a publication, or the writer is killed there.

After each fault a reader sees the state before or the state after, whole; the next run of the machine goes through
without help; and every row that a run reported as published is there, with all rows of the runs after it. TEST_FROM and
TEST_MOMENTS choose the seeds of the campaign.
"""

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.upkeep.verify import verify
from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_publication import put
from tests.object_store_server import FAULTS

pytestmark = pytest.mark.long

FIRST, MOMENTS = int(os.environ.get("TEST_FROM", "0")), int(os.environ.get("TEST_MOMENTS", "100"))
SHORT, LONG = range(8), range(8 + FIRST, 8 + FIRST + MOMENTS)
RUN_REQUESTS = 24  # more than a run of this file makes
_ONE_RUN = """
import sys
from tests.lake.object_store.test_faults import one_run
from opus_pipelines.lake.layout import Lake
one_run(Lake(sys.argv[1]), sys.argv[2])
"""


def one_run(lake: Lake, name: str) -> None:
    """Publishes a folder of history and counts it in a kept file."""
    with lake.lock():
        put(lake, name, name * 1000)
        known = lake.kept / "count.json"
        count = sum(1 for _ in (lake.root / "wkg").glob("h*"))
        lake.replace_json(known, {"count": count})


def seen(lake: Lake) -> list[str]:
    """The names of what a lake has, after it was checked whole: files, hashes, and the kept count."""
    assert verify(lake).damage == []
    names = sorted(folder.name for folder in (lake.root / "wkg").glob("h*"))
    for name in names:
        assert (lake.root / "wkg" / name / "x").read_text() == name * 1000
    if names:
        assert (lake.kept / "count.json").read_text().split() == ["{", '"count":', str(len(names)), "}"]
    return names


class Plan:
    """Faults from one request on, for a number of requests."""

    def __init__(self, chance: random.Random) -> None:
        self._left_before, self._left = chance.randrange(RUN_REQUESTS), chance.choice([1, 1, 2, 5, 1000])
        self._kind = chance.choice(FAULTS)

    def __call__(self, method: str, path: str) -> str | None:
        if self._left_before:
            self._left_before -= 1
            return None
        self._left -= 1
        return self._kind if self._left >= 0 else None


def machines(place: Place) -> tuple[Machine, Machine]:
    return place.machine("one", retry_seconds=0.4), place.machine("two", retry_seconds=0.4)


def attempt(machine: Machine, name: str) -> bool:
    try:
        one_run(machine.lake(), name)
    except LakeError:
        return False
    return True


def check_seed(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    one, two = machines(place)
    assert attempt(one, "h0")
    truth = ["h0"]
    for step in (1, 2, 3):
        place.server.fault = Plan(chance)
        is_published = attempt(one, f"h{step}")
        made = [*truth, f"h{step}"]
        states = [made] if is_published else [truth, made]
        with suppress(LakeError):  # a reader under the same faults sees a whole state, or an error
            reader = two.reader()
            assert seen(reader) in states
        place.server.fault = lambda method, path: None
        now = seen(two.reader())
        assert now in states
        assert attempt(one, f"h{step}a")  # the next run, without help
        left = seen(two.reader())
        if is_published:
            assert left == sorted([*made, f"h{step}a"])
        assert {*now, f"h{step}a"} <= set(left)
        truth = left


@pytest.mark.parametrize("seed", SHORT)
def test_the_store_fails_at_a_random_moment(place: Place, seed: int) -> None:
    check_seed(place, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", LONG)
def test_the_store_fails_at_each_of_many_random_moments(place: Place, seed: int) -> None:
    check_seed(place, seed)


def check_kill(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    one, two = machines(place)
    assert attempt(one, "h0")
    root = one.lake().root
    before = len(place.server.requests)
    deadline = chance.randrange(1, RUN_REQUESTS)
    child = subprocess.Popen(
        [sys.executable, "-c", _ONE_RUN, str(root), "h1"], cwd=Path.cwd(), env={**os.environ, "PYTHONPATH": "."}
    )

    def kill(method: str, path: str) -> str | None:
        if len(place.server.requests) - before >= deadline:
            child.kill()
        return None

    place.server.fault = kill
    child.wait()
    place.server.fault = lambda method, path: None
    now = seen(two.reader())
    assert now in (["h0"], ["h0", "h1"])
    assert attempt(one, "h2")
    assert {*now, "h2"} <= set(seen(two.reader()))


@pytest.mark.parametrize("seed", range(2))
def test_the_writer_is_killed_at_a_random_request(place: Place, seed: int) -> None:
    check_kill(place, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", LONG)
def test_the_writer_is_killed_at_each_of_many_random_requests(place: Place, seed: int) -> None:
    check_kill(place, seed)


def test_a_store_that_does_not_answer_is_one_line_that_names_it(place: Place) -> None:
    machine = place.machine("one", retry_seconds=0.3)
    machine.lake()
    place.server.fault = lambda method, path: "error"
    with pytest.raises(LakeError, match=r"head.json of s3://.+ failed"):
        machine.reader()
