"""A bounded part of the WKG as a picture: its strongest edges, of all, of an industry or around a task."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from opus_pipelines.query.sql import rows
from opus_pipelines.reports.graphs.model import Picture, PictureEdge, PictureNode
from opus_pipelines.words import hours, number, share, usd

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
    connection: duckdb.DuckDBPyConnection, snapshot: str, scale: Scale, edges: int,
    industry: str | None = None, around: str | None = None, hops: int = 1,
) -> Picture:
    """The `edges` strongest edges by γ, then by transitions; around a task those nearest to it first, none farther than `hops`."""
    found = rows(connection, "graph_edges", industry=industry, around=around, hops=hops, edges=edges)
    ends = {row[end] for row in found for end in ("src", "dst")} | ({around} if around else set())
    most = rows(connection, "graph_most", industry=industry, most=edges)
    tasks = rows(connection, "graph_tasks", tasks=sorted(ends) or [row["task_id"] for row in most])
    titles = {task["task_id"]: task["title"] or task["task_id"] for task in tasks}
    group_of, groups = grouped(tasks)
    return Picture(
        " · ".join(["Work Knowledge Graph", *([industry] if industry else []), *([f"around {titles[around]}"] if around else [])]),
        f"{_scope(found, len(tasks), most[0]['of_tasks'] if most else 0, around, hops)}\nsnapshot {snapshot}",
        tuple(node(task, group_of[task["task_id"]], task["task_id"] == around) for task in tasks),
        tuple(edge(row, titles, scale) for row in found),
        groups,
    )


def node(task: Row, group: str | None = None, focus: bool = False) -> PictureNode:
    """A task: its title, how often it was carried out and how well; everything known of it in the tooltip."""
    chance = "" if task["p"] is None else f" · p {_chance(task['p'])}{SHORT_BASIS.get(task['p_basis'] or '', '')}"
    return PictureNode(
        task["task_id"], task["title"] or task["task_id"], f"{task['implementations'] or 0:,}{chance}", "\n".join(_told(task)), group, focus
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
    """A group a task, and the groups with their words, the largest first: by community, else by industry, else by component."""
    column, word = next(((c, w) for c, w in GROUPINGS if any(task[c] for task in tasks)), (None, ""))
    if column is None:
        return {task["task_id"]: None for task in tasks}, ()
    of = {task["task_id"]: _group(task[column]) for task in tasks}
    sizes = Counter(group for group in of.values() if group is not None)
    first = {group: task["title"] or task["task_id"] for task in reversed(tasks) if (group := of[task["task_id"]]) is not None}
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
