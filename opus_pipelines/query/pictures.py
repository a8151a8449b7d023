"""The two pictures of a run's summary: the WKG's strongest edges, and what changed since the snapshot before."""

import base64
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from opus_pipelines.lake import read_json
from opus_pipelines.query.graph import Scale, edge_words, many, node, strongest
from opus_pipelines.query.sql import rows
from opus_pipelines.reports.graphs.model import Change, Picture, PictureEdge, PictureNode
from opus_pipelines.reports.graphs.palette import SIGNS
from opus_pipelines.reports.graphs.svg import svg
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.staged import SnapshotBuild
from opus_pipelines.words import share

GRAPH, CHANGES = "graph.svg", "changes.svg"
MOST_BYTES = 145_000  # of a file: as a data URI, a third longer, it stays below 200 kB


def snapshot_pictures(build: SnapshotBuild) -> dict[str, str]:
    """`graph.svg` and, where there is a snapshot to compare with, `changes.svg`, by name; written into the folder of a new snapshot."""
    most = build.settings.graph.picture_edges
    unit = "transitions" if build.rule.unit == "transition" else "variants"
    lambda_ = build.lambda_ if build.is_new else (read_json(build.place / "manifest.json") or {}).get("lambda")
    with opened(build.place, build.last) as connection:
        drawn = {GRAPH: bounded(lambda n: strongest(connection, build.snapshot_id, Scale(lambda_ or 1.0, unit), n), most)}
        if build.last and build.drift:
            drift, before = build.drift, build.last.name
            drawn[CHANGES] = bounded(lambda n: changes(connection, before, build.snapshot_id, drift, n), most)
    if build.is_new:
        for name, text in drawn.items():
            (build.folder / name).write_text(text, "utf-8")
    return drawn


def opened(folder: Path, before: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A snapshot's tasks and edges as the views `wkg_tasks` and `wkg_edges`, those of `before` as `old_tasks` and `old_edges`."""
    connection = duckdb.connect()
    for prefix, place in (("wkg", folder), ("old", before)):
        for table in ("tasks", "edges") if place else ():
            files = str(place / table / "*.parquet").replace("'", "''")  # type: ignore[operator]
            connection.execute(f"CREATE VIEW {prefix}_{table} AS FROM read_parquet('{files}', union_by_name = true)")
    return connection


def changes(connection: duckdb.DuckDBPyConnection, before: str, after: str, drift: Drift, edges: int) -> Picture:
    """What came, went and moved: the edges over which most transitions go another way than before, with the tasks at their ends."""
    found = rows(connection, "changed_edges", edges=edges)
    ends = sorted({row[end] for row in found for end in ("src", "dst")})
    tasks = rows(connection, "changed_tasks", tasks=ends, most=edges)
    titles = {task["task_id"]: task["title"] or task["task_id"] for task in tasks}
    of = found[0]["of_edges"] if found else 0
    left_out = f"; the {len(found)} largest of {of:,} changed edges are shown" if of > len(found) else ""
    told = (
        f"{many(len(drift.tasks_added), 'task')} came, {len(drift.tasks_removed):,} went; {many(len(drift.edges_added), 'edge')} came, "
        f"{len(drift.edges_removed):,} went; {share(drift.moved)} of what follows a task moved{left_out}"
    )
    return Picture(
        "What changed in the Work Knowledge Graph", f"{told}\nfrom snapshot {before} to {after}",
        tuple(_changed_node(task) for task in tasks), tuple(_changed_edge(row, titles) for row in found),
        widths=((_thinness(0.0), "few transitions go another way"), (_thinness(1.0), "many do")),
    )


def bounded(draw: Callable[[int], Picture], edges: int) -> str:
    """The SVG of at most `edges` edges, fewer where it would be larger than a page should carry."""
    while True:
        text = svg(draw(edges))
        if len(text.encode()) <= MOST_BYTES or edges == 1:
            return text
        edges //= 2


def data_uri(text: str) -> str:
    """An SVG as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def _thinness(weight: float) -> float:
    """What takes the place of 1 - γ where width shows a change: `weight` is a part of the largest one."""
    return math.exp(-20 * weight)


def _changed_node(task: dict[str, Any]) -> PictureNode:
    made, change = node(task), Change(task["change"])
    figures = f"{SIGNS[change]} {made.figures}" if SIGNS[change] else made.figures
    return PictureNode(made.key, made.title, figures, made.tooltip, change=change)


def _changed_edge(row: dict[str, Any], titles: dict[str, str]) -> PictureEdge:
    change = Change(row["change"])
    label = f"{row['share_before']:.0%} → {row['share_after']:.0%}" if change is Change.MOVED else f"{SIGNS[change]}{row['transitions']:,}"
    told = [
        edge_words(row["src"], row["dst"], titles),
        f"transitions {row['before'] or 0:,} → {row['after'] or 0:,}",
        f"share of what follows {share(row['share_before'])} → {share(row['share_after'])}",
    ]
    return PictureEdge(row["src"], row["dst"], _thinness(row["weight"]), label, "\n".join(told), change)
