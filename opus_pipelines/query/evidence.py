"""The rows of history behind one step of a workflow."""

import duckdb

from opus_pipelines.errors import InputError
from opus_pipelines.query.sql import rows
from opus_pipelines.query.words import grid, hours, number, usd


def evidence_of(connection: duckdb.DuckDBPyConnection, workflow: str, task: str, limit: int) -> str:
    """The cases that carried `task` (title or id) out, the intake's nearest first; raises InputError when the workflow lacks it."""
    row = rows(connection, "workflow", workflow=workflow)[0]
    steps = [s for s in rows(connection, "steps", workflow=workflow) if s["task_id"]]
    step = next((s for s in steps if task == s["task_id"] or task.casefold() == (s["title"] or "").casefold()), None)
    if step is None:
        raise InputError(f"{workflow} has no task {task!r}; it has: {', '.join(s['title'] or s['task_id'] for s in steps)}")
    keys = [row["name"] for row in rows(connection, "aliases", task_id=step["task_id"])]
    found = rows(
        connection, "evidence", task_id=step["task_id"], task_keys=keys,
        intake_id=row["intake_id"], intention_id=row["intention_id"], limit=limit,
    )
    head = f"{step['title']} ({step['task_id']}), known in history as {', '.join(keys) or 'nothing'}"
    if not found:
        return f"{head}\nno case of history carried it out: its figures are priors"
    counted = f"carried out {found[0]['found']:,} times, {found[0]['near']:,} of them in the cases nearest to intake {row['intake']}"
    return "\n".join([head, counted, *_table(found), *([f"  the first {limit} are shown"] if found[0]["found"] > len(found) else [])])


def _table(found: list[dict]) -> list[str]:
    head = ["near", "source", "case", "step", "as", "who", "took", "cost", "step done", "case succeeded", "file"]
    words = {True: "yes", False: "no", None: "-"}
    return grid([head, *([
        number(r["similarity"], 3), r["source"], str(r["case_id"]), str(r["position"]), r["task_key"],
        " ".join(filter(None, (r["actor_kind"], r["model"] or r["actor"]))) or "-",
        hours(r["duration_ms"]), usd(r["cost_usd"]), words[r["success"]], words[r["case_success"]], r["path"],
    ] for r in found)])
