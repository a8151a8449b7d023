"""Finds the k best paths and the execution mode of every task jointly, within limits.

The result is exact where the search completes; otherwise it states the optimality gap.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.generation.search.cost_to_go import LagrangeBound, Line, SearchStates, envelope_height
from opus_pipelines.generation.search.diversity_constraint import DiversityConstraint
from opus_pipelines.generation.search.pareto_labels import CompletePath, ParetoLabels, SearchSpace
from opus_pipelines.generation.search.pareto_points import EPS
from opus_pipelines.generation.search.problem import Problem, ProblemKey
from opus_pipelines.generation.search.search_net import Limits, SearchNet
from opus_pipelines.workflow.model import TaskNode

EFFORT = 20_000  # most labels that a search expands; a search that needs fewer is exact
FRONT = 1_000  # most Pareto points of a label
# labels after which limits get a price (Lagrangian relaxation), which takes about ten passes over the graph
PATIENCE = 200
_NETS_KEPT = 256  # solved nets in the cache, about 100 kB each
STATES = 4  # nets whose search states are cached, some megabytes each
_EXPONENTS = range(-4, 4)


@dataclass(frozen=True)
class SearchBounds:
    """How far a search goes: the labels that it expands, the Pareto points of a label, and after how many labels limits
    get a price.
    """

    effort: int = EFFORT
    front: int = FRONT
    patience: int = PATIENCE


@dataclass(frozen=True)
class ChosenPath:
    """A path of tasks, each in its chosen execution mode.

    `worth` is in units of the objective. Cost, duration and success are EVAL (5), (2) and (4) of the chain.
    """

    tasks: tuple[str, ...]
    nodes: tuple[TaskNode, ...]
    worth: float
    cost_usd: float
    duration_ms: float
    success: float
    transitions: int


@dataclass(frozen=True)
class BestPaths:
    """The best paths, best first, and how certain the search is of them.

    `exact`: no better path was missed among the first k; where there is no path, none is feasible. `gap`: an upper
    bound on how much more another feasible path is worth than the first, in units of the objective (dollars of Reward
    or cost). It is 0 where the first path is optimal, and None where nothing was found though a feasible path may
    exist.
    """

    paths: list[ChosenPath]
    exact: bool
    gap: float | None


def best_paths(
    problem: Problem, k: int = 1, effort: int = EFFORT, front: int = FRONT, patience: int = PATIENCE
) -> BestPaths:
    """Returns the k best loopless paths from input to output that keep every demand, each with its best modes.

    Ties within 1e-9 of the objective go to the path with more transitions in history, then to the smaller ids.
    Which of several paths tied at place k are returned is the same in every run. The search carries a limit only
    where a path found without it breaks it; while no path breaks a limit, the best path is also the best under the
    limit. After `patience` labels, and where `effort` or `front` is reached, the limits get a price (Lagrangian
    relaxation), and a bound on the unexplored labels gives the gap. Raises WorkflowError for figures that are not
    valid probabilities or amounts.
    """
    net = _net_of(ProblemKey.of(problem))
    paths, exact, gap = solve(net, DiversityConstraint.of(problem, net), k, SearchBounds(effort, front, patience))
    return BestPaths([_chosen(problem, net, a) for a in paths], exact, gap)


@lru_cache(_NETS_KEPT)
def _net_of(key: ProblemKey) -> SearchNet:
    return SearchNet(key.problem)


@lru_cache(_NETS_KEPT)
def solve(
    net: SearchNet, diversity: DiversityConstraint, k: int, bounds: SearchBounds
) -> tuple[tuple[CompletePath, ...], bool, float | None]:
    """Returns the paths, whether they are exact, and the gap. Many intakes of a contract share one net."""
    if not net.open or k < 1:
        return (), True, 0.0
    states = _states(net)
    carried = Limits()
    while True:
        labels = _search(SearchSpace(states, carried, diversity), k, bounds)
        broken = _broken_limits(labels.paths[:k], net.limits, carried)
        if broken == carried:
            return _result(labels, k)
        carried = broken


@lru_cache(STATES)
def _states(net: SearchNet) -> SearchStates:
    return SearchStates(net)


def _search(space: SearchSpace, k: int, bounds: SearchBounds) -> ParetoLabels:
    labels = ParetoLabels(space, k, bounds.front)
    if labels.run(min(bounds.patience, bounds.effort)):
        return labels
    if space.limits != Limits():
        labels = ParetoLabels(space, k, bounds.front, _lagrange_bound(space))
    if not labels.run(bounds.effort):
        labels.dive(bounds.effort)
    return labels


def _broken_limits(paths: list[CompletePath], limits: Limits, carried: Limits) -> Limits:
    """Returns the carried limits together with the limits that a found path breaks."""
    points = [a.point for a in paths]
    return Limits(
        limits.cost if any(p.cost_usd > limits.cost for p in points) else carried.cost,
        limits.duration if any(p.duration > limits.duration for p in points) else carried.duration,
        limits.success if any(p.success < limits.success for p in points) else carried.success,
    )


def _lagrange_bound(space: SearchSpace) -> LagrangeBound:
    """Returns the Lagrange multipliers of the tightest upper bound, searched one after the other, and their lines."""
    net, limits = space.net, space.limits
    best: list[float] = [0.0, 0.0, 0.0]
    scale = [1.0, max(net.gain, 1.0) / limits.duration, max(net.gain, 1.0)]
    active = [limits.cost < math.inf, limits.duration < math.inf, limits.success > 0]

    def lines(m: list[float]) -> list[list[Line]]:
        return space.states.best_to_go(net.gain + m[2], lambda o: o.weight + m[0] * o.cost + m[1] * o.duration)

    def root(m: list[float]) -> float:
        slack = (
            sum(x * limit for x, limit, on in zip(m[:2], limits[:2], active, strict=False) if on)
            - m[2] * limits.success
        )
        return envelope_height(lines(m)[0], net.prior) + slack

    for which in [i for i in range(3) if active[i]]:
        candidates = [
            [*best[:which], x, *best[which + 1 :]] for x in (0.0, *(scale[which] * 10.0**e for e in _EXPONENTS))
        ]
        best = candidates[_lowest(lambda i, candidates=candidates: root(candidates[i]), len(candidates))]  # type: ignore[misc]
    return lines(best), (best[0], best[1], best[2])


def _lowest(value: Callable[[int], float], n: int) -> int:
    """Returns the first index of the minimum of n values of a convex function."""
    known: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in known:
            known[i] = value(i)
        return known[i]

    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if at(middle) <= at(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _result(labels: ParetoLabels, k: int) -> tuple[tuple[CompletePath, ...], bool, float | None]:
    paths = tuple(labels.paths[:k])
    missed = labels.upper_bound
    exact = missed <= labels.cutoff + EPS
    gap = (
        (max(0.0, missed - paths[0].worth) if missed > paths[0].worth + EPS else 0.0)
        if paths
        else 0.0
        if exact
        else None
    )
    return paths, exact, gap


def _chosen(problem: Problem, net: SearchNet, arrived: CompletePath) -> ChosenPath:
    tasks = tuple(net.names[i] for i in arrived.nodes[1:-1])
    nodes = tuple(problem.options[t][pick] for t, pick in zip(tasks, arrived.point.picks, strict=False))
    point = arrived.point
    return ChosenPath(tasks, nodes, arrived.worth, point.cost_usd, point.duration, point.success, arrived.transitions)
