#!/usr/bin/env python3
"""Time and peak memory of `opus rebuild` over real event logs in one history folder, in a lake of its own.

    benchmarks/rebuild.py EVENT_LOGS [--logs helpdesk.xes.gz,...] [--work DIR]

EVENT_LOGS holds the logs. Prints a table: each source's records, and the run's wall time and peak memory (the resident
memory of the process and everything it started, summed and sampled four times a second), then the same for a second
rebuild with nothing changed.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOGS = "helpdesk.xes.gz,bpic2012.xes.gz,bpic2013_incidents.xes.gz,real_start_end_BPIC_2017_W.csv.gz"
ZONES = {"real_start_end_BPIC_2017_W.csv.gz": "Europe/Amsterdam"}
PAGE = 4096


def main() -> int:
    """Lay out the history folder, rebuild twice, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("event_logs", type=Path)
    parser.add_argument("--logs", default=LOGS, help="file names, comma-separated")
    parser.add_argument("--work", type=Path, help="folder for lake and inputs, kept; default: a temporary one, removed")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-rebuild-"))
    try:
        for name in arguments.logs.split(","):
            source = work / "history" / name.split(".")[0]
            source.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(arguments.event_logs / name, source / name)
            if name in ZONES:
                (source / "source.toml").write_text(f'timezone = "{ZONES[name]}"\n')
        for label in ("rebuild", "rebuild, nothing changed"):
            seconds, peak = measured(work)
            print(f"{label}: {seconds:.1f} s, peak memory {peak / 2**20:,.0f} MiB")
        report(work)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


def measured(work: Path) -> tuple[float, int]:
    """Seconds and peak bytes of one `opus rebuild`."""
    started, peak = time.monotonic(), 0
    process = subprocess.Popen([sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", "rebuild"], cwd=work)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.25)
    if process.returncode:
        sys.exit(f"opus rebuild ended with {process.returncode}")
    return time.monotonic() - started, peak


def resident(pid: int) -> int:
    """Resident bytes of a process and all its descendants; 0 for one that is gone."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        children = [int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return own + sum(resident(child) for child in children)


def report(work: Path) -> None:
    """The sources' counts and the snapshot's, from the lake's own views."""
    sql = """
        select source, sum(records) as records, sum(records_used) as used, sum(records_not_work) as not_work,
               sum(records_rejected) as rejected, sum(implementations) as cases
        from history_sources group by source order by source
    """
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", "query", sql]
    print(subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout)
    pointer = json.loads((work / "lake" / "wkg" / "current.json").read_text())
    manifest = json.loads((work / "lake" / "wkg" / pointer["snapshot"] / "manifest.json").read_text())
    print(f"snapshot {pointer['snapshot']}: {manifest['counts']}\nseconds per stage: {manifest['timings']}")


if __name__ == "__main__":
    sys.exit(main())
