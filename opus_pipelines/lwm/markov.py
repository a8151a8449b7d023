"""A beam search inside one SWKG: the likeliest walks by the transition probabilities of the WKG.

The cases similar to the Intention tell where a walk begins and ends, and how often it may come back to a task; the
whole graph tells what follows what.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs.steiner_tree import SubWKG

_WIDTH = 12
MAX_LENGTH = 60
_END_SMOOTHING = 0.5


@dataclass(frozen=True)
class Walk:
    """A sequence of tasks, each at its first visit, and the mean log-probability of the steps of the walk."""

    tasks: tuple[str, ...]
    log_probability: float


def beam(graph: WorkGraph, subgraph: SubWKG, cases: Sequence[SimilarCase], width: int = _WIDTH) -> list[Walk]:
    """Return at most `width` finished walks, likeliest first; task ids decide between equal ones.

    A walk visits a task as often as the similar case that did it most often, so that what history does after coming
    back to a task can be reached. Of the walks with the same tasks at their first visits the likeliest one counts.
    """
    inside = set(subgraph.tasks)
    visits = _most_visits(inside, cases)
    ends = _end_rates(inside, cases)
    unfinished: list[tuple[tuple[str, ...], float]] = [
        ((task,), math.log(rate)) for task, rate in _starts(inside, cases, graph).items()
    ]
    finished: dict[tuple[str, ...], float] = {}
    for _ in range(min(MAX_LENGTH, visits.total())):
        extended: list[tuple[tuple[str, ...], float]] = []
        for tasks, score in unfinished:
            steps = _steps(graph, tasks, visits)
            end = ends.get(tasks[-1], 1.0 if not steps else 0.0)
            if end > 0:
                once, mean = tuple(dict.fromkeys(tasks)), (score + math.log(end)) / (len(tasks) + 1)
                finished[once] = max(mean, finished.get(once, -math.inf))
            stay = math.log(max(1 - end, 1e-9))
            extended += [((*tasks, task), score + stay + math.log(rate)) for task, rate in steps.items()]
        unfinished = sorted(extended, key=lambda w: (-w[1], w[0]))[:width]
    return [Walk(tasks, score) for tasks, score in sorted(finished.items(), key=lambda w: (-w[1], w[0]))[:width]]


def _starts(inside: set[str], cases: Sequence[SimilarCase], graph: WorkGraph) -> dict[str, float]:
    """Return P(a walk begins with the task).

    Where no similar case begins inside the SWKG, the tasks without predecessors inside it are equally likely; where
    there is none, all tasks are.
    """
    counts: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.tasks and case.tasks[0] in inside:
            counts[case.tasks[0]] += case.weight
    if not counts:
        sources = [t for t in sorted(inside) if not inside.intersection(graph.predecessors.get(t, ()))] or sorted(
            inside
        )
        counts = dict.fromkeys(sources, 1.0)
    total = sum(counts.values())
    return {task: count / total for task, count in sorted(counts.items())}


def _end_rates(inside: set[str], cases: Sequence[SimilarCase]) -> dict[str, float]:
    """Return P(the walk ends | it is at the task) from similar cases that did not fail.

    Only tasks at which a case ended are in it.
    """
    visits: dict[str, float] = defaultdict(float)
    ends: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.success is False or not case.tasks:
            continue
        for task in set(case.tasks):
            visits[task] += case.weight
        ends[case.tasks[-1]] += case.weight
    return {t: ends[t] / (visits[t] + _END_SMOOTHING * min(1.0, ends[t])) for t in sorted(inside) if ends[t] > 0}


def _most_visits(inside: set[str], cases: Sequence[SimilarCase]) -> Counter[str]:
    """Return how often a walk may visit each task: as often as one similar case did it, at least once."""
    most = Counter(sorted(inside))
    for case in cases:
        if len(set(case.tasks)) < len(case.tasks):  # a case that repeats nothing raises no count
            most |= Counter(task for task in case.tasks if task in inside)
    return most


def _steps(graph: WorkGraph, tasks: tuple[str, ...], visits: Counter[str]) -> dict[str, float]:
    """Return P(next task) among the tasks that the walk may visit once more."""
    candidates = [t for t in graph.successors.get(tasks[-1], ()) if tasks.count(t) < visits[t]]
    rates = {t: graph.edges[tasks[-1], t].probability for t in candidates}
    total = sum(rates.values())
    return {t: rate / total for t, rate in rates.items()} if total else {}
