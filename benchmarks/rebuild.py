#!/usr/bin/env python3
"""Measures time and peak memory of `opus rebuild` over real history: all together, or with --each one by one.

    .venv/bin/python benchmarks/rebuild.py FILE... [--each] [--work DIR]

FILE is an event log, or a .tar.gz of models or exports, which is unpacked; each becomes a source (and an industry) of
its own. Prints a row a source: records used, put aside as no work, rejected; tasks, edges; seconds and peak memory
(resident memory of the process and everything it started, sampled four times a second).
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measuring import Measured, lay_out, manifest, opus, query

COUNTS = """
    select count(*) as files, sum(records) as records, sum(records_used) as used, sum(records_not_work) as not_work,
           sum(records_rejected) as rejected, count(*) filter (status = 'rejected') as files_rejected, sum(implementations) as cases,
           (select count(*) from wkg_tasks) as tasks, (select count(*) from wkg_edges) as edges
    from history_sources
"""


def main() -> int:
    """Lay out the history folders, rebuild, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--each", action="store_true", help="also every file alone")
    parser.add_argument(
        "--work", type=Path, help="folder for lakes and inputs, kept; default: a temporary one, removed"
    )
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-rebuild-"))
    groups = [[file] for file in arguments.files] if arguments.each else []
    if len(arguments.files) > 1 or not groups:
        groups.append(arguments.files)
    try:
        for group in groups:
            name = group[0].name.split(".")[0] if len(group) == 1 else f"{len(group)} sources"
            print(_row(name, work / name.replace(" ", "_"), group), flush=True)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


def _row(name: str, work: Path, files: list[Path]) -> str:
    for file in files:
        lay_out(file, work / "history")
    full, again = opus(work, "rebuild"), opus(work, "rebuild")
    counts = query(work, COUNTS)[0]
    stages = {k: v for k, v in manifest(work)["timings"].items() if k != "mined_sources"}
    return f"{name}: {counts}\n    rebuild {_shown(full)}; unchanged {_shown(again)}; stages {stages}"


def _shown(found: Measured) -> str:
    return f"{found.seconds:.1f} s ({found.cpu_seconds:.1f} CPU s), peak {found.peak_bytes / 2**20:,.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
