"""Defines a search problem over a Workflow Graph: its objective, and the demands on every path, EVAL (12)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from opus_pipelines.core.ids import SameObject, SameSettings
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.diversity import swaps
from opus_pipelines.generation.search.predecessors import Shifts
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.workflow.model import TaskNode

Nodes = frozenset[str]
Figure = Literal["cost_usd", "duration_ms", "success"]
Objective = Literal["reward", "cost_usd", "duration_ms", "success"]


@dataclass(frozen=True)
class Limit:
    """An upper limit on EVAL (5) or (2) of the chain, or a lower limit on its success (4)."""

    name: str
    figure: Figure
    value: float


@dataclass(frozen=True)
class Contains:
    """A path must have at least one of these nodes."""

    name: str
    nodes: Nodes


@dataclass(frozen=True)
class Avoids:
    """A path must have none of these nodes."""

    name: str
    nodes: Nodes


@dataclass(frozen=True)
class Before:
    """For each pair of sets, the first node of the first set comes before all nodes of the second.

    A pair only counts where a path has nodes of both sets.
    """

    name: str
    pairs: tuple[tuple[Nodes, Nodes], ...]


@dataclass(frozen=True)
class Differs:
    """A path must differ by at least `least` swaps (`generation.search.diversity`) from the path with these nodes."""

    name: str
    nodes: Nodes
    least: int


Demand = Limit | Contains | Avoids | Before | Differs


def keeps(tasks: Sequence[str], demands: Iterable[Demand]) -> bool:
    """Returns whether a sequence of tasks keeps every demand on its tasks and their order; limits are not tested."""
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
    """A Workflow Graph whose tasks have one or more execution modes (`options`, by node), and demands on its paths.

    The worth of a path is gain · success at its end - cost (5), less κ·(1 - γ) dollars per edge. Success follows s -> q
    + (p - q)·s, starting with the prior of the input. The other objectives are least cost (the same without gain, LWM
    (12)), least duration and highest success. `shifts`: how the figures of a task differ behind another one.
    """

    wfg: WFG
    options: Mapping[str, Sequence[TaskNode]]
    cost: Cost
    gain_usd: float
    prior: float = 1.0
    demands: tuple[Demand, ...] = ()
    objective: Objective = "reward"
    shifts: Shifts = field(default_factory=dict)

    def without(self, *dropped: Demand) -> "Problem":
        """Returns the problem without these demands."""
        return replace(self, demands=tuple(d for d in self.demands if d not in dropped))


@dataclass(frozen=True)
class ProblemKey:
    """A key for all that a search net is made of; of a problem with the same objects and content it is the same."""

    tasks: frozenset[str]
    edges: frozenset[tuple[str, str, float, int]]
    options: SameObject[Mapping[str, Sequence[TaskNode]]]
    shifts: SameObject[Shifts]
    cost: SameSettings[Cost]
    demands: tuple[Demand, ...]
    objective: Objective
    gain_usd: float
    prior: float
    problem: Problem = field(compare=False)

    @classmethod
    def of(cls, problem: Problem) -> "ProblemKey":
        """Returns the key of a problem."""
        return cls(
            frozenset(problem.wfg.nodes),
            frozenset((*pair, edge.one_minus_gamma, edge.transitions) for pair, edge in problem.wfg.edges.items()),
            SameObject(problem.options),
            SameObject(problem.shifts),
            SameSettings.of(problem.cost),
            problem.demands,
            problem.objective,
            problem.gain_usd,
            problem.prior,
            problem,
        )
