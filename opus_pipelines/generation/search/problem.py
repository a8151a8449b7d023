"""The search problem: its objective, the demands on every path, EVAL (12), and how different two workflows are.

A *step* is a task or a review with the way it is carried out: node, actor kind, model and group. The distance of two
workflows is the least number of *swaps* that turns the steps of one into the steps of the other. One swap replaces a
step, removes one or adds one, so the distance is the larger of the two numbers of steps that only one workflow has. The
same task done by another actor is one swap. The order of steps does not count, because it changes when a step runs and
not what is done. The distance is a metric on sets of steps.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from opus_pipelines.core.ids import SameObject, SameSettings
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.costs import Shifts
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.workflow.model import TaskNode, Workflow

StepKey = tuple[str, str | None, str | None, str | None]  # node, actor kind, model, group
Steps = frozenset[StepKey]


class WithSteps(Protocol):
    """A candidate whose tasks and steps can be compared with those of another."""

    @property
    def tasks(self) -> Sequence[str]:
        """Its task nodes."""
        ...

    @property
    def steps(self) -> Steps:
        """Its steps, reviews included."""
        ...


D = TypeVar("D", bound=WithSteps)


def step_of(node: TaskNode) -> StepKey:
    """Returns the step that a node represents."""
    return node.id, node.actor_kind, node.model, node.actor_group


def steps_of(workflow: Workflow) -> Steps:
    """Returns all steps of a workflow, reviews included."""
    return frozenset(map(step_of, workflow.tasks))


def swaps(first: Collection[Hashable], second: Collection[Hashable]) -> int:
    """Returns the number of swaps between two sets of steps, or of tasks; 0 for equal sets."""
    common = len(set(first) & set(second))
    return max(len(first), len(second)) - common


def jaccard_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """Returns 1 - |common| / |all| of two sets of tasks; 0 for two empty sets."""
    a, b = set(first), set(second)
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def select_diverse(ranked: Sequence[D], least_swaps: int, least_share: float = 0.0) -> list[D]:
    """Returns the candidates that differ enough from every better one that is kept; `ranked` is best first.

    The first candidate is always kept. Two candidates differ enough with at least `least_swaps` swaps and a Jaccard
    distance of their tasks of at least `least_share`.
    """
    kept: list[D] = []
    for candidate in ranked:
        if all(is_diverse(candidate, better, least_swaps, least_share) for better in kept):
            kept.append(candidate)
    return kept


def is_diverse(first: WithSteps, second: WithSteps, least_swaps: int, least_share: float = 0.0) -> bool:
    """Returns whether two candidates differ enough."""
    return (
        swaps(first.steps, second.steps) >= least_swaps and jaccard_distance(first.tasks, second.tasks) >= least_share
    )


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
    """A path must differ by at least `least` swaps (`generation.search.problem`) from the path with these nodes."""

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
