#!/usr/bin/env python3
"""Predict plans (which tools, in which order, which links) for requests with the real pipeline, in a lake of its own.

    benchmarks/plans.py HISTORY.jsonl INTAKES.jsonl PREDICTIONS.jsonl [--work DIR]

HISTORY and INTAKES have the form that the benchmark's own script writes: {"id", "request", "context"?, "plan", "links"} a line, an intake
without plan and links. The plans become one history source (a link makes its first tool a predecessor of its second), every request an
intake of its text alone. A prediction is the rank-1 workflow with the pairs to be expected: {"id", "plan", "links"}.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from logplans import predict, write  # type: ignore[import-not-found]  # beside this file
from sopbench import opus, read  # type: ignore[import-not-found]

SOURCE = """\
format = "jsonl"
industry = "plans"

[record]
case = "id"
description = "text"
tasks = "steps"

[task]
activity = "tool"
predecessors = "predecessors"
"""


def main() -> int:
    """Write the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("intakes", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--work", type=Path, help="folder for lake and inputs, kept; default: a temporary one, removed")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-plans-"))
    try:
        ids = write_inputs(arguments.history, arguments.intakes, work)
        for verb in ("rebuild", "generate"):
            started = time.monotonic()
            opus(work, verb)
            print(f"{verb}: {time.monotonic() - started:.1f} s", file=sys.stderr)
        whole, _ = predict(work)
        write(arguments.predictions, ids, whole)
        print(f"{sum(f in whole for f in ids)} of {len(ids)} predicted, in {arguments.predictions}", file=sys.stderr)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


def write_inputs(history: Path, intakes: Path, work: Path) -> dict[str, str]:
    """History source and intake folders below `work`; returns the id of every intake folder."""
    source = work / "history" / "plans"
    source.mkdir(parents=True, exist_ok=True)
    with (source / "plans.jsonl").open("w") as file:
        file.writelines(json.dumps(record(row), ensure_ascii=False) + "\n" for row in read(history))
    (source / "source.toml").write_text(SOURCE)
    ids = {}
    for number, row in enumerate(read(intakes)):
        folder = work / "intakes" / "client" / "contract" / f"request{number:06d}"
        (folder / "input").mkdir(parents=True, exist_ok=True)
        (folder / "input" / "request.txt").write_text(text_of(row))
        ids[folder.name] = row["id"]
    (work / "intakes" / "client" / "contract" / "contract.toml").write_text('industry = "plans"\n')
    return ids


def record(row: dict[str, Any]) -> dict[str, Any]:
    """A plan as a case: each tool once, with the places of the tools that are linked to it."""
    tools = list(dict.fromkeys(row["plan"]))
    place = {tool: n for n, tool in enumerate(tools)}
    before: dict[str, list[int]] = {tool: [] for tool in tools}
    for a, b in row["links"]:
        if a in place and b in place:
            before[b].append(place[a])
    return {"id": row["id"], "text": text_of(row), "steps": [{"tool": t, "predecessors": sorted(before[t])} for t in tools]}


def text_of(row: dict[str, Any]) -> str:
    """The request, and what was said beside it."""
    return "\n".join(part for part in (row["request"], row.get("context")) if part)


if __name__ == "__main__":
    sys.exit(main())
