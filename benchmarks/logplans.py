#!/usr/bin/env python3
"""Predicts plans for cases of which only the attributes are known, with the real pipeline in a lake of its own.

    .venv/bin/python benchmarks/logplans.py DIR PREDICTIONS.jsonl [--work DIR] [--steps STEPS.jsonl] [--most N]

DIR holds train.csv (the history's events) and requests.jsonl ({"id", "request", "attributes"}), as the benchmark's own
script writes them. train.csv becomes a history source with the settings that `opus init` proposes, untouched; every
request an intake whose client input is its attributes as JSON, or the request's text where it has none. A prediction is
the rank-1 workflow with the events and returns to be expected between its steps (workflows/expected_flow): {"id",
"plan", "links"}. --steps writes a second file with the work steps alone, and --events the names that were taken for
events or outcomes. Nothing of an asked case but its attributes is seen.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from two_jobs import (  # type: ignore[import-not-found]  # beside this file
    KEPT,
    opus,
    read,
    rebuild_and_generate,
    rows_of_first_goals,
    to_write,
    workplace,
    write_predictions,
)

NOTHING: dict[str, Any] = {"plan": [], "links": []}
FLOW = """
    select i.folder, o.intake_id, o.intention_id, f.src_task_key, f.dst_task_key, f.src_place, f.dst_place, f.src_kind, f.dst_kind
    from workflows_optimized o
    join generation_intakes i using (intake_id)
    join workflows_expected_flow f using (workflow_id)
    where o.rank = 1
"""
STEPS = """
    select i.folder, o.intake_id, o.intention_id, o.verdict, o.expected_events,
        list(coalesce(t.task_keys[1], t.title) order by t.position) as steps
    from workflows_optimized o
    join generation_intakes i using (intake_id)
    join workflows_tasks t using (workflow_id)
    where o.rank = 1 and t.kind = 'task'
    group by all
"""


def main() -> int:
    """Write the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("asked", type=Path, metavar="DIR")
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    parser.add_argument("--steps", type=Path, help="file for the predictions of work steps alone")
    parser.add_argument("--events", type=Path, help="file for the names of events and outcomes")
    parser.add_argument("--most", type=int, help="ask only the first N requests")
    arguments = parser.parse_args()
    with workplace(arguments.work, "logplans") as work:
        ids = write_inputs(arguments.asked, work, arguments.most)
        rebuild_and_generate(work)
        whole, steps = predict(work)
        write_predictions(arguments.predictions, "id", ids, whole, NOTHING)
        if arguments.steps:
            write_predictions(arguments.steps, "id", ids, steps, NOTHING)
        if arguments.events:
            arguments.events.write_text(json.dumps(passive(work), ensure_ascii=False))
    return 0


def write_inputs(asked: Path, work: Path, most: int | None) -> dict[str, str]:
    """The history source as `opus init` proposes it, and the intake folders; returns the id of every intake folder."""
    opus(work, "init", str((asked / "train.csv").resolve()), "--to", "history/log", "--yes")
    ids = {}
    for number, row in enumerate(read(asked / "requests.jsonl")):
        if most is not None and number >= most:
            break
        folder = work / "intakes" / "client" / "contract" / f"case{number:06d}"
        (folder / "input").mkdir(parents=True, exist_ok=True)
        if row.get("attributes"):
            (folder / "input" / "request.json").write_text(json.dumps(row["attributes"], ensure_ascii=False, indent=1))
        else:
            (folder / "input" / "request.txt").write_text(row["request"])
        ids[folder.name] = row["id"]
    return ids


def predict(work: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """By intake folder: everything that is expected, and the work steps alone; of an intake's first Intention."""
    flow: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of_first_goals(work, FLOW):
        flow[row["folder"]].append(row)
    keys = {row["title"]: row["task_key"] for row in _passive(work)}
    whole, steps = {}, {}
    for row in rows_of_first_goals(work, STEPS):
        pairs = flow[row["folder"]]
        place = {p["src_task_key"]: p["src_place"] for p in pairs} | {p["dst_task_key"]: p["dst_place"] for p in pairs}
        for before, step in zip(
            [None, *row["steps"]], row["steps"], strict=False
        ):  # a step that no pair names: behind the one before
            place.setdefault(step, place.get(before, -1) + 0.5)
        for event in row["expected_events"] or ():
            place.setdefault(keys[event], len(place))
        links = [[p["src_task_key"], p["dst_task_key"]] for p in pairs]
        whole[row["folder"]] = {"plan": sorted(place, key=lambda key: place[key]), "links": links}
        work_pairs = [[p["src_task_key"], p["dst_task_key"]] for p in pairs if p["src_kind"] == p["dst_kind"] == "step"]
        joined = [list(pair) for pair in zip(row["steps"], row["steps"][1:], strict=False)]
        steps[row["folder"]] = {"plan": row["steps"], "links": work_pairs or joined}
    return whole, steps


def passive(work: Path) -> list[str]:
    """Names of the activities that were taken for events or outcomes."""
    return sorted(row["task_key"] for row in _passive(work))


def _passive(work: Path) -> list[dict[str, str]]:
    sql = (
        "select distinct t.title, a.task_key from wkg_tasks t join wkg_task_aliases a using (task_id) where "
        "t.activity_kind <> 'step'"
    )
    found: list[dict[str, str]] = json.loads(opus(work, "query", sql, "--format", "json"))
    return found


if __name__ == "__main__":
    sys.exit(main())
