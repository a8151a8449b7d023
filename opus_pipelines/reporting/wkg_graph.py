"""A bounded part of the WKG as a picture: its strongest edges, of all, of an industry or around a task.

The two pictures of a run's summary: the WKG's strongest edges, and what changed since the snapshot before.
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
from opus_pipelines.core.settings import Graph
from opus_pipelines.lake.layout import read_json
from opus_pipelines.reporting.graphs.model import Change, Picture, PictureEdge, PictureNode
from opus_pipelines.reporting.graphs.palette import SIGNS
from opus_pipelines.reporting.graphs.svg import svg
from opus_pipelines.reporting.tasks import rows
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.rebuild_records import CheckedGraph

Row = dict[str, Any]
SHORT_BASIS = {"observed": "", "estimated": " est.", "prior": " prior"}
LONGEST_TITLE = 300  # letters of a tooltip
GROUPINGS = (("community", "community"), ("industries", "industry"), ("component", "component"))


@dataclass(frozen=True)
class Scale:
    """λ of LWM (2) and the column whose counts it weighs."""

    lambda_: float
    unit: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "Scale":
        """Of a snapshot's manifest; λ is 1 in a snapshot without edges, where it says nothing."""
        return cls(manifest["lambda"] or 1.0, "transitions" if manifest["gamma_unit"] == "transition" else "variants")


def strongest(
    connection: duckdb.DuckDBPyConnection,
    snapshot: str,
    scale: Scale,
    edges: int,
    industry: str | None = None,
    around: str | None = None,
    hops: int = 1,
) -> Picture:
    """The `edges` strongest edges by γ, then by transitions; around a task those nearest to it first, none farther
    than `hops`.
    """
    found = rows(connection, "graph_edges", industry=industry, around=around, hops=hops, edges=edges)
    ends = {row[end] for row in found for end in ("src", "dst")} | ({around} if around else set())
    most = rows(connection, "graph_most", industry=industry, most=edges)
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
        f"{_scope(found, len(tasks), most[0]['of_tasks'] if most else 0, around, hops)}\nsnapshot {snapshot}",
        tuple(node(task, group_of[task["task_id"]], task["task_id"] == around) for task in tasks),
        tuple(edge(row, titles, scale) for row in found),
        groups,
    )


def node(task: Row, group: str | None = None, focus: bool = False) -> PictureNode:
    """A task: its title, how often it was carried out and how well; everything known of it in the tooltip."""
    chance = "" if task["p"] is None else f" · p {_chance(task['p'])}{SHORT_BASIS.get(task['p_basis'] or '', '')}"
    return PictureNode(
        task["task_id"],
        task["title"] or task["task_id"],
        f"{task['implementations'] or 0:,}{chance}",
        "\n".join(_told(task)),
        group,
        focus,
    )


def edge(row: Row, titles: dict[str, str], scale: Scale) -> PictureEdge:
    """A directed edge: its transitions; everything known of it in the tooltip."""
    told = [
        edge_words(row["src"], row["dst"], titles),
        f"{many(row['transitions'], 'transition')} in {many(row['variants'] or 0, 'variant')}",
        f"γ {row['gamma']:.4f}, {share(row['probability'])} of what follows",
        f"mean wait {hours(row['wait_ms_mean'])}",
    ]
    rest = math.exp(-scale.lambda_ * row[scale.unit])
    return PictureEdge(row["src"], row["dst"], rest, f"{row['transitions']:,}", "\n".join(told))


def many(count: int, word: str) -> str:
    """So many of something."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def edge_words(src: str, dst: str, titles: Mapping[str, str]) -> str:
    """Where an edge leads from and to."""
    return f"{titles[src][:LONGEST_TITLE]} → {titles[dst][:LONGEST_TITLE]}"


def grouped(tasks: Sequence[Row]) -> tuple[dict[str, str | None], tuple[tuple[str, str], ...]]:
    """A group a task, and the groups with their words, the largest first: by community, else by industry, else by
    component.
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
    said = {group: group if column == "industries" else f"{word} of {first[group]}" for group in order}
    return of, tuple((group, f"{said[group]} ({sizes[group]})") for group in order)


def _chance(p: float) -> str:
    """Two decimals, but three where two would say that it is certain."""
    return f"{p:.2f}" if p < 0.995 or p == 1 else f"{min(p, 0.999):.3f}"


def _group(value: Any) -> str | None:
    return (" / ".join(value) or None) if isinstance(value, list) else None if value is None else str(value)


def _scope(found: Sequence[Row], tasks: int, of_tasks: int, around: str | None, hops: int) -> str:
    """What the picture shows, and what it leaves out."""
    if not found:
        return f"no edges here; {tasks:,} of {many(of_tasks, 'task')}"
    of_edges, carried = found[0]["of_edges"], sum(row["transitions"] for row in found)
    within = f" within {many(hops, 'step')}" if around else ""
    if len(found) == of_edges:
        return f"all {many(of_edges, 'edge')}{within}, {tasks:,} of {many(of_tasks, 'task')}"
    which = "nearest and strongest" if around else "strongest"
    part = carried / found[0]["of_transitions"] if found[0]["of_transitions"] else None
    shown = f"the {len(found):,} {which} of {of_edges:,} edges{within}"
    return f"{shown}, with {share(part)} of their transitions; {tasks:,} of {many(of_tasks, 'task')}"


def _told(task: Row) -> list[str]:
    interval = f"{number(task['p_lower'], 3)} to {number(task['p_upper'], 3)}"
    told = [
        (task["title"] or "")[:LONGEST_TITLE],
        f"{task['task_id']}" + (f", {', '.join(task['industries'])[:LONGEST_TITLE]}" if task["industries"] else ""),
        f"carried out {many(task['implementations'] or 0, 'time')}",
        f"p {number(task['p'], 3)} ({interval}), {task['p_basis'] or 'unknown'}, n {task['p_n'] or 0:,}",
        f"q {number(task['q'], 3)}, {task['q_basis'] or 'unknown'}, n {task['q_n'] or 0:,}",
        f"median time {hours(task['duration_ms_p50'])}, median cost {usd(task['cost_usd_p50'])}",
    ]
    return [*told, *(f"{name} {task[name]}" for name in ("component", "community") if task[name])]


GRAPH, CHANGES = "graph.svg", "changes.svg"
MOST_BYTES = 145_000  # of a file: as a data URI, a third longer, it stays below 200 kB


def snapshot_pictures(graph: CheckedGraph, settings: Graph) -> dict[str, str]:
    """`graph.svg` and, where there is a snapshot to compare with, `changes.svg`, by name; written into the folder of a
    new snapshot.
    """
    resolved, snapshot, most = graph.resolved, graph.resolved.snapshot, settings.picture_edges
    unit = "transitions" if resolved.rule.unit == "transition" else "variants"
    published = {} if snapshot.is_new else read_json(snapshot.place / "manifest.json") or {}
    lambda_ = graph.estimated.lambda_ if snapshot.is_new else published.get("lambda")
    with opened(snapshot.place, snapshot.last) as connection:
        drawn = {
            GRAPH: bounded(lambda n: strongest(connection, snapshot.snapshot_id, Scale(lambda_ or 1.0, unit), n), most)
        }
        if snapshot.last and graph.drift:
            drift, before = graph.drift, snapshot.last.name
            drawn[CHANGES] = bounded(lambda n: changes(connection, before, snapshot.snapshot_id, drift, n), most)
    if snapshot.is_new:
        for name, text in drawn.items():
            (snapshot.folder / name).write_text(text, "utf-8")
    return drawn


def opened(folder: Path, before: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A snapshot's tasks and edges as the views `wkg_tasks` and `wkg_edges`, those of `before` as `old_tasks` and
    `old_edges`.
    """
    connection = duckdb.connect()
    for prefix, place in (("wkg", folder), ("old", before)):
        for table in ("tasks", "edges") if place else ():
            files = str(place / table / "*.parquet").replace("'", "''")  # type: ignore[operator]
            connection.execute(f"CREATE VIEW {prefix}_{table} AS FROM read_parquet('{files}', union_by_name = true)")
    return connection


def changes(connection: duckdb.DuckDBPyConnection, before: str, after: str, drift: Drift, edges: int) -> Picture:
    """What came, went and moved: the edges over which most transitions go another way than before, with the tasks at
    their ends.
    """
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
        "What changed in the Work Knowledge Graph",
        f"{told}\nfrom snapshot {before} to {after}",
        tuple(_changed_node(task) for task in tasks),
        tuple(_changed_edge(row, titles) for row in found),
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
    label = (
        f"{row['share_before']:.0%} → {row['share_after']:.0%}"
        if change is Change.MOVED
        else f"{SIGNS[change]}{row['transitions']:,}"
    )
    told = [
        edge_words(row["src"], row["dst"], titles),
        f"transitions {row['before'] or 0:,} → {row['after'] or 0:,}",
        f"share of what follows {share(row['share_before'])} → {share(row['share_after'])}",
    ]
    return PictureEdge(row["src"], row["dst"], _thinness(row["weight"]), label, "\n".join(told), change)
