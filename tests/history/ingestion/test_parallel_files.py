"""Files read side by side: the same lake as one after the other, and a process that dies costs its file only."""

import gzip
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.schemas import REJECTS
from opus_pipelines.history.ingestion.parallel_files import ParallelReading, Sizes
from opus_pipelines.history.ingestion.read_file import unpacked_bytes
from opus_pipelines.lake.layout import PART, read_table
from tests.distributions import Install
from tests.history_fixtures import Bench

REAL = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
REAL /= "event_logs/helpdesk.xes.gz"
LOG = "case_id,activity,timestamp\n{0}1,A,2020-01-01T00:00:00Z\n{0}1,B,2020-01-02T00:00:00Z\n{0}2,,\n{1},C,\n"
XES = (
    '<log><trace><string key="concept:name" value="{0}"/><event><string key="concept:name" value="A"/></event></trace>'
    '<trace><string key="concept:name" value="{1}"/><event><string key="concept:name" value="B"/></event></trace></log>'
)
BPMN = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="P{0}"><task id="a" name="{1}"/>'
    '<task id="b" name="B"/></process></definitions>'
)


def parallel(processes: int) -> ParallelReading:
    """Every file is large enough for a worker process."""
    return ParallelReading(processes, file_bytes=1, total_bytes=1)


def children() -> set[str]:
    """The ids of the processes that this one started and that were not waited for."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


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
def test_the_lake_is_the_same(make_bench: Any) -> None:
    made = []
    for processes in (1, 2, 3):
        bench = make_bench()
        fill(bench)
        said: list[str] = []
        made.append((published(bench, bench.read(parallel=parallel(processes), progress=said.append)), said))
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


MORTAL = """
import os, signal
from pathlib import Path
from opus_pipelines.history.records.formats import Format
from opus_pipelines.history.formats.csv_log import read as read_csv

FORMAT = Format("mortal", (".mortal",), "mortal", position_unit="line", record_is_case=False)


def read(open_file, settings, sink):
    left = Path(__file__).with_name("left")
    if times := int(left.read_text()):
        left.write_text(str(times - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    read_csv(open_file, settings, sink)
"""


@pytest.fixture
def mortal(install: Install) -> Any:
    """Installs a log format whose reader kills its own process as often as it is told to."""
    site = install("mortal", "[opus_pipelines.log_formats]\nmortal = mortal:FORMAT\n", MORTAL)
    return lambda times: (site / "left").write_text(str(times))


@pytest.mark.long
@pytest.mark.parametrize(("times", "lost"), [(1, False), (2, True)])
def test_a_process_that_dies_costs_its_file_only(bench: Any, mortal: Any, times: int, lost: bool) -> None:
    mortal(times)
    bench.put("a/1.csv", LOG.format("x", "1"))
    bench.put("a/2.mortal", LOG.format("y", "2"))
    bench.put("b/1.csv", LOG.format("x", "1"))
    state = bench.read(parallel=parallel(2))
    statuses = {(r["source"], r["path"]): r["status"] for r in state.files}
    assert statuses == {
        ("a", "1.csv"): "loaded",
        ("a", "2.mortal"): "rejected" if lost else "loaded",
        ("b", "1.csv"): "loaded",
    }
    assert [s.implementations for s in state.sources] == [2 if lost else 4, 2]
    if lost:
        assert "signal 9" in state.failed[0]
        again = bench.read(parallel=parallel(1))  # the lost file is tried again, and its rows are another content
        assert (again.failed, [s.implementations for s in again.sources]) == ([], [4, 2])
        assert again.sources[0].content != state.sources[0].content
        assert not bench.read().changed


@pytest.mark.long
def test_no_process_is_left_when_the_run_breaks_off(bench: Any) -> None:
    bench.put("a/1.csv", LOG.format("x", "1"))
    bench.put("a/2.csv", LOG.format("y", "2"))
    before, while_reading = children(), set()

    def broken(line: str) -> None:
        while_reading.update(children() - before)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.read(parallel=parallel(2), progress=broken)
    assert len(while_reading) == 2
    assert children() == before


def test_a_small_history_starts_no_process(bench: Bench) -> None:
    fill(bench)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert bench.read(parallel=ParallelReading(processes=4)).changed
    assert resource.getrusage(resource.RUSAGE_CHILDREN) == before


def test_sizes_are_of_what_is_unpacked(tmp_path: Path) -> None:
    from opus_pipelines.history.ingestion.plan import FilePlan

    sizes = [unpacked_bytes(FilePlan(name, tmp_path, "", 10, "xes")) for name in ("a.xes", "a.xes.GZ")]
    assert sizes == [10, 150]
    assert unpacked_bytes(FilePlan("a.xes", tmp_path, "", 10, "xes", refused="no")) == 0


def on_executors(spark: Any, part: int = 32 << 20) -> ParallelReading:
    """Everything is read by Spark; XES logs of more than `part` bytes are cut."""
    return ParallelReading(1, spark_bytes=0, session=lambda size: spark, sizes=Sizes(part, wave=1 << 10))


def event(key: str, at: str = "2020-01-01T00:00:00Z") -> str:
    name = f'<string key="concept:name" value="{key}"/>' if key else ""
    return f'<event>{name}<date key="time:timestamp" value="{at}"/></event>'


def trace(case: str, *events: str) -> str:
    return f'<trace><string key="concept:name" value="{case}"/>{"".join(events)}</trace>\n'


def long_log(letter: str = "c", bad: int = 57, again: int | None = None) -> str:
    """A log of a hundred traces; of one an event has no activity, and one may stand twice."""
    traces = [
        trace(f"{letter}{i}", event("A"), event("" if i == bad else "B", "2020-01-02T00:00:00Z")) for i in range(100)
    ]
    traces += [trace(f"{letter}{again}", event("C", "2020-01-03T00:00:00Z"))] if again is not None else []
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0">\n{"".join(traces)}</log>\n'


@pytest.mark.spark
def test_executors_read_the_same(make_bench: Any, mortal: Any, spark: Any) -> None:
    made = []
    for parallel_reading in (parallel(1), on_executors(spark, part=8_000)):
        mortal(0)
        bench = make_bench()
        fill(bench)
        bench.put("d/long.xes", long_log())
        (bench.history / "d/packed.xes.gz").write_bytes(gzip.compress(long_log("d").encode(), mtime=0))
        bench.put("e/joined.xes", long_log(again=3))  # a case in the first and in the last part
        bench.put("f/uncut.xes", long_log().replace("</trace>", "</trace><!-- <trace> -->", 100))
        bench.put("f/latin.xes", long_log("é").replace("UTF-8", "ISO-8859-1").encode("latin-1"))
        bench.put("f/stray.xes", long_log("s").replace("</trace>", "</trace>" + event("Z"), 9))
        bench.put("g/broken.xes", long_log("b")[:-200])
        bench.put("g/empty.csv", "")
        made.append(published(bench, bench.read(parallel=parallel_reading)))
        assert not list((bench.lake.root / ".staging").glob("*"))
    assert made[0] == made[1]
    files, rejects, rows, failed = made[1]
    counts = {row["path"]: row["implementations"] for row in rows if row["source"] == "d"}
    assert counts == {"long.xes": 99, "packed.xes.gz": 99}
    assert [r["position"] for key, found in rejects.items() if key[0] == "source_key=d" for r in found] == [
        115,
        116,
    ] * 2
    assert sorted(line.partition(":")[0] for line in failed) == ["a/5.xes", "g/broken.xes", "g/empty.csv"]
    assert sorted(files) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.spark
@pytest.mark.parametrize(("times", "lost"), [(1, False), (2, True)])
def test_a_file_that_executors_cannot_read_is_read_here_and_costs_itself_only(
    bench: Any, mortal: Any, spark: Any, times: int, lost: bool
) -> None:
    mortal(times)  # no executor has this format
    bench.put("a/1.csv", LOG.format("x", "1"))
    bench.put("a/2.mortal", LOG.format("y", "2"))
    state = bench.read(parallel=on_executors(spark))
    assert {r["path"]: r["status"] for r in state.files} == {
        "1.csv": "loaded",
        "2.mortal": "rejected" if lost else "loaded",
    }
    assert [s.implementations for s in state.sources] == [2 if lost else 4]


@pytest.mark.spark
@pytest.mark.data
@pytest.mark.skipif(not REAL.is_file(), reason=f"no real data: {REAL}; OPUS_TEST_DATA says where it is")
def test_executors_read_a_real_log_in_parts(make_bench: Any, spark: Any) -> None:
    made = []
    for parallel_reading in (parallel(1), on_executors(spark, part=1 << 20)):
        bench = make_bench()
        bench.put("s/log.xes", gzip.decompress(REAL.read_bytes()))
        made.append(published(bench, bench.read(parallel=parallel_reading)))
    assert made[0] == made[1]
    assert sum(row["records_used"] for row in made[1][2]) == 21_348  # 127 of them equal another one
