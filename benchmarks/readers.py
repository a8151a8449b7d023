#!/usr/bin/env python3
"""Compares the reading speed of XES with the fastest reader that pm4py uses (rustxes), of CSV and Parquet with Polars.

One file, and eight on all cores, are read in turn in the same run.

    .venv/bin/python benchmarks/readers.py EVENT_LOGS --peer PYTHON [--log bpic2012.xes.gz] [--rounds 3]
        [--files 8] [--processes 2]

PYTHON is an interpreter that has the peers. The project does not depend on them; a scratch environment does:

    python3.11 -m venv /tmp/peer && /tmp/peer/bin/pip install rustxes polars

Ours: from the file to the finished rows of history/implementations. The peer: `import_xes`, to its table of events.
Each measurement is a process of its own; imports are not counted, starting the processes that read side by side is.
Printed: the median of the rounds in wall and CPU seconds, peak memory (of all its processes), and what the peer took
divided by what we took: above 1 ours is faster.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PEER = """
import json, sys, time
if ".xes" in sys.argv[1]:
    import rustxes
    read = rustxes.import_xes
else:
    import polars as pl
    read = pl.read_parquet if sys.argv[1].endswith(".parquet") else lambda path: pl.read_csv(path, try_parse_dates=True)
began, cpu = time.perf_counter(), time.process_time()
rows = 0
for path in sys.argv[1:]:
    table = read(path)
    rows += len(table[0] if isinstance(table, tuple) else table)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
done = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "rows": rows}
print(json.dumps(done | {"peak": peak}))
"""

OURS = """
import json, resource, sys, tempfile, time
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, "BENCHMARKS")
from measuring import Family, own_peak_mib
import opus_pipelines.history.formats.csv_log, opus_pipelines.history.formats.parquet_log, opus_pipelines.history.formats.xes
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan
from opus_pipelines.history.ingestion.parallel_files import FileReadPool, ParallelReading
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.formats import xes as columnar

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)

what, processes, *paths = sys.argv[1:]
if what == "scan":
    columnar.XesReader.plain = lambda self, text: columnar.scan(text) is not None
plans = []
for number, path in enumerate(map(Path, paths)):
    kind = next(kind for kind in ("xes", "csv", "parquet") if "." + kind in path.name)
    file = FilePlan(path.name, path, str(number), path.stat().st_size, kind)
    plans.append(SourcePlan(f"s{number}", path.parent, SourceSettings(timezone="UTC"), None, (file,), "", "", ""))
with tempfile.TemporaryDirectory() as folder:
    began, cpu = time.perf_counter(), spent()
    rows = 0
    parallel = ParallelReading(processes=int(processes))
    reading = FileReadPool(plans, Forgotten(), Path(folder), parallel, lambda line: None)
    with Family() as family, reading.running():
        for plan in plans:
            result = reading.read(plan, plan.files[0], OtherFiles())
            assert result.reason is None, result.reason
            rows += result.counts.records if what == "read" else 0
            result.drop()
        wall = time.perf_counter() - began
peak = own_peak_mib() << 10
if len(paths) > 1:
    peak += int(processes) * (family.largest_bytes >> 10)
print(json.dumps({"wall": wall, "cpu": spent() - cpu, "rows": rows, "peak": peak}))
""".replace("BENCHMARKS", str(Path(__file__).parent))


def main() -> int:
    """Measure in turn, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("event_logs", type=Path)
    parser.add_argument("--peer", required=True, help="an interpreter that has rustxes and polars")
    parser.add_argument("--log", default="bpic2012.xes.gz", help="file name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=8, help="copies that are read side by side")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [str(Path(folder, f"{number}-{arguments.log}")) for number in range(arguments.files)]
        for copy in copies:
            shutil.copyfile(arguments.event_logs / arguments.log, copy)
        many = f"{len(copies)} files, {arguments.processes} processes"
        kinds = {
            "peer, one file": [arguments.peer, "-c", PEER, copies[0]],
            "ours, one file": [sys.executable, "-c", OURS, "read", "1", copies[0]],
            "ours, one file, unpacking and scanning only": [sys.executable, "-c", OURS, "scan", "1", copies[0]],
            f"peer, {len(copies)} files": [arguments.peer, "-c", PEER, *copies],
            f"ours, {many}": [sys.executable, "-c", OURS, "read", str(arguments.processes), *copies],
        }
        if ".xes" not in arguments.log:
            del kinds["ours, one file, unpacking and scanning only"]
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
        for _ in range(arguments.rounds):
            for kind, command in kinds.items():
                found[kind].append(measured(command))
    report({kind: middle(rounds) for kind, rounds in found.items()})
    return 0


def measured(command: list[str]) -> dict[str, Any]:
    """What a process says of itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def middle(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """The median of every figure."""
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def report(found: dict[str, dict[str, float]]) -> None:
    """A table and the two ratios that matter."""
    print(f"{'':45s}{'wall s':>9s}{'CPU s':>9s}{'MiB':>8s}{'events':>12s}")
    for kind, figures in found.items():
        print(
            f"{kind:45s}{figures['wall']:9.2f}{figures['cpu']:9.2f}{figures['peak'] / 1024:8,.0f}{figures['rows']:12,.0f}"
        )
    peer, ours, *scan, peer_many, ours_many = found.values()
    print(f"one file: {peer['wall'] / ours['wall']:.2f} times the peer's speed (CPU {peer['cpu'] / ours['cpu']:.2f})")
    print(
        f"many files: {peer_many['wall'] / ours_many['wall']:.2f} times the peer's speed (CPU "
        f"{peer_many['cpu'] / ours_many['cpu']:.2f})"
    )
    if scan:
        print(f"unpacking and scanning take {scan[0]['cpu'] / ours['cpu']:.0%} of our CPU time")


if __name__ == "__main__":
    sys.exit(main())
