#!/usr/bin/env python3
"""Predict tool sequences for SOPBench intakes with the real pipeline, in a lake of its own.

    .venv/bin/python benchmarks/sopbench.py HISTORY.jsonl INTAKES.jsonl PREDICTIONS.jsonl [--work DIR]
    .venv/bin/python benchmarks/sopbench.py samples SCRIPT DATA PREDICTIONS.jsonl SAMPLES.jsonl

HISTORY and INTAKES have the form that the benchmark's own script writes (a run a line; an intake a line with exactly
task_key, domain, request, procedure). The runs become one history source through settings alone, every intake a folder
(request = client input, procedure = process context); `opus rebuild` and `opus generate` do the rest. A prediction is
the raw task keys of the rank-1 workflow, in order; a step that history never did goes by the name that the procedure
gives it. Nothing of an intake's own runs or gold graph is seen. `samples` scores predictions with the benchmark's own
SCRIPT against its DATA, and writes a line for each intake that `benchmarks/errors.py` reads.
"""

import argparse
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from two_jobs import (  # type: ignore[import-not-found]  # beside this file
    KEPT,
    read,
    rebuild_and_generate,
    rows_of_first_goals,
    to_write,
    workplace,
    write_predictions,
)

from opus_pipelines.lake.layout import slug

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
result = "result"

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
    """Write the inputs, run both jobs, write the predictions; or write the samples of predictions."""
    if sys.argv[1:2] == ["samples"]:
        return write_samples(*map(Path, sys.argv[2:6]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("intakes", type=Path)
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    with workplace(arguments.work, "sopbench") as work:
        keys = write_inputs(arguments.history, list(read(arguments.intakes)), work)
        rebuild_and_generate(work)
        predictions = {folder: {"actions": actions} for folder, actions in predict(work).items()}
        write_predictions(arguments.predictions, "task_key", keys, predictions, {"actions": []})
    return 0


def write_samples(script: Path, data: Path, predictions: Path, samples: Path) -> int:
    """A line for each prediction: its scores by the benchmark's script, and what may have made the intake hard."""
    specification = importlib.util.spec_from_file_location("sopbench_script", script)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    tasks = module.load(data)
    with samples.open("w") as file:
        for row in read(predictions):
            task, actions = tasks[row["task_key"]], row["actions"]
            gold, chosen = task["gold"], set(row["actions"])
            best = max(gold.minimal, key=lambda own: (2 * len(chosen & own) / (len(chosen) + len(own)), sorted(own)))
            links = sorted([a, b] for a, b in gold.before if a in best and b in best)
            refused = [run for run in task["runs"] if not run["action_should_succeed"]]
            features = {
                "no plan": not actions,
                "should be refused": bool(refused),
                "several ways": len(gold.minimal) > 1,
                "goal only": len(best) == 1,
                "misses the goal": gold.goal not in chosen,
            }
            about = {"id": row["task_key"], "request": task["request"], "group": f"{task['domain']}/{task['goal']}"}
            about |= {"gold": {"plan": sorted(best), "links": links}, "features": features}
            file.write(json.dumps({**about, "scores": gold.score(actions)}, ensure_ascii=False) + "\n")
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
        for role, text in (("input", row["request"]), ("process", row.get("procedure") or "")):
            (folder / role).mkdir(parents=True, exist_ok=True)
            (folder / role / f"{role}.txt").write_text(text)
        (contract / "contract.toml").write_text(f"industry = {json.dumps(row['domain'])}\n")
        keys[folder.name] = row["task_key"]
    return keys


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
    return {row["folder"]: [action for action in row["actions"] if action] for row in rows_of_first_goals(work, sql)}


if __name__ == "__main__":
    sys.exit(main())
