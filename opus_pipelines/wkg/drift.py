"""Measures the drift between two snapshots, and checks the drift of a new snapshot from the last one.

Drift is what changed in tasks, edges, and the transition shares out of each task. λ does not affect it. The checks
warn, or block, when a share of the settings is exceeded.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.schemas import EDGES, TASKS, Dataset
from opus_pipelines.core.settings import Checks
from opus_pipelines.lake.layout import dataset_folder, read_table
from opus_pipelines.wkg.upkeep.changes import run_sql

MOVERS = 10
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Move:
    """An edge whose share of the transitions out of `src` changed.

    `effect` is that change times the share of all transitions that leave `src`.
    """

    src: str
    dst: str
    titles: _Pair
    before: float
    after: float
    effect: float


@dataclass(frozen=True)
class Drift:
    """The difference of two snapshots; ids and pairs are sorted.

    `industries` and `sources` are those that have no task any more.
    """

    tasks: tuple[int, int]
    edges: tuple[int, int]
    transitions: tuple[int, int]
    tasks_added: tuple[str, ...]
    tasks_removed: tuple[str, ...]
    tasks_renamed: tuple[tuple[str, str, str], ...]
    edges_added: tuple[_Pair, ...]
    edges_removed: tuple[_Pair, ...]
    edge_share: float
    moved: float
    movers: tuple[Move, ...]
    industries_gone: tuple[str, ...]
    sources_gone: tuple[str, ...]

    @property
    def task_share(self) -> float:
        """The share of tasks that came or went among all tasks of both snapshots."""
        changed = len(self.tasks_added) + len(self.tasks_removed)
        return changed / (self.tasks[0] + len(self.tasks_added)) if changed else 0.0

    def figures(self) -> dict[str, Any]:
        """Returns the counts, shares and largest moves for the manifest, without long lists."""
        return {
            "tasks_added": len(self.tasks_added),
            "tasks_removed": len(self.tasks_removed),
            "tasks_renamed": len(self.tasks_renamed),
            "edges_added": len(self.edges_added),
            "edges_removed": len(self.edges_removed),
            "task_share": round(self.task_share, 6),
            "edge_share": round(self.edge_share, 6),
            "moved": round(self.moved, 6),
            "transitions_before": self.transitions[0],
            "transitions_after": self.transitions[1],
            "industries_gone": list(self.industries_gone),
            "sources_gone": list(self.sources_gone),
            "movers": [asdict(move) for move in self.movers],
        }


def compare(before: Path, after: Path, movers: int = MOVERS) -> Drift:
    """Returns what changed from the snapshot in folder `before` to the one in `after`.

    `edge_share` is the share of transitions on edges that only one of the two has. `moved` is the total variation
    distance ½ Σ_dst |share' - share| of the transition shares out of a task, averaged over the tasks with outgoing
    edges in both snapshots, weighted by their transitions in both.
    """
    old, new = _tasks(before), _tasks(after)
    columns = ["src", "dst", "transitions", "probability"]
    tables = (read_table(EDGES, dataset_folder(folder, EDGES), columns=columns) for folder in (before, after))
    edges = run_sql("drift", dict(zip(("old_edges", "new_edges"), tables, strict=True))).to_pylist()
    total = sum(edge["before"] for edge in edges), sum(edge["after"] for edge in edges)
    alone = sum(edge["before"] + edge["after"] for edge in edges if not edge["before"] or not edge["after"])
    titles = {task: row["title"] for tasks in (old, new) for task, row in tasks.items()}
    both = sorted(set(old) & set(new))
    found = _moves(edges, titles)
    return Drift(
        tasks=(len(old), len(new)),
        edges=(sum(1 for edge in edges if edge["before"]), sum(1 for edge in edges if edge["after"])),
        transitions=total,
        tasks_added=tuple(sorted(set(new) - set(old))),
        tasks_removed=tuple(sorted(set(old) - set(new))),
        tasks_renamed=tuple((t, old[t]["title"], new[t]["title"]) for t in both if old[t]["title"] != new[t]["title"]),
        edges_added=tuple((edge["src"], edge["dst"]) for edge in edges if not edge["before"]),
        edges_removed=tuple((edge["src"], edge["dst"]) for edge in edges if not edge["after"]),
        edge_share=alone / sum(total) if sum(total) else 0.0,
        moved=math.fsum(move.effect for move in found) / 2,
        movers=tuple(found[:movers]),
        industries_gone=_gone(old, new, "industries"),
        sources_gone=_gone(old, new, "sources"),
    )


def _tasks(folder: Path) -> dict[str, dict[str, Any]]:
    table = read_table(TASKS, dataset_folder(folder, TASKS), columns=["task_id", "title", "industries", "sources"])
    return {row["task_id"]: row for row in table.to_pylist()}


def _moves(edges: list[dict[str, Any]], titles: Mapping[str, str | None]) -> list[Move]:
    """Returns every edge whose share changed, the largest effect first; `edges` are rows of `sql/changes/drift.sql`."""
    whole = sum({edge["src"]: edge["weight"] or 0 for edge in edges}.values())
    moves = []
    for edge in edges:
        change = abs(edge["share_before"] - edge["share_after"])
        if edge["weight"] and change > 1e-9:
            ends, shares = (edge["src"], edge["dst"]), (edge["share_before"], edge["share_after"])
            names = (titles.get(ends[0]) or ends[0], titles.get(ends[1]) or ends[1])
            moves.append(Move(*ends, names, *shares, change * edge["weight"] / whole))
    return sorted(moves, key=lambda move: (-move.effect, move.src, move.dst))


def _gone(old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]], column: str) -> tuple[str, ...]:
    """Returns the values that some task had before and none has now."""
    names = [{name for row in tasks.values() for name in row[column] or ()} for tasks in (old, new)]
    return tuple(sorted(names[0] - names[1]))


TASK_DRIFT, GONE, EDGE_DRIFT, SHARE_DRIFT = (
    "drift of tasks",
    "no industry or source vanished",
    "drift of edges",
    "drift of transition shares",
)
DRIFT_CHECKS: dict[str, Dataset] = {TASK_DRIFT: TASKS, GONE: TASKS, EDGE_DRIFT: EDGES, SHARE_DRIFT: EDGES}
# What must hold, by check; `checks.drift` says whether a failure warns, blocks, or is not looked for.
DRIFT_MEANINGS = {
    TASK_DRIFT: "The share of tasks that came or went since the last snapshot is at most `checks.drift_tasks`.",
    GONE: "Every industry and every source of the last snapshot is still there.",
    EDGE_DRIFT: "The edges that came or went since the last snapshot have at most the share "
    "`checks.drift_edges` of the transitions.",
    SHARE_DRIFT: "The transition shares moved by at most `checks.drift_transitions` since the last snapshot.",
}


def check_drift(drift: Drift | None, settings: Checks) -> list[CheckResult]:
    """Returns one result for each check.

    All pass when there is no snapshot to compare with, or when the settings turn drift off.
    """
    if settings.drift == "off" or drift is None:
        said = "off by settings" if settings.drift == "off" else "no other snapshot to compare with"
        return [CheckResult(name, True, said, dataset.name, blocking=False) for name, dataset in DRIFT_CHECKS.items()]
    return list(_found(drift, settings))


def _found(drift: Drift, settings: Checks) -> Iterator[CheckResult]:
    came = f"{len(drift.tasks_added)} came, {len(drift.tasks_removed)} went of {drift.tasks[0]}"
    yield _result(TASK_DRIFT, drift.task_share, "drift_tasks", came, settings)
    lost = [
        f"{kind} {name}"
        for kind, names in (("industry", drift.industries_gone), ("source", drift.sources_gone))
        for name in names
    ]
    yield _made(
        GONE, not lost, f"gone: {', '.join(lost[:5])}{', ...' if len(lost) > 5 else ''}" if lost else "none", settings
    )
    came = f"{len(drift.edges_added)} came, {len(drift.edges_removed)} went of {drift.edges[0]}"
    yield _result(EDGE_DRIFT, drift.edge_share, "drift_edges", f"of the transitions; {came}", settings)
    worst = drift.movers[0] if drift.movers else None
    most = (
        f"most: {worst.titles[0][:60]} -> {worst.titles[1][:60]} from {worst.before:.3f} to {worst.after:.3f}"
        if worst
        else "none moved"
    )
    yield _result(SHARE_DRIFT, drift.moved, "drift_transitions", most, settings)


def _result(name: str, share: float, key: str, said: str, settings: Checks) -> CheckResult:
    limit: float = getattr(settings, key)
    passed = share <= limit
    return _made(name, passed, f"{share:.1%}{'' if passed else f', more than {key} = {limit:g}'} ({said})", settings)


def _made(name: str, passed: bool, detail: str, settings: Checks) -> CheckResult:
    blocking = settings.drift == "block"
    remedy = "; if it is meant, rebuild with OPUS_CHECKS_DRIFT=warn" if blocking and not passed else ""
    return CheckResult(name, passed, detail + remedy, DRIFT_CHECKS[name].name, blocking)
