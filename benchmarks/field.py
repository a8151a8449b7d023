#!/usr/bin/env python3
"""Answers the requests of strangers' contracts with the real command line, in a lake of its own.

    .venv/bin/python benchmarks/field.py OUT PREDICTIONS.jsonl [--work DIR]

OUT is what the benchmark's own script made: history/, intakes/, opus.toml and ids.json. A prediction is what a person
sees of the first workflow of an intake's first Intention: {"id", "tasks", "events", "verdict", "success",
"lead_time_h", "told", "rules"}. `told` are the lines of `opus best` and `opus explain`, or the reason of a refusal.
`rules` are the sentences of the documents that are in force. A verdict "rule at risk" counts as undecided: a workflow
is offered, and what is doubtful about it is said. So does "not answered", the usual path of a process.
"""

import argparse
import json
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
from two_jobs import (  # type: ignore[import-not-found]  # beside this file
    KEPT,
    opus,
    rebuild_and_generate,
    rows_of_first_goals,
    to_write,
    workplace,
    write_predictions,
)

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.explain import explanation
from opus_pipelines.reporting.views import connect

NOTHING: dict[str, Any] = {"tasks": [], "verdict": "refused", "told": [], "rules": []}
OFFERED = {"clear": "clear", "undecided": "undecided", "rule at risk": "undecided", "not answered": "undecided"}
INTAKES = "select client, contract, folder, intake_id, status, reason from generation_intakes"
STEPS = """
    select o.intake_id, o.intention_id, o.workflow_id, o.feasible, o.risks, o.verdict, o.expected_events as events,
        o.success_probability as success, o.lead_time_ms_p50 / 3.6e6 as lead_time_h,
        list(t.title order by t.position) filter (t.kind = 'task') as tasks
    from workflows_optimized o
    join workflows_tasks t using (workflow_id)
    where o.rank = 1
    group by all
"""
RULES = """
    select intake_id, intention_id, unnest(constraints) as rule
    from generation_intentions
"""


def main() -> int:
    """Lay out the inputs, run both jobs, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, metavar="OUT")
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    with workplace(arguments.work, "field") as work:
        for name in ("history", "intakes"):
            shutil.copytree(arguments.made / name, work / name, dirs_exist_ok=True)
        shutil.copy(arguments.made / "opus.toml", work)
        rebuild_and_generate(work)
        ids = json.loads((arguments.made / "ids.json").read_text())
        folders = {"/".join(place[key] for key in ("client", "contract", "intake")): own for own, place in ids.items()}
        write_predictions(arguments.predictions, "id", folders, predict(work), NOTHING)
    return 0


def predict(work: Path) -> dict[str, dict[str, Any]]:
    """By client, contract and intake: what the command line says of it."""
    intakes = json.loads(opus(work, "query", INTAKES, "--format", "json"))
    ranked = {row["intake_id"]: row for row in rows_of_first_goals(work, STEPS)}
    rules = defaultdict(list)
    for row in rows_of_first_goals(work, RULES):
        if row["rule"]["status"] == "in force" and row["rule"]["sentence"]:
            rules[row["intake_id"]].append(row["rule"]["sentence"])
    lake, predicted = connect(Lake(work / "lake")), {}
    for intake in intakes:
        row, own = ranked.get(intake["intake_id"]), rules[intake["intake_id"]]
        answer = (
            {**NOTHING, "told": [intake["reason"] or ""], "rules": own} if row is None else answered(lake, row, own)
        )
        predicted["/".join(intake[key] for key in ("client", "contract", "folder"))] = answer
    return predicted


def answered(lake: duckdb.DuckDBPyConnection, row: dict[str, Any], rules: list[str]) -> dict[str, Any]:
    """What the first workflow of an intake says."""
    told = explanation(lake, row["workflow_id"]).splitlines()
    verdict = OFFERED[row["verdict"] or "undecided"] if row["feasible"] or row["risks"] else "infeasible"
    return {
        "tasks": row["tasks"],
        "events": row["events"] or [],
        "verdict": verdict,
        "success": row["success"],
        "lead_time_h": row["lead_time_h"],
        "told": told,
        "rules": rules,
    }


if __name__ == "__main__":
    sys.exit(main())
