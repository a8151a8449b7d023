#!/usr/bin/env python3
"""What a night costs: everything new, one source of twenty changed, nothing new, everything again (`--full`).

    .venv/bin/python benchmarks/nights.py LOG [--sources 20] [--nights 4] [--work DIR]

LOG, a real event log, becomes twenty sources of twenty industries. The changed source gets one more small file; nobody
touches the nineteen others.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measuring import lay_out, manifest, opus, query

NIGHTS = (
    ("everything new", ()),
    ("one of them changed", ()),
    ("nothing new", ()),
    ("everything again, --full", ("--full",)),
)
EXTRA = "case,activity,time\n" + "".join(
    f"extra-{i},Review the file,2024-01-0{1 + i % 9}T08:00:00Z\n" for i in range(100)
)


def main() -> int:
    """Lay out the sources, go through the nights, print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--nights", type=int, default=len(NIGHTS), help="how many of the nights, from the first")
    parser.add_argument(
        "--work", type=Path, help="folder for the lake and the inputs, kept; default: a temporary one, removed"
    )
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-nights-"))
    try:
        for number in range(arguments.sources):
            lay_out(arguments.log, work / "history", f"source{number:02}")
        for place, (night, options) in enumerate(NIGHTS[: arguments.nights]):
            if place == 1:
                (work / "history" / "source00" / "more.csv").write_text(EXTRA)
            _say(work, night, options)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


def _say(work: Path, night: str, options: tuple[str, ...]) -> None:
    before = _last_read(work)
    found = opus(work, "rebuild", *options)
    read = sum(after != before.get(source) for source, after in _last_read(work).items())
    made = manifest(work)
    print(
        f"{night}: {found.seconds:.1f} s ({found.cpu_seconds:.1f} CPU s), peak {found.peak_bytes / 2**20:,.0f} MiB; "
        f"sources read {read}, "
        f"last mined {len(made['timings']['mined_sources'])}; snapshot {made['snapshot']}",
        flush=True,
    )


def _last_read(work: Path) -> dict[str, str]:
    if not (work / "lake").exists():
        return {}
    rows = query(work, "select source, max(last_read)::varchar as read from history_sources group by 1")
    return {row["source"]: row["read"] for row in rows}


if __name__ == "__main__":
    sys.exit(main())
