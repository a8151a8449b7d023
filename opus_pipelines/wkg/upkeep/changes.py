"""Makes wkg/changes: what differs between a snapshot and its predecessor, with the rows of history behind it.

A pair of snapshots always gives the same rows. They are stored beside the snapshots
(`wkg/changes/snapshot=…/part-<before>.parquet`), because the predecessor is no input of a snapshot: after a rollback
the same snapshot has another predecessor.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.schemas import CASES, EDGES, IMPLEMENTATIONS, NEEDS, TASKS, WKG_CHANGES
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, table_of, write_table

CASES_NAMED = 20  # implementation ids that a row names; the counts beside them are of all
_COLUMNS = {
    TASKS: ["task_id", "title", "implementations", "p", "q", "duration_ms_p50", "cost_usd_p50"],
    EDGES: ["src", "dst", "transitions", "probability", "wait_ms_mean"],
    NEEDS: ["task_id", "needed"],
}


def write_changes(lake: Lake, before: str | None, after: str) -> None:
    """Writes what changed from the published snapshot `before` to `after`, unless the file exists.

    It writes nothing when one of them is not in the lake. The caller must hold the lock of the lake.
    """
    if (
        before is None
        or before == after
        or not all((lake.snapshot_folder(s) / "manifest.json").is_file() for s in (before, after))
    ):
        return
    folder = lake.folder(WKG_CHANGES, snapshot=after)
    name = f"part-{before}.parquet"
    if (folder / name).is_file():
        return
    rows = changes(lake, before, after)
    lake.publish_file(lambda path: write_table(WKG_CHANGES, rows, path.parent, path.name), folder / name)


def changes(lake: Lake, before: str, after: str) -> pa.Table:
    """Returns the rows of wkg/changes from one published snapshot to another."""
    tables = {
        f"{side}_{dataset.name.removeprefix('wkg/')}": read_table(
            dataset, dataset_folder(lake.snapshot_folder(snapshot), dataset), columns=columns
        )
        for side, snapshot in (("old", before), ("new", after))
        for dataset, columns in _COLUMNS.items()
    }
    otherwise = _reason_without_cases(lake.manifest(before), lake.manifest(after))
    found = run_sql("wkg", tables | {"touched": touched(lake, before, after)}, most=CASES_NAMED, otherwise=otherwise)
    heads = {"snapshot": after, "before": before}
    return table_of(WKG_CHANGES, [heads | row for row in found.to_pylist()])


def touched(lake: Lake, before: str, after: str) -> pa.Table:
    """Returns the cases that came, went or changed between two published snapshots.

    The columns are source, implementation_id, change (added, removed, changed), tasks_before and tasks_after (task
    ids). Only the sources whose content changed are read.
    """
    contents = [{s["source"]: s for s in lake.manifest(snapshot)["inputs"]["sources"]} for snapshot in (before, after)]
    changed = {
        name
        for name in contents[0].keys() | contents[1].keys()
        if _content(contents[0], name) != _content(contents[1], name)
    }
    sides = [
        _cases(lake, snapshot, [lake.root / of[name]["folder"] for name in sorted(changed & of.keys())], changed)
        for snapshot, of in zip((before, after), contents, strict=True)
    ]
    return run_sql("touched", {"old_cases": sides[0], "new_cases": sides[1]})


def run_sql(name: str, tables: dict[str, pa.Table], **parameters: Any) -> pa.Table:
    """Returns the rows of `sql/changes/<name>.sql` over Arrow tables, which are its views."""
    import duckdb

    with duckdb.connect() as connection:
        for view, table in tables.items():
            connection.register(view, table)
        query = (SQL / "changes" / f"{name}.sql").read_text("utf-8")
        return connection.sql(query, params=parameters or None).to_arrow_table()


def _content(sources: dict[str, dict[str, Any]], name: str) -> str | None:
    return sources[name]["content"] if name in sources else None


def _cases(lake: Lake, snapshot: str, folders: list[Path], sources: set[str]) -> pa.Table:
    """Returns the cases of these sources.

    The columns are source, implementation_id, the tasks in the snapshot, and the content_hash of the history behind it.
    """
    cases = read_table(
        CASES, dataset_folder(lake.snapshot_folder(snapshot), CASES), columns=["source", "implementation_id", "tasks"]
    )
    cases = cases.filter(pc.is_in(cases["source"], pa.array(sorted(sources), pa.string())))
    hashes = read_table(IMPLEMENTATIONS, *folders, columns=["implementation_id", "content_hash"])
    at = pc.index_in(cases["implementation_id"], hashes["implementation_id"].combine_chunks())
    return cases.append_column("content_hash", hashes["content_hash"].take(at))


def _reason_without_cases(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Returns why a figure changed although no case with the task or edge did."""
    causes = [
        name
        for name, differs in (
            ("settings", before.get("settings") != after.get("settings")),
            ("code", before.get("code_version") != after.get("code_version")),
            ("names of tasks", before["inputs"].get("ledger") != after["inputs"].get("ledger")),
        )
        if differs
    ]
    return ", ".join(causes) or "other cases of the same industry"
