"""A run killed at any moment loses nothing: what was published before stays readable and whole, and the next run needs
no help.
"""

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.settings import Retention
from opus_pipelines.lake.layout import Lake

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("kill_points", HERE / "kill_points.py")
assert spec
assert spec.loader
kill_points = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kill_points)

STEPS = (("Receive order", "code"), ("Check stock", "human"), ("Ship goods", "human"), ("Send invoice", "code"))


def write_history(folder: Path, cases: int, source: str = "orders") -> Path:
    """A source of so many cases, all of the same four tasks: another number is a change that brings no new text."""
    (folder / source).mkdir(parents=True, exist_ok=True)
    (folder / source / "source.toml").write_text(
        'industry = "retail"\nclient = "Acme"\n[columns]\nactor_kind = "who"\n'
    )
    lines = ["case,activity,start,end,who,cost"]
    for case in range(cases):
        day = f"2026-{case // 28 + 1:02}-{case % 28 + 1:02}"
        lines += [
            f"c{case},{task},{day}T0{n}:00:00Z,{day}T0{n}:30:00Z,{who},1.5" for n, (task, who) in enumerate(STEPS)
        ]
    (folder / source / "orders.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A lake with a snapshot and a result, a changed history, and the aggregates that mining makes of it."""
    root = tmp_path_factory.mktemp("published")
    first, changed = write_history(root / "first", 3), write_history(write_history(root / "changed", 4), 2, "more")
    lake = Lake(root / "lake")
    kill_points.rebuild(lake, first)
    kill_points.generate(lake, "r1", kill_points.NOW)
    shutil.copytree(lake.root, root / "two")
    kill_points.rebuild(Lake(root / "two"), changed, now=kill_points.NOW + timedelta(days=1), retention=Retention())
    return root / "lake", changed, root / "two"


def killed_before_a_change_of_a_name(published: tuple[Path, Path, Path], step: str, stride: int) -> int:
    """Kill `step` before every `stride`th change of a name, each time from the same start; how many times it was."""
    lake, changed, two = published
    start = two if step == "rollback" else lake
    places = [str(start), str(changed), str(two / "aggregates")]
    command = [sys.executable, "-m", "tests.kill_points", step, *places, str(stride)]
    # a command that ran in this process may have left a variable that hides the folder `tests`
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, cwd=HERE.parent, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tried = json.loads(done.stdout)
    assert tried["wrong"] == []
    assert tried["before"] != tried["after"]
    return int(tried["points"])


@pytest.mark.long
def test_killed_before_some_changes_of_a_name(published: tuple[Path, Path, Path]) -> None:
    assert killed_before_a_change_of_a_name(published, "rebuild", 7) >= 2


@pytest.mark.nightly
@pytest.mark.parametrize(("step", "at_least"), [("rebuild", 12), ("generate", 25), ("rollback", 1)])
def test_killed_before_any_change_of_a_name(published: tuple[Path, Path, Path], step: str, at_least: int) -> None:
    assert killed_before_a_change_of_a_name(published, step, 1) >= at_least


class Opus:
    """`opus` on one small lake, each command a process group of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.lake, self.cases = root, Lake(root / "lake"), 2
        self.seconds: dict[str, float] = {}  # what a command took when it last ran through
        conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
        self.environment = os.environ | {
            "OPUS_LAKE": str(self.lake.root),
            "OPUS_HISTORY": str(root / "history"),
            "OPUS_INTAKES": str(root / "intakes"),
            "OPUS_SPARK_CONF": json.dumps(conf),
            "OPUS_SPARK_DRIVER_MEMORY": "512m",
        }
        for role, text in (
            ("input", "An order of ten chairs."),
            ("process", "Check stock, ship the goods, send the invoice."),
        ):
            (root / "intakes/Acme/Retail/order-1" / role).mkdir(parents=True)
            (root / "intakes/Acme/Retail/order-1" / role / "text.txt").write_text(text)

    def change(self) -> None:
        """Something new for a rebuild and for a generate, without a text that the encoder has not seen."""
        self.cases += 1
        write_history(self.root / "history", self.cases)
        contract = f'industry = "retail"\ngain_usd = {self.cases}\n'
        (self.root / "intakes/Acme/Retail/contract.toml").write_text(contract)

    def start(self, command: str) -> subprocess.Popen[str]:
        code = f"import sys; from opus_pipelines.cli.main import main; sys.exit(main([{command!r}]))"
        return subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=self.root,
            env=self.environment,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and what was said; `seconds` then holds how long it took."""
        began = time.monotonic()
        process = self.start(command)
        said = process.communicate(timeout=300)[1]
        self.seconds[command] = time.monotonic() - began
        return process.returncode, said

    def kill_after(self, seconds: float, command: str) -> subprocess.Popen[str]:
        """Start, wait, and kill -9 the process alone: its JVM is left to itself, as it would be."""
        process = self.start(command)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        with process:  # its pipe is closed, whatever its JVM still holds of it
            return process

    def unfinished(self) -> int:
        """Runs that Dagster's record believes to be running."""
        record = self.lake.dagster_home / "history" / "runs.db"
        if not record.is_file():
            return 0
        with contextlib.closing(sqlite3.connect(record)) as runs:
            unfinished = runs.execute(
                "SELECT count(*) FROM runs WHERE status IN ('NOT_STARTED', 'STARTING', 'STARTED')"
            ).fetchall()
        return int(unfinished[0][0])


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Opus:
    made = Opus(tmp_path_factory.mktemp("killed"))
    made.change()
    for command in ("rebuild", "generate"):
        assert made.run(command)[0] == 0
    return made


def kill_at_random(opus: Opus, command: str, moments: int, pointer: Callable[[Lake], Any]) -> None:
    """Kill `command` at so many random moments of its time, each followed by a look, a change, and a run that goes
    through.
    """
    seconds = opus.seconds[command]
    draw = random.Random(f"{command} {moments}")
    for moment in [draw.uniform(0.2, seconds) for _ in range(moments)]:
        opus.change()
        before = pointer(opus.lake)
        killed = opus.kill_after(moment, command)
        try:
            at = f"{command} killed after {moment:.1f} of {seconds:.1f} s"
            assert kill_points.complaints(opus.lake) == [], at
            died, moved = opus.unfinished(), pointer(opus.lake) != before
            opus.change()
            code, said = opus.run(command)
            assert code == 0, f"{at}; then: {said}"
            assert ("had died before its end" in said) == bool(died), f"{at}; then: {said}"
            assert opus.unfinished() == 0, at
            assert pointer(opus.lake) != before or moved, at
            assert kill_points.complaints(opus.lake) + kill_points.leftovers(opus.lake) == [], at
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(killed.pid, signal.SIGKILL)


POINTERS: dict[str, Callable[[Lake], Any]] = {
    "rebuild": Lake.current_snapshot,
    "generate": lambda lake: [result["result"] for result in lake.results()],
}


@pytest.mark.nightly
@pytest.mark.model
@pytest.mark.parametrize("command", ["rebuild", "generate"])
def test_killed_at_twenty_random_moments(opus: Opus, command: str) -> None:
    kill_at_random(opus, command, 20, POINTERS[command])
