"""A whole night at sizes that no sample has: rebuild and generate end well, and their CPU grows at most as n^1.2."""

import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
MOST_EXPONENT = 1.2
VERBS = ("check", "review", "send", "approve", "book", "archive", "verify", "pay", "issue", "close", "open", "scan")
THINGS = ("invoice", "claim", "order", "letter", "form", "contract", "payment", "report", "receipt", "ticket", "file")
Event = tuple[str, str, int]  # case, activity, minute
Sources = dict[str, tuple[str, list[Event]]]  # by source its client and its events


def activity(number: int) -> str:
    """A name; the same number gives the same one."""
    verbs, things = len(VERBS), len(THINGS)
    series = number // (verbs * things)
    return f"{VERBS[number % verbs]} {THINGS[number // verbs % things]}" + (f" {series}" if series else "")


def activities(size: int) -> Sources:
    """One source with so many activities, each in about three of as many cases."""
    steps = [(f"c{case}", activity((case * 7919 + n) % size), case * 7 + n) for case in range(size) for n in range(3)]
    return {"wide": ("Acme", steps)}


def steps_of_a_case(size: int) -> Sources:
    """Three cases with so many events each."""
    return {"long": ("Acme", [(f"c{c}", activity((n * n + c) % 20), n) for c in range(3) for n in range(size)])}


def sources(size: int) -> Sources:
    """So many sources of ten clients."""
    events = [(f"c{c}", activity(n), c * 60 + n) for c in range(5) for n in range(4)]
    return {f"s{s}": ("Acme" if s % 10 == 0 else f"Client {s % 10}", events) for s in range(size)}


def clients(size: int) -> Sources:
    """So many clients in one source, told apart by a column."""
    rows = [(f"c{c}", activity(n), c * 60 + n) for c in range(5 * size) for n in range(4)]
    return {"many": ("", rows)}


def write(folder: Path, found: Sources, size: int) -> None:
    """Writes the history, and one contract with one intake."""
    for name, (client, events) in found.items():
        place = folder / "history" / name
        place.mkdir(parents=True)
        stated = f'client = "{client}"\n' if client else '[columns]\nclient = "client"\n'
        (place / "source.toml").write_text('industry = "retail"\n' + stated)
        with (place / "log.csv").open("w") as file:
            file.write("case,activity,time,client\n")
            for case, what, minute in events:
                day, hour = minute // 1440, minute // 60 % 24
                who = client or f"Acme {int(case[1:]) % size}"
                date = f"2025-{1 + day // 28 % 12:02}-{1 + day % 28:02}"
                file.write(f"{case},{what},{date}T{hour:02}:{minute % 60:02}:00Z,{who}\n")
    intake = folder / "intakes" / "acme" / "k" / "one"
    (intake / "input").mkdir(parents=True)
    name = "Acme 1" if "many" in found else "Acme"
    (intake.parent / "contract.toml").write_text(
        f'client = "{name}"\ncontract = "K"\nindustry = "retail"\ngain_usd = 50\n'
    )
    (intake / "input" / "letter.txt").write_text("Please check my invoice and pay it.")


def cpu_of(*words: str | Path) -> float:
    """Runs one command, which has to end well, and returns its CPU seconds with those of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # the limit of an intake is of time, which a loaded machine has less of
    environment = os.environ | {"OPUS_GENERATION_SECONDS_PER_INTAKE": "600"}
    done = subprocess.run(
        [sys.executable, "-m", "opus_pipelines.cli.main", *words], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture
def night(tmp_path: Path) -> Callable[[Callable[[int], Sources], int], float]:
    def run(shape: Callable[[int], Sources], size: int) -> float:
        folder = tmp_path / str(size)
        write(folder, shape(size), size)
        rebuilt = cpu_of("--lake", folder / "lake", "rebuild", "--history", folder / "history")
        return rebuilt + cpu_of("--lake", folder / "lake", "generate", "--intakes", folder / "intakes")

    return run


@pytest.mark.parametrize(
    ("shape", "small", "large"),
    [
        (activities, 5_000, 50_000),
        (steps_of_a_case, 10_000, 100_000),
        (sources, 100, 1_000),
        (clients, 100, 1_000),
    ],
)
def test_a_night_of_unusual_size_passes_and_grows_with_what_it_reads(
    shape: Callable[[int], Sources], small: int, large: int, night: Callable[[Callable[[int], Sources], int], float]
) -> None:
    costs = {size: night(shape, size) for size in (small, large)}
    exponent = math.log(costs[large] / costs[small]) / math.log(large / small)
    assert exponent <= MOST_EXPONENT, costs
