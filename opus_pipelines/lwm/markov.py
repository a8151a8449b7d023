"""A beam search inside one SWKG: the likeliest walks without loops by the transition probabilities of the WKG.

The cases similar to the Intention tell where a walk begins and ends; the whole graph tells what follows what.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.steiner_tree import SubWKG

WIDTH = 12
MAX_LENGTH = 60
_END_SMOOTHING = 0.5


@dataclass(frozen=True)
class Walk:
    """A sequence of tasks and the mean log-probability of its steps."""

    tasks: tuple[str, ...]
    log_probability: float


def beam(graph: WorkGraph, subgraph: SubWKG, cases: Sequence[SimilarCase], width: int = WIDTH) -> list[Walk]:
    """Return at most `width` finished walks, likeliest first; task ids decide between equal ones."""
    inside = set(subgraph.tasks)
    ends = _end_rates(inside, cases)
    unfinished: list[tuple[tuple[str, ...], float]] = [
        ((task,), math.log(rate)) for task, rate in _starts(inside, cases, graph).items()
    ]
    finished: dict[tuple[str, ...], float] = {}
    for _ in range(min(MAX_LENGTH, len(inside))):
        extended: list[tuple[tuple[str, ...], float]] = []
        for tasks, score in unfinished:
            steps = _steps(graph, tasks, inside)
            end = ends.get(tasks[-1], 1.0 if not steps else 0.0)
            if end > 0:
                finished[tasks] = (score + math.log(end)) / (len(tasks) + 1)
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


def _steps(graph: WorkGraph, tasks: tuple[str, ...], inside: set[str]) -> dict[str, float]:
    """Return P(next task) among the tasks of the SWKG that the walk has not visited."""
    candidates = [t for t in graph.successors.get(tasks[-1], ()) if t in inside and t not in tasks]
    rates = {t: graph.edges[tasks[-1], t].probability for t in candidates}
    total = sum(rates.values())
    return {t: rate / total for t, rate in rates.items()} if total else {}
