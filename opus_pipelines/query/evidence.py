"""The rows of history behind one step of a workflow."""

import duckdb

from opus_pipelines.errors import InputError
from opus_pipelines.query.sql import rows
from opus_pipelines.words import grid, hours, number, usd


def evidence_of(connection: duckdb.DuckDBPyConnection, workflow: str, task: str, limit: int) -> str:
    """The cases that carried `task` (title, id or node) out, the intake's nearest first; raises InputError when the workflow lacks it.

    A review that the plan placed is no task of history: what its figures rest on is told instead.
    """
    row = rows(connection, "workflow", workflow=workflow)[0]
    steps = [s for s in rows(connection, "steps", workflow=workflow) if s["kind"] in ("task", "review")]
    step = next((s for s in steps if task in (s["task_id"], s["node"]) or task.casefold() == (s["title"] or "").casefold()), None)
    if step is None:
        raise InputError(f"{workflow} has no task {task!r}; it has: {', '.join(s['title'] or s['node'] for s in steps)}")
    if step["task_id"] is None:
        return _placed(step)
    keys = [row["name"] for row in rows(connection, "aliases", task_id=step["task_id"])]
    found = rows(
        connection, "evidence", task_id=step["task_id"], task_keys=keys,
        intake_id=row["intake_id"], intention_id=row["intention_id"], limit=limit,
    )
    head = f"{step['title']} ({step['task_id']}), known in history as {', '.join(keys) or 'nothing'}"
    if not found:
        known = step["nearest"]
        return f"{head}\nno case of history carried it out: its figures are {f'estimates, those of {known!r}' if known else 'priors'}"
    counted = f"carried out {found[0]['found']:,} times, {found[0]['near']:,} of them in the cases nearest to intake {row['intake']}"
    return "\n".join([head, counted, *_table(found), *([f"  the first {limit} are shown"] if found[0]["found"] > len(found) else [])])


def _placed(step: dict) -> str:
    """What a step that no case of history has rests on."""
    figures = (
        ("cost", usd(step["cost_usd"]), step["cost_basis"]), ("time", hours(step["duration_ms"]), step["duration_basis"]),
        ("right after it, if right before", number(step["p"], 3), step["p_basis"]),
        ("right after it, if wrong before", number(step["q"], 3), step["q_basis"]),
    )
    head = f"{step['title'] or step['node']} ({step['node']}): a {step['kind']} that the plan placed, no task of history"
    return "\n".join([head, *grid([[name, value, basis or "-"] for name, value, basis in figures])])


def _table(found: list[dict]) -> list[str]:
    head = ["near", "source", "case", "step", "as", "who", "took", "cost", "step done", "case succeeded", "file"]
    words = {True: "yes", False: "no", None: "-"}
    return grid([head, *([
        number(r["similarity"], 3), r["source"], str(r["case_id"]), str(r["position"]), r["task_key"],
        " ".join(filter(None, (r["actor_kind"], r["model"] or r["actor"]))) or "-",
        hours(r["duration_ms"]), usd(r["cost_usd"]), words[r["success"]], words[r["case_success"]], r["path"],
    ] for r in found)])
