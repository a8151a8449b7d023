#!/usr/bin/env python3
"""Writes a made event log of any size, and measures what a rebuild over it needs with a small heap of Spark's driver.

    .venv/bin/python benchmarks/large_log.py 1000000 10000000 [--heap 2g] [--work DIR]

Each size is a number of events. Each log is one source of Parquet files, events of 10 cases on average in the order of
their start, so that cases interleave. The generator is seeded: the same size gives the same rows. For each size it
prints rows, tasks and edges, the seconds of each stage, CPU seconds, and the peak resident memory of the
process, of its JVM and of the largest worker; below it stand the fitted exponents over the number of events.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))
from measuring import PAGE, machine, manifest, query

EVENTS_PER_CASE = 10
PROCESSES, TASKS = 20, 15  # so many processes of so many tasks each
CASES_PER_FILE = 100_000
SOURCE = 'industry = "made"\nclient = "Made"\n[columns]\nactor_kind = "who"\nsuccess = "ok"\n'
MINUTE = 60_000_000  # microseconds


def write(folder: Path, events: int, seed: int = 0) -> int:
    """Writes a source of about so many events into `folder`. Returns the exact number."""
    folder.mkdir(parents=True)
    (folder / "source.toml").write_text(SOURCE)
    cases, written = max(1, events // EVENTS_PER_CASE), 0
    for first in range(0, cases, CASES_PER_FILE):
        table = _events(first, min(CASES_PER_FILE, cases - first), np.random.default_rng([seed, first]))
        pq.write_table(table, folder / f"{first // CASES_PER_FILE:05}.parquet", compression="zstd")
        written += table.num_rows
    return written


def _events(first: int, cases: int, draw: np.random.Generator) -> pa.Table:
    """Returns the events of some cases in the order of their start.

    A case follows one process; of its steps a tenth are left out, a twentieth is done twice, and neighbours change
    places in a tenth.
    """
    process = draw.integers(PROCESSES, size=cases)
    length = np.clip(draw.poisson(EVENTS_PER_CASE, size=cases), 2, TASKS)
    case = np.repeat(np.arange(cases), length)
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    chance = draw.random(len(case))
    kept = (chance >= 0.1) | (step == 0)
    twice = kept & (chance > 0.95)
    case, step = (np.concatenate([column[kept], column[twice]]) for column in (case, step))
    swapped = draw.random(len(case)) < 0.1
    begins = draw.integers(0, 30 * 24 * 60, size=cases)[case] + step * 30 + np.where(swapped, 40, 0)
    start = (np.int64(1_767_225_600_000_000) + (first // CASES_PER_FILE) * 30 * 24 * 60 * MINUTE) + begins * MINUTE
    end = start + draw.integers(1, 25, size=len(case)) * MINUTE
    order = np.lexsort((step, start))
    names = np.array([f"Process {p} step {t}" for p in range(PROCESSES) for t in range(TASKS)])
    task = process[case] * TASKS + step
    failed = draw.random(cases) < 0.1
    columns = {
        "case": np.char.add("c", (first + case).astype("U10")),
        "activity": names[task],
        "start": start.astype("datetime64[us]"),
        "end": end.astype("datetime64[us]"),
        "who": np.where(task % 3 == 0, "human", "code"),
        "cost": np.round(draw.random(len(case)) * 5, 2),
        "ok": ~failed[case],
    }
    table = pa.table({name: pa.array(column[order]) for name, column in columns.items()})
    moments = pa.timestamp("us", tz="UTC")
    for name in ("start", "end"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(moments))
    return table


@dataclass
class Watched:
    """What one command used: seconds, CPU seconds, and peaks of resident bytes by kind of process."""

    seconds: float = 0.0
    ticks: dict[int, int] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=lambda: {"opus": 0, "jvm": 0, "worker": 0, "together": 0})

    @property
    def cpu_seconds(self) -> float:
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")

    def look(self, root: int) -> None:
        found = {"opus": 0, "jvm": 0, "worker": 0, "together": 0}
        waiting = [root]
        while waiting:
            pid = waiting.pop()
            try:
                command, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                for task in Path(f"/proc/{pid}/task").iterdir():
                    waiting += map(int, (task / "children").read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = rest.split()
            self.ticks[pid] = int(fields[11]) + int(fields[12])
            kind = "opus" if pid == root else "jvm" if command.endswith("(java") else "worker"
            found[kind] = max(found[kind], resident)
            found["together"] += resident
        for kind, value in found.items():
            self.peak[kind] = max(self.peak[kind], value)


def rebuild(work: Path, heap: str, forecasts: bool) -> Watched:
    """Runs `opus rebuild` in `work` with that heap of the driver. Raises SystemExit where it fails."""
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", "rebuild"]
    environment = os.environ | {
        "OPUS_HISTORY": str(work / "history"),
        "OPUS_SPARK_DRIVER_MEMORY": heap,
        "OPUS_FORECASTS_NIGHTLY": str(forecasts).lower(),
    }
    watched, began = Watched(), time.monotonic()
    with (work / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, cwd=work, env=environment, stderr=log)
        while process.poll() is None:
            watched.look(process.pid)
            time.sleep(0.25)
    watched.seconds = time.monotonic() - began
    if process.returncode:
        sys.exit(f"opus rebuild ended with {process.returncode}: {(work / 'log.txt').read_text()[-2000:]}")
    return watched


def measure(events: int, heap: str, work: Path, forecasts: bool) -> dict[str, object]:
    """Writes, rebuilds, and returns the figures of one size."""
    shutil.rmtree(work, ignore_errors=True)
    rows = write(work / "history" / "made", events)
    watched = rebuild(work, heap, forecasts)
    counted = query(work, "SELECT (SELECT count(*) FROM wkg_tasks) AS tasks, (SELECT count(*) FROM wkg_edges) AS edges")
    return {
        "events": rows,
        **counted[0],
        "cases": max(1, events // EVENTS_PER_CASE),
        "heap": heap,
        "wall_s": round(watched.seconds, 1),
        "cpu_s": round(watched.cpu_seconds, 1),
        "peak_mib": {kind: value >> 20 for kind, value in watched.peak.items()},
        "stages_wall_s": {k: v for k, v in manifest(work)["timings"].items() if isinstance(v, float | int)},
        "lake_mb": round(sum(f.stat().st_size for f in (work / "lake").rglob("*") if f.is_file()) / 1e6, 1),
    }


def exponent(sizes: list[float], values: list[float]) -> float:
    """Returns the slope of the logarithms, by least squares."""
    return float(np.polyfit([math.log(s) for s in sizes], [math.log(max(v, 1e-9)) for v in values], 1)[0])


def main() -> int:
    """Measures each size and prints it as a line of JSON, then the exponents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("events", type=int, nargs="+")
    parser.add_argument("--heap", default="2g", help="heap of Spark's driver")
    parser.add_argument("--forecasts", action="store_true", help="also forecast the open cases, which is left out")
    parser.add_argument("--work", type=Path, help="folder for log and lake, kept; default: a temporary one, removed")
    parser.add_argument("--out", type=Path, help="a JSON file for machine and figures")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-large-"))
    taken = []
    try:
        for events in arguments.events:
            taken.append(measure(events, arguments.heap, work / str(events), arguments.forecasts))
            print(json.dumps(taken[-1]), flush=True)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    sizes = [float(str(one["events"])) for one in taken]
    fitted = {k: round(exponent(sizes, [float(str(o[k])) for o in taken]), 2) for k in ("cpu_s",) if len(taken) > 1}
    print(json.dumps({"exponents": fitted}))
    if arguments.out:
        figures = {"machine": machine(), "taken": taken, "exponents": fitted}
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
