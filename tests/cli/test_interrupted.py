"""Ctrl-C at any moment of a command, sent to a real process: one line, exit code 1, and no trace."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake
from tests.published_lake import publish

SEED = 15
ENDLESS = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range * 7 % 13 = b.range % 11"
LINES = ("opus: stopped before it began\n", "opus: stopped; what was published before stays as it is\n")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Lake(tmp_path_factory.mktemp("lake"))
    publish(made)
    return made.root


@pytest.fixture
def ctrl_c() -> Iterator[threading.Timer]:
    """Sends this process the signal of Ctrl-C a second after it was started."""
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    yield timer
    timer.cancel()


@pytest.mark.long
def test_ctrl_c_ends_a_question_that_duckdb_works_on(
    lake: Path, ctrl_c: threading.Timer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--lake", str(lake), "query", "SELECT 1"]) == 0  # what is loaded once is loaded before the second runs
    capsys.readouterr()
    ctrl_c.start()
    began = time.monotonic()
    assert main(["--lake", str(lake), "query", ENDLESS]) == 1
    assert capsys.readouterr().err == LINES[1]
    assert time.monotonic() - began < 30  # `query.seconds` is longer


@pytest.mark.long
@pytest.mark.parametrize("moments", [2, pytest.param(40, marks=pytest.mark.nightly)], ids=["small", "large"])
def test_ctrl_c_at_any_moment_is_one_line(moments: int, lake: Path) -> None:
    draw = random.Random(SEED)
    command = [sys.executable, "-m", "opus_pipelines.cli.start", "--lake", str(lake), "query", ENDLESS]
    ended = list[tuple[int, str]]()
    for _ in range(moments):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        time.sleep(draw.uniform(0.5, 3.0))  # the interpreter itself takes the first tenths of a second
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        ended.append((process.returncode, said))
    assert [one for one in ended if one[0] != 1 or one[1] not in LINES] == []
