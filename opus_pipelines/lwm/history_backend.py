"""The history backend of the LWM: the sequences of similar cases, and a beam search inside each SWKG.

It needs no training. A similar case votes for its sequence with its weight, and sequences that succeeded outweigh those
that failed. The beam search adds sequences that may be in no case at all: the likeliest walks by the transition
probabilities of the WKG. The similar cases tell where a walk begins and ends, and how often it may come back to a task;
the whole graph tells what follows what.

Where an intake demands several processes, the plan that joins them (`lwm.stitching`) is added, LWM (9): no case ever
did them together, so there is no sequence to look up.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

from opus_pipelines.core.versions import history_backend_version
from opus_pipelines.lwm.interface import LargeWorkModel, LwmRequest, SimilarCase, TaskSequence
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG

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


PER_SUBGRAPH = 8  # most sequences of similar cases
BEAMS_PER_SUBGRAPH = 4  # most sequences by beam search
# weight of the prior success rate 1/2; and of a sequence by beam search, relative to one of history
_PRIOR_WEIGHT = 0.2


class HistoryBackend(LargeWorkModel):
    """A backend that uses history alone. `walks`: whether it adds walks along the edges of the WKG."""

    name = "history"

    def __init__(self, walks: bool = True) -> None:
        self._walks = walks

    def without_walks(self) -> "HistoryBackend":
        """Return this backend without walks along edges, for an ablation."""
        other = copy(self)
        vars(other)["_walks"] = False
        return other

    @property
    def version(self) -> str:
        """Return name and algorithm version; the backend has no weights of its own."""
        return history_backend_version()

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Return, for every subgraph, the best sequences of similar cases and the likeliest new walks.

        The consensus of the similar cases, and the steps that the intake's procedure asks for, get the highest
        scores, as does the plan that joins several demanded processes.
        """
        near = _similar_sequences(request.cases)
        sequences: list[TaskSequence] = []
        for number, subgraph in enumerate(request.subgraphs):
            own = [s for s in near if _closest_subgraph(s[0], request.subgraphs) == number][:PER_SUBGRAPH]
            sequences += [TaskSequence(number, tasks, score, "history") for tasks, score in own]
            known = {tasks for tasks, _ in near}
            walked = beam(request.graph, subgraph, request.cases) if self._walks else []
            walks = [w for w in walked if w.tasks not in known][:BEAMS_PER_SUBGRAPH]
            sequences += [
                TaskSequence(number, w.tasks, math.exp(w.log_probability) * _PRIOR_WEIGHT, "lwm") for w in walks
            ]
        if request.stitched:
            sequences = with_best_score(sequences, request.stitched, request.subgraphs, "lwm")
        if request.consensus:
            sequences = with_best_score(sequences, request.consensus, request.subgraphs, "lwm")
        if request.procedure:
            sequences = with_best_score(sequences, request.procedure.tasks, request.subgraphs, "procedure")
        return sorted(sequences, key=lambda s: (-s.score, s.subgraph, s.tasks))


def first_occurrences(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks of a case, each once at its first occurrence, because a loop is planned once."""
    return tuple(dict.fromkeys(tasks))


def with_best_score(
    sequences: list[TaskSequence], tasks: tuple[str, ...], subgraphs: Sequence[SubWKG], source: str
) -> list[TaskSequence]:
    """Return the sequences with this one as the best of them; it is not added twice."""
    best = 1 + max((s.score for s in sequences), default=0.0)
    if equal := [s for s in sequences if s.tasks == tasks]:
        return [replace(s, score=best) if s is equal[0] else s for s in sequences]
    return [*sequences, TaskSequence(_closest_subgraph(tasks, subgraphs), tasks, best, source)]


def _similar_sequences(cases: Sequence[SimilarCase]) -> list[tuple[tuple[str, ...], float]]:
    """Return the distinct sequences of similar cases, best first, with their scores.

    The score is the sum of the weights times the smoothed share of the weight that succeeded.
    """
    votes: dict[tuple[str, ...], float] = defaultdict(float)
    right: dict[tuple[str, ...], float] = defaultdict(float)
    for case in cases:
        if case.tasks:
            tasks = first_occurrences(case.tasks)
            votes[tasks] += case.weight
            right[tasks] += case.weight * (0.5 if case.success is None else float(case.success))
    scored = {t: v * (right[t] + _PRIOR_WEIGHT / 2) / (v + _PRIOR_WEIGHT) for t, v in votes.items()}
    return sorted(scored.items(), key=lambda s: (-s[1], s[0]))


def _closest_subgraph(tasks: tuple[str, ...], subgraphs: Sequence[SubWKG]) -> int:
    """Return the index of the subgraph that shares most tasks with the sequence, the first among equals."""
    shared = [len(set(tasks) & set(s.tasks)) for s in subgraphs]
    return shared.index(max(shared))
