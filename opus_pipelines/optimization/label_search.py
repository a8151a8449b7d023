"""The k best paths with the way of every task, jointly, within limits: exact where the search ends, else with the gap
that it leaves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from opus_pipelines.optimization.cost_to_go import Line, Relaxed, States, height
from opus_pipelines.optimization.diversity_constraint import DiversityConstraint
from opus_pipelines.optimization.pareto_labels import Arrived, ParetoLabels
from opus_pipelines.optimization.pareto_points import EPS
from opus_pipelines.optimization.problem import Problem
from opus_pipelines.optimization.search_net import Limits, SearchNet
from opus_pipelines.workflow.model import TaskNode

EFFORT = 20_000  # labels looked at; what takes no more is solved exactly
FRONT = 1_000  # points a label keeps
PATIENCE = 200  # labels after which limits are priced: it costs some ten passes over the graph
KEPT = 256  # solved nets that are remembered: some 100 kB each
STATES = 4  # nets whose states are kept for another search: some megabytes each
_EXPONENTS = range(-4, 4)


@dataclass(frozen=True)
class ChosenPath:
    """A path of tasks, each in its chosen way. `worth`: of the objective; the rest: EVAL (5), (2) and (4) of the
    chain.
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
    """Paths, best first. `exact`: none better was missed, among the first k; and where there is none, none fits.

    `gap`: how much more than the first another fitting path may be worth at most, in units of the objective (dollars of
    Reward or cost); 0 where the first is the best, None where nothing was found though something may fit.
    """

    paths: list[ChosenPath]
    exact: bool
    gap: float | None


def best_paths(problem: Problem, k: int = 1, effort: int = EFFORT, front: int = FRONT) -> BestPaths:
    """The k best loopless paths from input to output that keep every demand, each with its best ways.

    Ties within 1e-9 of the objective go to the more trodden path, then to the ids; which of several that tie at the
    k-th place are told is the same in every run. Limits are carried only where a path found without them breaks them:
    as long as none does, it is the best with them too. Where `effort` or `front` is reached, limits are priced
    (Lagrange) and what was not looked at is bounded: the gap. Raises WorkflowError for figures that are no
    probabilities or amounts.
    """
    net = SearchNet(problem)
    found, exact, gap = _solved(net, DiversityConstraint.of(problem, net), k, effort, front)
    return BestPaths([_chosen(problem, net, a) for a in found], exact, gap)


@lru_cache(KEPT)
def _solved(
    net: SearchNet, unlike: DiversityConstraint, k: int, effort: int, front: int
) -> tuple[tuple[Arrived, ...], bool, float | None]:
    """Paths, whether they are exact, the gap. Many intakes of a contract ask for the same net."""
    if not net.open or k < 1:
        return (), True, 0.0
    states = _states(net)
    carried = Limits()
    while True:
        labels = _searched(net, states, carried, unlike, k, effort, front)
        broken = _broken(labels.found[:k], net.limits, carried)
        if broken == carried:
            return _result(labels, k)
        carried = broken


@lru_cache(STATES)
def _states(net: SearchNet) -> States:
    return States(net)


def _searched(
    net: SearchNet, states: States, limits: Limits, unlike: DiversityConstraint, k: int, effort: int, front: int
) -> ParetoLabels:
    labels = ParetoLabels(net, states, limits, k, front, unlike=unlike)
    if labels.run(min(PATIENCE, effort)):
        return labels
    if limits != Limits():
        relaxed = _priced(net, states, limits)
        labels = ParetoLabels(net, states, limits, k, front, relaxed, unlike)
    if not labels.run(effort):
        labels.dive(effort)
    return labels


def _broken(found: list[Arrived], limits: Limits, carried: Limits) -> Limits:
    """The limits carried so far and those that a path breaks."""
    points = [a.point for a in found]
    return Limits(
        limits.cost if any(p.cost_usd > limits.cost for p in points) else carried.cost,
        limits.duration if any(p.duration > limits.duration for p in points) else carried.duration,
        limits.success if any(p.success < limits.success for p in points) else carried.success,
    )


def _priced(net: SearchNet, states: States, limits: Limits) -> Relaxed:
    """The multipliers that bound the whole from above the closest, found one after the other, and the lines to go with
    them.
    """
    best: list[float] = [0.0, 0.0, 0.0]
    scale = [1.0, max(net.gain, 1.0) / limits.duration, max(net.gain, 1.0)]
    active = [limits.cost < math.inf, limits.duration < math.inf, limits.success > 0]

    def lines(m: list[float]) -> list[list[Line]]:
        return states.best_to_go(net.gain + m[2], lambda o: o.weight + m[0] * o.cost + m[1] * o.duration)

    def root(m: list[float]) -> float:
        slack = (
            sum(x * limit for x, limit, on in zip(m[:2], limits[:2], active, strict=False) if on)
            - m[2] * limits.success
        )
        return height(lines(m)[0], net.prior) + slack

    for which in [i for i in range(3) if active[i]]:
        tried = [[*best[:which], x, *best[which + 1 :]] for x in (0.0, *(scale[which] * 10.0**e for e in _EXPONENTS))]
        best = tried[_lowest(lambda i, tried=tried: root(tried[i]), len(tried))]  # type: ignore[misc]
    return lines(best), (best[0], best[1], best[2])


def _lowest(value: Callable[[int], float], n: int) -> int:
    """The first place of the least of n values of a convex function."""
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


def _result(labels: ParetoLabels, k: int) -> tuple[tuple[Arrived, ...], bool, float | None]:
    found = tuple(labels.found[:k])
    missed = labels.ahead
    exact = missed <= labels.cutoff + EPS
    gap = (
        (max(0.0, missed - found[0].worth) if missed > found[0].worth + EPS else 0.0)
        if found
        else 0.0
        if exact
        else None
    )
    return found, exact, gap


def _chosen(problem: Problem, net: SearchNet, arrived: Arrived) -> ChosenPath:
    tasks = tuple(net.names[i] for i in arrived.nodes[1:-1])
    nodes = tuple(problem.options[t][pick] for t, pick in zip(tasks, arrived.point.picks, strict=False))
    point = arrived.point
    return ChosenPath(tasks, nodes, arrived.worth, point.cost_usd, point.duration, point.success, arrived.transitions)
