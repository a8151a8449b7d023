"""Draws bounded parts of the WKG: its strongest edges overall, of an industry or around a task, and what changed.

A rebuild's summary shows two pictures: the strongest edges, and the difference from the last snapshot.
"""

import base64
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from opus_pipelines.core.formatting import hours, number, share, usd
from opus_pipelines.lake.layout import read_json
from opus_pipelines.reporting.graphs.model import SIGNS, Change, Picture, PictureEdge, PictureNode
from opus_pipelines.reporting.graphs.svg import svg
from opus_pipelines.reporting.tasks import Row, rows
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.rebuild.records import Rebuild

SHORT_BASIS = {"observed": "", "estimated": " est.", "prior": " prior"}
LONGEST_TITLE = 300  # letters of a tooltip
GROUPINGS = (("community", "community"), ("industries", "industry"), ("component", "component"))


@dataclass(frozen=True)
class GraphScale:
    """λ of LWM (2), and the column whose counts it weights."""

    lambda_: float
    unit: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "GraphScale":
        """Returns the scale of a snapshot's manifest. λ is 1 in a snapshot without edges, where it has no effect."""
        return cls(manifest["lambda"] or 1.0, "transitions" if manifest["gamma_unit"] == "transition" else "variants")


@dataclass(frozen=True)
class GraphPart:
    """The part of the WKG that a picture shows: at most so many edges, of one industry, around one task.

    Around a task, the edges nearest to it come first, and none is farther than `hops` steps.
    """

    edges: int
    industry: str | None = None
    around: str | None = None
    hops: int = 1


def strongest(connection: duckdb.DuckDBPyConnection, snapshot: str, scale: GraphScale, part: GraphPart) -> Picture:
    """Returns a picture of the strongest edges of a part of the WKG by γ, then by transitions."""
    industry, around = part.industry, part.around
    edge_rows = rows(connection, "graph_edges", industry=industry, around=around, hops=part.hops, edges=part.edges)
    ends = {row[end] for row in edge_rows for end in ("src", "dst")} | ({around} if around else set())
    most = rows(connection, "graph_most", industry=industry, most=part.edges)
    tasks = rows(connection, "graph_tasks", tasks=sorted(ends) or [row["task_id"] for row in most])
    titles = {task["task_id"]: task["title"] or task["task_id"] for task in tasks}
    group_of, groups = grouped(tasks)
    return Picture(
        " · ".join(
            [
                "Work Knowledge Graph",
                *([industry] if industry else []),
                *([f"around {titles[around]}"] if around else []),
            ]
        ),
        f"{_scope(edge_rows, len(tasks), most[0]['of_tasks'] if most else 0, part)}\nsnapshot {snapshot}",
        tuple(node(task, group_of[task["task_id"]], task["task_id"] == around) for task in tasks),
        tuple(edge(row, titles, scale) for row in edge_rows),
        groups,
    )


def node(task: Row, group: str | None = None, focus: bool = False) -> PictureNode:
    """Returns a task as a node with its title, count and success probability, and all known figures in the tooltip."""
    chance = "" if task["p"] is None else f" · p {_chance(task['p'])}{SHORT_BASIS.get(task['p_basis'] or '', '')}"
    return PictureNode(
        task["task_id"],
        task["title"] or task["task_id"],
        f"{task['implementations'] or 0:,}{chance}",
        "\n".join(_tooltip_lines(task)),
        group,
        focus,
    )


def edge(row: Row, titles: dict[str, str], scale: GraphScale) -> PictureEdge:
    """Returns a directed edge with its transitions, and all known figures in the tooltip."""
    tooltip = [
        edge_title(row["src"], row["dst"], titles),
        f"{counted(row['transitions'], 'transition')} in {counted(row['variants'] or 0, 'variant')}",
        f"γ {row['gamma']:.4f}, {share(row['probability'])} of what follows",
        f"mean wait {hours(row['wait_ms_mean'])}",
    ]
    rest = math.exp(-scale.lambda_ * row[scale.unit])
    return PictureEdge(row["src"], row["dst"], rest, f"{row['transitions']:,}", "\n".join(tooltip))


def counted(count: int, word: str) -> str:
    """Returns a count with its noun."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def edge_title(src: str, dst: str, titles: Mapping[str, str]) -> str:
    """Returns the titles of both ends of an edge."""
    return f"{titles[src][:LONGEST_TITLE]} → {titles[dst][:LONGEST_TITLE]}"


def grouped(tasks: Sequence[Row]) -> tuple[dict[str, str | None], tuple[tuple[str, str], ...]]:
    """Returns the group of each task, and the groups with their legend, the largest first.

    Tasks are grouped by community, else by industry, else by component.
    """
    column, word = next(((c, w) for c, w in GROUPINGS if any(task[c] for task in tasks)), (None, ""))
    if column is None:
        return {task["task_id"]: None for task in tasks}, ()
    of = {task["task_id"]: _group(task[column]) for task in tasks}
    sizes = Counter(group for group in of.values() if group is not None)
    first = {
        group: task["title"] or task["task_id"]
        for task in reversed(tasks)
        if (group := of[task["task_id"]]) is not None
    }
    order = sorted(sizes, key=lambda group: (-sizes[group], group))
    legend = {group: group if column == "industries" else f"{word} of {first[group]}" for group in order}
    return of, tuple((group, f"{legend[group]} ({sizes[group]})") for group in order)


def _chance(p: float) -> str:
    """Formats a probability with two decimals, or three where two would show 1.00."""
    return f"{p:.2f}" if p < 0.995 or p == 1 else f"{min(p, 0.999):.3f}"


def _group(value: Any) -> str | None:
    return (" / ".join(value) or None) if isinstance(value, list) else None if value is None else str(value)


def _scope(edge_rows: Sequence[Row], tasks: int, of_tasks: int, part: GraphPart) -> str:
    """Describes what the picture shows, and what it leaves out."""
    if not edge_rows:
        return f"no edges here; {tasks:,} of {counted(of_tasks, 'task')}"
    of_edges, carried = edge_rows[0]["of_edges"], sum(row["transitions"] for row in edge_rows)
    within = f" within {counted(part.hops, 'step')}" if part.around else ""
    if len(edge_rows) == of_edges:
        return f"all {counted(of_edges, 'edge')}{within}, {tasks:,} of {counted(of_tasks, 'task')}"
    which = "nearest and strongest" if part.around else "strongest"
    carried_share = carried / edge_rows[0]["of_transitions"] if edge_rows[0]["of_transitions"] else None
    shown = f"the {len(edge_rows):,} {which} of {of_edges:,} edges{within}"
    return f"{shown}, with {share(carried_share)} of their transitions; {tasks:,} of {counted(of_tasks, 'task')}"


def _tooltip_lines(task: Row) -> list[str]:
    interval = f"{number(task['p_lower'], 3)} to {number(task['p_upper'], 3)}"
    lines = [
        (task["title"] or "")[:LONGEST_TITLE],
        f"{task['task_id']}" + (f", {', '.join(task['industries'])[:LONGEST_TITLE]}" if task["industries"] else ""),
        f"carried out {counted(task['implementations'] or 0, 'time')}",
        f"p {number(task['p'], 3)} ({interval}), {task['p_basis'] or 'unknown'}, n {task['p_n'] or 0:,}",
        f"q {number(task['q'], 3)}, {task['q_basis'] or 'unknown'}, n {task['q_n'] or 0:,}",
        f"median time {hours(task['duration_ms_p50'])}, median cost {usd(task['cost_usd_p50'])}",
    ]
    return [*lines, *(f"{name} {task[name]}" for name in ("component", "community") if task[name])]


GRAPH, CHANGES = "graph.svg", "changes.svg"
MOST_BYTES = 145_000  # of a file: as a data URI, a third longer, it stays below 200 kB


def snapshot_pictures(rebuild: Rebuild, drift: Drift | None) -> dict[str, str]:
    """Returns `graph.svg` and, where there is an earlier snapshot, `changes.svg`, by name.

    It writes them into the folder of a new snapshot.
    """
    snapshot, most = rebuild.snapshot, rebuild.settings.graph.picture_edges
    unit = "transitions" if rebuild.rule.unit == "transition" else "variants"
    published = {} if snapshot.is_new else read_json(snapshot.place / "manifest.json") or {}
    lambda_ = rebuild.mined().lambda_ if snapshot.is_new else published.get("lambda")
    scale = GraphScale(lambda_ or 1.0, unit)
    with opened(snapshot.place, snapshot.last) as connection:
        drawn = {GRAPH: bounded(lambda n: strongest(connection, snapshot.snapshot_id, scale, GraphPart(n)), most)}
        if snapshot.last and drift:
            before = snapshot.last.name
            drawn[CHANGES] = bounded(lambda n: changes(connection, before, snapshot.snapshot_id, drift, n), most)
    if snapshot.is_new:
        for name, text in drawn.items():
            (snapshot.folder / name).write_text(text, "utf-8")
    return drawn


def opened(folder: Path, before: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Opens the tasks and edges of a snapshot as `wkg_tasks` and `wkg_edges`, and those of `before` as `old_...`."""
    connection = duckdb.connect()
    for prefix, place in (("wkg", folder), ("old", before)):
        for table in ("tasks", "edges") if place else ():
            files = str(place / table / "*.parquet").replace("'", "''")  # type: ignore[operator]
            connection.execute(f"CREATE VIEW {prefix}_{table} AS FROM read_parquet('{files}', union_by_name = true)")
    return connection


def changes(connection: duckdb.DuckDBPyConnection, before: str, after: str, drift: Drift, edges: int) -> Picture:
    """Returns a picture of the edges whose transition shares changed most, with the tasks at their ends."""
    edge_rows = rows(connection, "changed_edges", edges=edges)
    ends = sorted({row[end] for row in edge_rows for end in ("src", "dst")})
    tasks = rows(connection, "changed_tasks", tasks=ends, most=edges)
    titles = {task["task_id"]: task["title"] or task["task_id"] for task in tasks}
    of = edge_rows[0]["of_edges"] if edge_rows else 0
    left_out = f"; the {len(edge_rows)} largest of {of:,} changed edges are shown" if of > len(edge_rows) else ""
    summary = (
        f"{counted(len(drift.tasks_added), 'task')} came, {len(drift.tasks_removed):,} went; "
        f"{counted(len(drift.edges_added), 'edge')} came, "
        f"{len(drift.edges_removed):,} went; {share(drift.moved)} of what follows a task moved{left_out}"
    )
    return Picture(
        "What changed in the Work Knowledge Graph",
        f"{summary}\nfrom snapshot {before} to {after}",
        tuple(_changed_node(task) for task in tasks),
        tuple(_changed_edge(row, titles) for row in edge_rows),
        widths=((_thinness(0.0), "few transitions go another way"), (_thinness(1.0), "many do")),
    )


def bounded(draw: Callable[[int], Picture], edges: int) -> str:
    """Returns the SVG of at most `edges` edges, of fewer where it would be larger than MOST_BYTES."""
    while True:
        text = svg(draw(edges))
        if len(text.encode()) <= MOST_BYTES or edges == 1:
            return text
        edges //= 2


def data_uri(text: str) -> str:
    """Returns an SVG as a data URI."""
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def _thinness(weight: float) -> float:
    """Returns the value for 1 − γ where the width shows a change; `weight` is a share of the largest change."""
    return math.exp(-20 * weight)


def _changed_node(task: dict[str, Any]) -> PictureNode:
    plain, change = node(task), Change(task["change"])
    figures = f"{SIGNS[change]} {plain.figures}" if SIGNS[change] else plain.figures
    return PictureNode(plain.key, plain.title, figures, plain.tooltip, change=change)


def _changed_edge(row: dict[str, Any], titles: dict[str, str]) -> PictureEdge:
    change = Change(row["change"])
    label = (
        f"{row['share_before']:.0%} → {row['share_after']:.0%}"
        if change is Change.MOVED
        else f"{SIGNS[change]}{row['transitions']:,}"
    )
    tooltip = [
        edge_title(row["src"], row["dst"], titles),
        f"transitions {row['before'] or 0:,} → {row['after'] or 0:,}",
        f"share of what follows {share(row['share_before'])} → {share(row['share_after'])}",
    ]
    return PictureEdge(row["src"], row["dst"], _thinness(row["weight"]), label, "\n".join(tooltip), change)
