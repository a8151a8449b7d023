"""The Work Knowledge Graph in memory, as generation and planning walk it, and the edge weight γ of LWM (2) with its λ.

λ is given by the settings, kept from an earlier snapshot, or chosen so that the median edge has γ = 0.5.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import EDGES, TASK_IMPLEMENTATIONS, TASKS
from opus_pipelines.core.settings import Wkg
from opus_pipelines.lake.layout import read_table
from opus_pipelines.workflow.model import Actor


@dataclass(frozen=True)
class LambdaRule:
    """The source of λ.

    `token` stands for it in the id of the snapshot: a λ that a snapshot chose has the same token when it is kept.
    """

    value: float | None  # None: to be chosen from this snapshot's edges
    unit: str
    token: str
    kept: bool  # is it, or will it be, in lambda.json


def lambda_rule(settings: Wkg, kept: Mapping[str, Any] | None, inputs: str, reset: bool = False) -> LambdaRule:
    """Returns the rule in force; `inputs` is the hash of all other inputs of the snapshot.

    λ is kept for each unit separately.
    """
    unit = settings.gamma_unit
    if settings.lambda_ is not None:
        return LambdaRule(settings.lambda_, unit, digest("set", settings.lambda_), kept=False)
    if kept and unit in kept and not reset:
        return LambdaRule(kept[unit]["lambda"], unit, kept[unit]["chosen_from"], kept=True)
    return LambdaRule(None, unit, digest("median", inputs), kept=True)


def choose_lambda(counts: Sequence[int]) -> float | None:
    """Returns the λ in ]0, 1] that gives an edge of the median count γ = 0.5; None without edges."""
    return min(1.0, math.log(2) / median(counts)) if counts else None


def gamma(lambda_: float, count: int) -> float:
    """Returns 1 − exp(−λ·|ξ|), equation (2) of LWM."""
    return -math.expm1(-lambda_ * count)


LEAST_CHANCE = 1e-4  # nearer to 0 or 1 a probability is taken as this, so that its log-odds are finite


@dataclass(frozen=True)
class ExecutionMode:
    """One execution mode of a task: who does it, how well, at what cost and time. None means unknown."""

    actor_kind: str | None = None
    model: str | None = None
    actor_group: str | None = None
    implementations: int = 0
    instructions: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    p: float | None = None
    p_lower: float | None = None
    p_upper: float | None = None
    p_n: int = 0
    q: float | None = None
    q_lower: float | None = None
    q_upper: float | None = None
    q_n: int = 0
    basis: str | None = None
    duration_ms_mean: float | None = None
    duration_ms_deviation: float | None = None
    duration_n: int = 0
    duration_basis: str | None = None
    cost_usd_mean: float | None = None
    cost_usd_deviation: float | None = None
    cost_n: int = 0
    cost_compute_usd: float | None = None
    cost_model_usd: float | None = None
    cost_human_usd: float | None = None
    cost_basis: str | None = None
    memory_gb: float | None = None
    threads: float | None = None

    @property
    def actor(self) -> Actor:
        """Who or what carries out the task in this mode."""
        return Actor(self.actor_kind, self.model, self.actor_group)


_TEXTS = ("description", "instructions", "inputs", "outputs")
GROUP_OF_OTHERS = "a group of another client"


@dataclass(frozen=True)
class Task:
    """One node. `execution_modes` come most frequent first.

    `said`: the description, instructions, inputs and outputs that each client's history gives, by client; None is
    history without a client.
    """

    task_id: str
    title: str
    description: str | None = None
    instructions: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    industries: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    activity_kind: str = "step"  # step, event or outcome
    implementations: int = 0
    p: float | None = None
    p_basis: str | None = None
    p_n: int = 0
    q: float | None = None
    q_basis: str | None = None
    q_n: int = 0
    community: str | None = None
    execution_modes: tuple[ExecutionMode, ...] = ()
    said: Mapping[str | None, Mapping[str, Any]] = field(default_factory=dict)

    def seen_by(self, client: str | None) -> "Task":
        """Returns the task as a result for this client may show it: its name, with the client's own texts and groups.

        Figures are those of all clients. Texts and groups of history without a client are everybody's.
        """
        own = {None, client}
        modes = _modes_seen_by(self, client)
        if modes is self.execution_modes and (self.said.keys() | self.clients) <= own:
            return self
        heard = [self.said[one] for one in (client, None) if one in self.said]
        texts: dict[str, Any] = {
            "description": next((one["description"] for one in heard if one["description"]), None),
            **{name: tuple(dict.fromkeys(t for one in heard for t in one[name] or ())) for name in _TEXTS[1:]},
        }
        return replace(self, execution_modes=modes, **texts)


def _modes_seen_by(task: Task, client: str | None) -> tuple[ExecutionMode, ...]:
    """Returns the execution modes; one that only others have keeps its figures, and its group and texts go."""
    if all(not mode.clients or mode.clients == (client,) for mode in task.execution_modes):
        return task.execution_modes
    own = {text for one in (client, None) if one in task.said for text in task.said[one]["instructions"] or ()}
    modes, others = list[ExecutionMode](), dict[str, str]()
    for mode in task.execution_modes:
        group = mode.actor_group
        if group is not None and mode.clients and client not in mode.clients:
            # each has a name of its own, so that the modes stay apart
            number = f" ({len(others) + 1})" if others else ""
            group = others.setdefault(group, f"{GROUP_OF_OTHERS}{number}")
        shown = tuple(text for text in mode.instructions if text in own)
        modes.append(replace(mode, actor_group=group, instructions=shown))
    return tuple(modes)


@dataclass(frozen=True)
class PairShift:
    """How the figures of a task differ directly behind another one (`wkg.estimates.pair_figures`), γ included.

    The log-odds are added to those of p and q; time and cost are multiplied by the factors. The errors are standard
    errors of p and q that come with the pair's own outcomes.
    """

    p_log_odds: float = 0.0
    q_log_odds: float = 0.0
    duration_factor: float = 1.0
    cost_factor: float | None = None  # None: no cost is known; one that is a time at a price follows the time
    p_error: float = 0.0
    q_error: float = 0.0


@dataclass(frozen=True)
class Edge:
    """src carried out directly before dst; `gamma` by LWM (2), `one_minus_gamma` = exp(-lambda |xi|), unrounded.

    `shift`: how the figures of dst differ behind src; None where they do not, or where nothing is known.
    """

    src: str
    dst: str
    transitions: int
    variants: int
    gamma: float
    one_minus_gamma: float
    probability: float
    shift: PairShift | None = None


@dataclass
class WorkGraph:
    """Tasks by id, edges by (src, dst); neighbours sorted by id, so that every walk is reproducible."""

    tasks: dict[str, Task] = field(default_factory=dict)
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    successors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    predecessors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @cached_property
    def industries(self) -> frozenset[str]:
        """The industries that have tasks."""
        return frozenset[str]().union(*(task.industries for task in self.tasks.values()))

    @cached_property
    def shifts(self) -> dict[tuple[str, str], PairShift]:
        """The shift of each pair of tasks that has one."""
        return {pair: edge.shift for pair, edge in self.edges.items() if edge.shift is not None}

    def seen_by(self, client: str | None) -> "WorkGraph":
        """Returns the graph as a result for this client may show it, the one door between other clients and it."""
        tasks = {task_id: task.seen_by(client) for task_id, task in self.tasks.items()}
        if all(seen is self.tasks[task_id] for task_id, seen in tasks.items()):
            return self
        return WorkGraph(tasks, self.edges, self.successors, self.predecessors)

    def transitions(self, pair: tuple[str, str]) -> float:
        """How often history went from the one task directly to the other."""
        edge = self.edges.get(pair)
        return float(edge.transitions) if edge else 0.0

    @classmethod
    def of(cls, tasks: list[Task], edges: list[Edge]) -> "WorkGraph":
        """A graph of these tasks and edges; an edge whose end is not a task is an error."""
        graph = cls({t.task_id: t for t in tasks})
        for edge in sorted(edges, key=lambda e: (e.src, e.dst)):
            if edge.src not in graph.tasks or edge.dst not in graph.tasks:
                raise ValueError(f"edge {edge.src} -> {edge.dst} ends outside the tasks")
            graph.edges[edge.src, edge.dst] = edge
            graph.successors[edge.src].append(edge.dst)
            graph.predecessors[edge.dst].append(edge.src)
        return graph


def load(folder: Path, lambda_: float, gamma_unit: str = "transition") -> WorkGraph:
    """The graph of one snapshot's folder; lambda and unit are the manifest's."""
    modes: dict[str, list[ExecutionMode]] = defaultdict(list)
    names = set(ExecutionMode.__dataclass_fields__) - {"instructions", "clients"}
    for row in read_table(TASK_IMPLEMENTATIONS, folder / "task_implementations").to_pylist():
        modes[row["task_id"]].append(
            ExecutionMode(
                instructions=tuple(row["instructions"] or ()),
                clients=tuple(row["clients"] or ()),
                **{n: row[n] for n in names},
            )
        )
    task_rows = {row["task_id"]: row for row in read_table(TASKS, folder / "tasks").to_pylist()}
    order = lambda w: (-w.implementations, str(w.actor_kind), str(w.model), str(w.actor_group))
    tasks = [task_of(row, tuple(sorted(modes[row["task_id"]], key=order))) for row in task_rows.values()]
    unit = "transitions" if gamma_unit == "transition" else "variants"
    edges = [
        Edge(
            row["src"],
            row["dst"],
            row["transitions"],
            row["variants"],
            row["gamma"],
            math.exp(-lambda_ * row[unit]),
            row["probability"],
            pair_shift(row, task_rows[row["dst"]]),
        )
        for row in read_table(EDGES, folder / "edges").to_pylist()
    ]
    return WorkGraph.of(tasks, edges)


_OF_TASK = set(Task.__dataclass_fields__) - {"execution_modes", "activity_kind", "said"}
_LISTS = {"instructions", "inputs", "outputs", "industries", "clients"}


def task_of(row: Mapping[str, Any], execution_modes: tuple[ExecutionMode, ...] = ()) -> Task:
    """Returns the task of a row of wkg/tasks, which may have a part of the columns."""
    columns: dict[str, Any] = {n: tuple(row[n] or ()) if n in _LISTS else row[n] for n in _OF_TASK & row.keys()}
    return Task(
        **columns,
        execution_modes=execution_modes,
        activity_kind=row.get("activity_kind") or "step",  # a snapshot of an older version says nothing
        said={one["client"]: one for one in row["said"] or ()},
    )


def pair_shift(edge: Mapping[str, Any], task: Mapping[str, Any]) -> PairShift | None:
    """Returns how the figures of a task differ behind the earlier task of an edge; None where they do not.

    The arguments are rows of wkg/edges and wkg/tasks. A snapshot of an older version says nothing, so they do not.
    """

    def factor(name: str) -> float | None:
        own, drawn = task[name], edge[f"dst_{name}"]
        return drawn / own if own and drawn is not None else None

    shift = PairShift(
        _log_odds(edge["dst_p"]) - _log_odds(task["p"]) if _known(edge["dst_p"], task["p"]) else 0.0,
        _log_odds(edge["dst_q"]) - _log_odds(task["q"]) if _known(edge["dst_q"], task["q"]) else 0.0,
        factor("duration_ms_mean") or 1.0,
        factor("cost_usd_mean"),
        *(_error(edge[f"dst_{name}"], edge[f"dst_{name}_n"], edge[f"dst_{name}_gamma"]) for name in "pq"),
    )
    same = shift.p_log_odds, shift.q_log_odds, shift.duration_factor, shift.cost_factor or 1.0
    return None if same == (0.0, 0.0, 1.0, 1.0) else shift


def _error(chance: float | None, n: int | None, gamma: float | None) -> float:
    return gamma * math.sqrt(chance * (1 - chance) / (n + 1)) if chance is not None and n and gamma else 0.0


def _known(*figures: float | None) -> bool:
    return None not in figures


def _log_odds(chance: float) -> float:
    inside = min(max(chance, LEAST_CHANCE), 1 - LEAST_CHANCE)
    return math.log(inside / (1 - inside))
