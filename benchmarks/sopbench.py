#!/usr/bin/env python3
"""Predict tool sequences for SOPBench intakes with the real pipeline, in a lake of its own.

    benchmarks/sopbench.py HISTORY.jsonl INTAKES.jsonl PREDICTIONS.jsonl [--work DIR]

HISTORY and INTAKES have the form that the benchmark's own script writes (a run a line; an intake a line with exactly
task_key, domain, request, procedure). The runs become one history source through settings alone, every intake a folder
(request = client input, procedure = process context); `opus rebuild` and `opus generate` do the rest. A prediction is
the raw task keys of the rank-1 workflow, in order; a step that history never did goes by the name that the procedure gives it.
Nothing of an intake's own runs or gold graph is seen.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opus_pipelines.ids import make_id
from opus_pipelines.lake import slug

SOURCE = """\
format = "jsonl"
industry = { column = "domain" }

[record]
case = "trace_id"
title = "user_goal"
description = "user_prompt"
process_context = "procedure"
expected_outcome = "action_should_succeed"
tasks = "steps"
drop_tasks = ["exit_conversation"]

[task]
activity = "tool"

[success]
column = "eval.success"
equals = true
"""

# Tool calls of these runs have neither price nor time: a token price keeps made-up wages out of the Reward.
SETTINGS = """\
[cost]
default_cost_usd = { human = 0.001, code = 0.001, model = 0.001 }

[generation]
k = 5
"""


def main() -> int:
    """Write the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("intakes", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--work", type=Path, help="folder for lake and inputs, kept; default: a temporary one, removed")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="opus-sopbench-"))
    try:
        keys = write_inputs(arguments.history, list(read(arguments.intakes)), work)
        for verb in ("rebuild", "generate"):
            started = time.monotonic()
            opus(work, verb)
            print(f"{verb}: {time.monotonic() - started:.1f} s", file=sys.stderr)
        predictions = predict(work)
        with arguments.predictions.open("w") as file:
            file.writelines(json.dumps({"task_key": k, "actions": predictions.get(folder, [])}) + "\n" for folder, k in keys.items())
        print(f"{sum(f in predictions for f in keys)} of {len(keys)} predicted, in {arguments.predictions}", file=sys.stderr)
    finally:
        if arguments.work is None:
            shutil.rmtree(work, ignore_errors=True)
    return 0


def write_inputs(history: Path, intakes: list[dict[str, Any]], work: Path) -> dict[str, str]:
    """History source, intake folders and settings below `work`; returns the task key of every intake folder."""
    source = work / "history" / "sopbench"
    source.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(history, source / "runs.jsonl")
    (source / "source.toml").write_text(SOURCE)
    (work / "opus.toml").write_text(SETTINGS)
    keys = {}
    for row in intakes:
        contract = work / "intakes" / "sopbench" / slug(row["domain"])
        folder = contract / slug(row["task_key"])
        for role, text in (("input", row["request"]), ("process", row["procedure"])):
            (folder / role).mkdir(parents=True, exist_ok=True)
            (folder / role / f"{role}.txt").write_text(text)
        (contract / "contract.toml").write_text(f"industry = {json.dumps(row['domain'])}\n")
        keys[folder.name] = row["task_key"]
    return keys


def opus(work: Path, verb: str, *more: str) -> str:
    """Run one verb of the command line in the work folder; returns its standard output."""
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", verb, *more]
    return subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout


def predict(work: Path) -> dict[str, list[str]]:
    """Raw task keys of the rank-1 workflow of each intake folder's first Intention, in order; a new step's title."""
    sql = """
        select i.folder, o.intake_id, o.intention_id, list(coalesce(t.task_keys[1], t.title) order by t.position) as actions
        from workflows_optimized o
        join generation_intakes i using (intake_id)
        join workflows_tasks t using (workflow_id)
        where o.rank = 1 and t.kind = 'task'
        group by all
    """
    rows = json.loads(opus(work, "query", sql, "--format", "json"))
    return {r["folder"]: [a for a in r["actions"] if a] for r in rows if r["intention_id"] == make_id("n", r["intake_id"], 0)}


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    with path.open() as file:
        yield from map(json.loads, filter(str.strip, file))


if __name__ == "__main__":
    sys.exit(main())
