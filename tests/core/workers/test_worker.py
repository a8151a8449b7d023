"""The process that does a run's jobs ends with the run, however the run ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.pool import Worker
from tests.core.workers.poison import gone

WORKPLACE = """
import os, time
from contextlib import contextmanager
from dataclasses import dataclass
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.workers.sandbox import Sandbox

def work(item):
    with open(item, "a") as told:
        told.write(f"{os.getpid()} {os.getppid()}")
    time.sleep(600)

@dataclass
class Setup:
    @contextmanager
    def open(self):
        with Sandbox(work, 600.0, 256) as sandbox:
            yield sandbox

@dataclass
class Hanging:
    told: str
    def run(self, state, report):
        report("begun")
        state.do(self.told)

@dataclass
class Saying:
    text: str
    def run(self, state, report):
        report("begun")
        if self.text == "wrong":
            raise InputError("contract.toml: no such price")
        if self.text == "dies":
            os._exit(7)
        if self.text == "is killed":
            os.kill(os.getpid(), 9)
        return self.text * 2
"""
RUN = """
import sys
from opus_pipelines.core.workers.pool import Worker
from workplace import Hanging, Setup

with Worker(Setup(), lambda line: print(line, flush=True)) as server:
    server.do(Hanging(sys.argv[1]))
"""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "workplace.py").write_text(WORKPLACE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    import workplace

    yield workplace
    del sys.modules["workplace"]


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_neither_it_nor_its_child_outlives_a_run_that_is_stopped(workplace: Any, tmp_path: Path, how: Any) -> None:
    told = tmp_path / "told"
    code = [sys.executable, "-c", RUN, str(told)]
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore Ctrl-C
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(code, **pipes, text=True, cwd=tmp_path, preexec_fn=heeding) as run:
        assert run.stdout
        assert run.stdout.readline() == "begun\n"
        while len((told.read_text() if told.exists() else "").split()) < 2:
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(how)
        run.wait(30)
    assert [gone(process) for process in told.read_text().split()] == [True, True]


def test_what_a_job_says_and_what_it_comes_to(workplace: Any) -> None:
    said = []
    with Worker(workplace.Setup(), said.append) as server:
        assert server.do(workplace.Saying("a")) == "aa"
        with pytest.raises(OpusError, match=r"^contract\.toml: no such price$"):
            server.do(workplace.Saying("wrong"))
        with pytest.raises(OpusError, match="ended with exit code 7"):
            server.do(workplace.Saying("dies"))
        with pytest.raises(OpusError, match="ended by signal 9: too little memory"):
            server.do(workplace.Saying("is killed"))
        assert server.do(workplace.Saying("b")) == "bb", "the next job starts another"
    assert said == ["begun"] * 5


@pytest.mark.long
def test_a_worker_finds_the_code_beside_the_package_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with Worker(ThisFolder()) as server:
        assert server.do(FolderOfWorker()) == str(tmp_path)


@dataclass
class ThisFolder:
    """A setup that stands in this test module, which no installed distribution holds."""

    @contextmanager
    def open(self) -> Iterator[Path]:
        yield Path.cwd()


@dataclass
class FolderOfWorker:
    def run(self, folder: Path, _report: Callable[[str], None]) -> str:
        return str(folder)
