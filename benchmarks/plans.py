#!/usr/bin/env python3
"""Predict plans (which tools, in which order, which links) for requests with the real pipeline, in a lake of its own.

    .venv/bin/python benchmarks/plans.py HISTORY.jsonl INTAKES.jsonl PREDICTIONS.jsonl [--catalogue FILE]
        [--no-fine-tune] [--work DIR]

HISTORY and INTAKES have the form that the benchmark's own script writes: {"id", "request", "context"?, "plan",
"links"?} a line, an intake without plan and links. The plans become one history source (a link makes its first tool a
predecessor of its second), every request an intake of its text alone. A prediction is the rank-1 workflow with the
pairs to be expected: {"id", "plan", "links"}. --catalogue: a JSONL of {"tool", "description"}, also as .gz; the tools
of history get their descriptions from it, and it is the catalogue of the contract, so that a tool that no plan of
history has can be predicted.
"""

import argparse
import gzip
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from logplans import NOTHING, predict  # type: ignore[import-not-found]  # beside this file
from two_jobs import (  # type: ignore[import-not-found]
    KEPT,
    read,
    rebuild_and_generate,
    to_write,
    workplace,
    write_predictions,
)

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
task_description = "description"
"""


def main() -> int:
    """Write the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("intakes", type=Path)
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--catalogue", type=Path, help="JSONL of the tools with their descriptions")
    parser.add_argument("--no-fine-tune", action="store_true", help="as of `opus train`")
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    with workplace(arguments.work, "plans") as work:
        ids = write_inputs(arguments.history, arguments.intakes, work, listed(arguments.catalogue))
        rebuild_and_generate(work, ["--no-fine-tune"] if arguments.no_fine_tune else [])
        whole, _ = predict(work)
        write_predictions(arguments.predictions, "id", ids, whole, NOTHING)
    return 0


def listed(catalogue: Path | None) -> dict[str, str | None]:
    """The tools of the catalogue with their descriptions; none without a catalogue."""
    if catalogue is None:
        return {}
    with gzip.open(catalogue, "rt") if catalogue.suffix == ".gz" else catalogue.open() as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {row["tool"]: row.get("description") or None for row in rows}


def write_inputs(history: Path, intakes: Path, work: Path, tools: dict[str, str | None]) -> dict[str, str]:
    """History source, intake folders and catalogue below `work`; returns the id of every intake folder."""
    source = work / "history" / "plans"
    source.mkdir(parents=True, exist_ok=True)
    with (source / "plans.jsonl").open("w") as file:
        for own, row in with_own_ids(read(history)):
            file.write(json.dumps({**record(row, tools), "id": own}, ensure_ascii=False) + "\n")
    (source / "source.toml").write_text(SOURCE)
    ids = {}
    for number, row in enumerate(read(intakes)):
        folder = work / "intakes" / "client" / "contract" / f"request{number:06d}"
        (folder / "input").mkdir(parents=True, exist_ok=True)
        (folder / "input" / "request.txt").write_text(text_of(row))
        ids[folder.name] = row["id"]
    contract = work / "intakes" / "client" / "contract"
    (contract / "contract.toml").write_text('industry = "plans"\n')
    if tools:
        rows = ({"name": tool, "description": description} for tool, description in tools.items())
        (contract / "catalogue.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return ids


def with_own_ids(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with an id that no other has: where an id comes again, it is another plan."""
    times: Counter[str] = Counter()
    for row in rows:
        name = str(row["id"])
        times[name] += 1
        yield name if times[name] == 1 else f"{name} ({times[name]})", row


def record(row: dict[str, Any], descriptions: dict[str, str | None]) -> dict[str, Any]:
    """A plan as a case: each tool once, with the places of the tools that are linked to it.

    Where links are not stated, a tool follows the one before it, as the benchmark's own script has it.
    """
    tools = list(dict.fromkeys(row["plan"]))
    links = row.get("links")
    if links is None:
        links = itertools.pairwise(tools)
    place = {tool: n for n, tool in enumerate(tools)}
    before: dict[str, set[int]] = {tool: set() for tool in tools}
    for a, b in links:
        if a in place and b in place and a != b:
            before[b].add(place[a])
    return {
        "text": text_of(row),
        "steps": [{"tool": t, "description": descriptions.get(t), "predecessors": sorted(before[t])} for t in tools],
    }


def text_of(row: dict[str, Any]) -> str:
    """The request, and what was said beside it."""
    return "\n".join(part for part in (row["request"], row.get("context")) if part)


if __name__ == "__main__":
    sys.exit(main())
