"""What changed between two results of a contract, and why a published result is not what would be made now.

Whether a contract's published result is what its files, the snapshot, the settings and the code would give now; what
failed in it.

workflows/changes: what differs between a contract's result and the one before it, and what stands behind each
difference.

One row for each Intention whose rank-1 workflow is another one or has other figures. A result's rows lie in its own
partition, a file for each result that it followed (`part-<before>.parquet`): a result that is current again after
another one follows that one.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.schemas import CASES, INTAKES, NEIGHBOURS, OPTIMIZED, RUNS, WORKFLOW_CHANGES, WORKFLOW_TASKS
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, table_of, write_table
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.wkg.upkeep import changes as wkg_changes

CASES_NAMED = 20  # implementation ids that a row names; the count beside them is of all
_COLUMNS = {
    "optimized": [
        "intake_id",
        "intention_id",
        "workflow_id",
        "title",
        "reward_usd",
        "success_probability",
        "cost_usd",
        "duration_ms",
        "verdict",
        "feasible",
        "decision_number",
    ],
    "steps": ["workflow_id", "position", "kind", "task_id", "title", "actor_kind", "model", "actor_group"],
    "intakes": ["intake_id", "folder", "content_hash"],
    "neighbours": ["intention_id", "implementation_id"],
}


def write_changes(lake: Lake, pointer: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Write what changed from the result of one pointer of a contract to that of another; an empty file where there
    was none before. The lake's lock must be held.
    """
    folder = ResultKey.of(pointer).folder(lake, WORKFLOW_CHANGES)
    name = f"part-{before['result'] if before else 'first'}.parquet"
    if (folder / name).is_file():
        return
    rows = changes(lake, before, pointer) if before else WORKFLOW_CHANGES.schema.empty_table()
    lake.publish_file(lambda path: write_table(WORKFLOW_CHANGES, rows, path.parent, path.name), folder / name)


def changes(lake: Lake, before: dict[str, Any], after: dict[str, Any]) -> pa.Table:
    """Rows of workflows/changes from the result of one pointer to that of another of the same contract."""
    snapshots = before["snapshot"], after["snapshot"]
    there = all((lake.snapshot_folder(s) / "manifest.json").is_file() for s in snapshots)
    tables = {
        f"{side}_{name}": table
        for side, pointer in (("old", before), ("new", after))
        for name, table in _tables(lake, pointer).items()
    }
    near = pa.chunked_array(
        [chunk for side in ("old", "new") for chunk in tables[f"{side}_neighbours"]["implementation_id"].chunks],
        pa.string(),
    )
    tables["case_sources"] = _sources_of(lake, snapshots, near)
    tables["touched"] = _touched(lake.root, *snapshots) if there else _touched_schema().empty_table()
    found = wkg_changes.run_sql("workflows", tables, most=CASES_NAMED, because=_because(lake, before, after))
    heads = {name: after[name] for name in ("client", "contract", "result")} | {
        "before": before["result"],
        "snapshot_before": snapshots[0],
        "snapshot_after": snapshots[1],
    }
    return table_of(WORKFLOW_CHANGES, [heads | row for row in found.to_pylist()])


def _tables(lake: Lake, pointer: dict[str, Any]) -> dict[str, pa.Table]:
    key = ResultKey.of(pointer)
    best = key.read(lake, OPTIMIZED, [*_COLUMNS["optimized"], "rank"])
    best = best.filter(pc.equal(best["rank"], 1)).select(_COLUMNS["optimized"])
    steps = key.read(lake, WORKFLOW_TASKS, _COLUMNS["steps"])
    is_work = pc.is_in(steps["kind"], pa.array(["task", "review"]))
    of_best = pc.is_in(steps["workflow_id"], best["workflow_id"].combine_chunks())
    return {
        "optimized": best,
        "steps": steps.filter(pc.and_(is_work, of_best)),
        **{
            name: key.read(lake, dataset, _COLUMNS[name])
            for name, dataset in (("intakes", INTAKES), ("neighbours", NEIGHBOURS))
        },
    }


def _sources_of(lake: Lake, snapshots: tuple[str, str], ids: pa.ChunkedArray) -> pa.Table:
    """implementation_id and source of these cases, of the snapshots that are there."""
    columns = ["implementation_id", "source"]
    cases = [
        read_table(CASES, dataset_folder(lake.snapshot_folder(s), CASES), columns=columns)
        for s in dict.fromkeys(snapshots)
    ]
    table = pa.concat_tables(cases)
    found = table.filter(pc.is_in(table["implementation_id"], ids.combine_chunks()))
    return found.group_by(columns).aggregate([])


@lru_cache(maxsize=1)
def _touched(root: Path, before: str, after: str) -> pa.Table:
    """The touched cases of two snapshots, which are the same for every contract of a run."""
    return wkg_changes.touched(Lake(root), before, after)


def _touched_schema() -> pa.Schema:
    texts = pa.list_(pa.string())
    names = [("source", pa.string()), ("implementation_id", pa.string()), ("change", pa.string())]
    return pa.schema([*names, ("tasks_before", texts), ("tasks_after", texts)])


def _because(lake: Lake, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What a result is made from that differs between the two."""
    runs: list[dict[str, Any]] = [
        next(iter(ResultKey.of(pointer).read(lake, RUNS, ["settings_hash", "code_version"]).to_pylist()), {})
        for pointer in (before, after)
    ]
    return [
        name
        for name, differs in (
            ("snapshot", before["snapshot"] != after["snapshot"]),
            ("settings", runs[0].get("settings_hash") != runs[1].get("settings_hash")),
            ("code", runs[0].get("code_version") != runs[1].get("code_version")),
            ("model", before["model_version"] != after["model_version"]),
        )
        if differs
    ]
