"""What a search over a Workflow Graph is asked: what counts as best, and what every path must keep to, EVAL (12)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from opus_pipelines.core.settings import Cost
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.optimization.diversity import swaps
from opus_pipelines.workflow.model import TaskNode

Nodes = frozenset[str]
Figure = Literal["cost_usd", "duration_ms", "success"]
Objective = Literal["reward", "cost_usd", "duration_ms", "success"]


@dataclass(frozen=True)
class Limit:
    """EVAL (5) or (2) of the chain at most, or its success (4) at least `value`."""

    name: str
    figure: Figure
    value: float


@dataclass(frozen=True)
class Contains:
    """At least one of these nodes."""

    name: str
    nodes: Nodes


@dataclass(frozen=True)
class Avoids:
    """None of these nodes."""

    name: str
    nodes: Nodes


@dataclass(frozen=True)
class Before:
    """Of each pair of sets: where a path holds nodes of both, the first of those of the first set comes before all of
    the second.
    """

    name: str
    pairs: tuple[tuple[Nodes, Nodes], ...]


@dataclass(frozen=True)
class Differs:
    """At least `least` swaps (`optimization.diversity`) from a path that has these nodes: so many others, or so many
    fewer of them.
    """

    name: str
    nodes: Nodes
    least: int


Demand = Limit | Contains | Avoids | Before | Differs


def keeps(tasks: Sequence[str], demands: Iterable[Demand]) -> bool:
    """Whether a sequence of tasks keeps every demand on which tasks, and in which order; limits are not looked at."""
    at = {task: place for place, task in enumerate(tasks)}
    for demand in demands:
        if isinstance(demand, Contains | Avoids) and demand.nodes.isdisjoint(at) == isinstance(demand, Contains):
            return False
        if isinstance(demand, Differs) and swaps(at.keys(), demand.nodes) < demand.least:
            return False
        if isinstance(demand, Before):
            for first, second in demand.pairs:
                ends = [at[n] for n in first if n in at], [at[n] for n in second if n in at]
                if all(ends) and min(ends[0]) >= min(ends[1]):
                    return False
    return True


@dataclass(frozen=True)
class Problem:
    """A Workflow Graph whose tasks have one or more ways each (`options`, by node), and what is asked of a path
    through it.

    Worth of a path: gain · success at its end - cost (5), success carried along by s -> q + (p - q)·s from the input's
    prior on; less κ·(1 - γ) dollars an edge. Other objectives: least cost (the same without gain, LWM (12)), least
    duration, most success.
    """

    wfg: WFG
    options: Mapping[str, Sequence[TaskNode]]
    cost: Cost
    gain_usd: float
    prior: float = 1.0
    demands: tuple[Demand, ...] = ()
    objective: Objective = "reward"

    def without(self, *dropped: Demand) -> "Problem":
        """The same without these demands."""
        return replace(self, demands=tuple(d for d in self.demands if d not in dropped))
