"""Files read side by side: the same lake as one after the other, and a process that dies costs its file only."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import REJECTS
from opus_pipelines.ingestion import file_workers, parallel_files
from opus_pipelines.lake.layout import PART, read_table
from tests.history_fixtures import Bench

LOG = "case_id,activity,timestamp\n{0}1,A,2020-01-01T00:00:00Z\n{0}1,B,2020-01-02T00:00:00Z\n{0}2,,\n{1},C,\n"
XES = (
    '<log><trace><string key="concept:name" value="{0}"/><event><string key="concept:name" value="A"/></event></trace>'
    '<trace><string key="concept:name" value="{1}"/><event><string key="concept:name" value="B"/></event></trace></log>'
)
BPMN = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="P{0}"><task id="a" name="{1}"/>'
    '<task id="b" name="B"/></process></definitions>'
)


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_files, "_LARGE", 1)
    monkeypatch.setattr(parallel_files, "_MUCH", 1)


def fill(bench: Any) -> None:
    bench.put("a/1.csv", LOG.format("x", "both"))
    bench.put("a/2.csv", LOG.format("y", "both"))  # a case of the first file, and the same event
    bench.put("a/3.xes", XES.format("both", "z"))
    bench.put("a/4.xes", XES.format("z9", "z8"))
    bench.put("a/5.xes", "<log><trace>")
    bench.put("a/6.csv", "case_id,activity\nx2,A\n")  # a case of the first file, where a row cannot be used
    bench.put("b/1.bpmn", BPMN.format(1, "A"))
    bench.put("b/2.bpmn", BPMN.format(2, "another"))  # the same task id, another name
    bench.put("c/1.csv", LOG.format("x", "both"))


def published(bench: Any, state: Any) -> Any:
    files = {s.source: (s.folder / PART).read_bytes() for s in state.sources}
    rejects = {
        f.parts[-2:]: read_table(REJECTS, f).to_pylist() for f in sorted((bench.lake.root / REJECTS.name).glob("*/*"))
    }
    rows = [{k: v for k, v in row.items() if k not in ("first_seen", "last_read")} for row in state.files]
    return files, rejects, rows, state.failed


@pytest.mark.long
def test_the_lake_is_the_same(make_bench: Any, everything_is_large: Any) -> None:
    made = []
    for processes in (1, 2, 3):
        bench = make_bench()
        fill(bench)
        said: list[str] = []
        made.append((published(bench, bench.read(processes=processes, progress=said.append)), said))
        assert not list((bench.lake.root / ".staging").glob("*"))
    assert made[0] == made[1] == made[2]
    (_, rejects, _, failed), _ = made[0]
    assert [
        (r["path"], r["reason_code"])
        for r in rejects["source_key=a", next(c for s, c in rejects if s == "source_key=a")]
    ] == [
        ("1.csv", "no_activity"),
        ("2.csv", "no_activity"),
        ("6.csv", "case_quarantined"),
    ]
    assert [line.partition(":")[0] for line in failed] == ["a/5.xes"]


class Killed:
    """Kills each process that is given a certain file; `times`: how often."""

    def __init__(self, path: str, times: int) -> None:
        self.path, self.times, self.started = path, times, file_workers._started

    def start(self) -> Any:
        connection, process = self.started()
        send = connection.send

        def watched(job: file_workers.Job) -> None:
            if job.file.path == self.path and self.times:
                self.times -= 1
                os.kill(process.pid, signal.SIGKILL)
            send(job)

        connection.send = watched  # type: ignore[method-assign]
        return connection, process


@pytest.mark.long
@pytest.mark.parametrize(("times", "lost"), [(1, False), (2, True)])
def test_a_process_that_dies_costs_its_file_only(
    bench: Any, everything_is_large: Any, monkeypatch: pytest.MonkeyPatch, times: int, lost: bool
) -> None:
    monkeypatch.setattr(file_workers, "_started", Killed("2.csv", times).start)
    bench.put("a/1.csv", LOG.format("x", "1"))
    bench.put("a/2.csv", LOG.format("y", "2"))
    bench.put("b/1.csv", LOG.format("x", "1"))
    state = bench.read(processes=2)
    statuses = {(r["source"], r["path"]): r["status"] for r in state.files}
    assert statuses == {
        ("a", "1.csv"): "loaded",
        ("a", "2.csv"): "rejected" if lost else "loaded",
        ("b", "1.csv"): "loaded",
    }
    assert [s.implementations for s in state.sources] == [2 if lost else 4, 2]
    if lost:
        assert "was ended by signal 9, twice" in state.failed[0]
        again = bench.read(processes=1)  # what was lost is tried again, and what came of it is another content
        assert (again.failed, [s.implementations for s in again.sources]) == ([], [4, 2])
        assert again.sources[0].content != state.sources[0].content
        assert not bench.read().changed


@pytest.mark.long
def test_no_process_is_left_when_the_run_breaks_off(
    bench: Any, everything_is_large: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[Any] = []
    started = file_workers._started
    monkeypatch.setattr(file_workers, "_started", lambda: (processes.append(made := started()), made)[1])
    bench.put("a/1.csv", LOG.format("x", "1"))
    bench.put("a/2.csv", LOG.format("y", "2"))

    def broken(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.read(processes=2, progress=broken)
    assert len(processes) == 2
    assert all(process.returncode is not None for _, process in processes)


def test_a_small_history_starts_no_process(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_workers, "_started", lambda: pytest.fail("a process was started"))
    fill(bench)
    assert bench.read(processes=4).changed


def test_sizes_are_of_what_is_unpacked(tmp_path: Path) -> None:
    from opus_pipelines.ingestion.plan import FilePlan

    assert [parallel_files._size(FilePlan(name, tmp_path, "", 10, "xes")) for name in ("a.xes", "a.xes.GZ")] == [
        10,
        150,
    ]
    assert parallel_files._size(FilePlan("a.xes", tmp_path, "", 10, "xes", refused="no")) == 0
