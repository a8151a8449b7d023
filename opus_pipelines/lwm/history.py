"""The history backend: the sequences of the nearest cases, and a Markov beam inside each SWKG. Nothing to train.

A nearby case votes for its sequence by its weight; sequences that succeeded outweigh those that failed. The beam adds
sequences that may be in no case at all.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.lwm.composed import composed
from opus_pipelines.lwm.interface import LwmRequest, NearCase, TaskSequence
from opus_pipelines.lwm.markov import beam
from opus_pipelines.subgraph.steiner import SubWKG
from opus_pipelines.versions import history_backend_version

PER_SUBGRAPH = 8
BEAMS_PER_SUBGRAPH = 4
_PRIOR_WEIGHT = 0.2


class HistoryBackend:
    """`LargeWorkModel` from history alone."""

    name = "history"

    @property
    def version(self) -> str:
        """Name and algorithm version: the backend has no weights of its own."""
        return history_backend_version()

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """For every subgraph its best near sequences and its likeliest walks that no near case took; best of all what the procedure asks
        for, and where several kinds of work are asked for, these made one."""
        near = _near_sequences(request.cases)
        found: list[TaskSequence] = []
        for number, subgraph in enumerate(request.subgraphs):
            mine = [s for s in near if _home(s[0], request.subgraphs) == number][:PER_SUBGRAPH]
            found += [TaskSequence(number, tasks, score, "history") for tasks, score in mine]
            known = {tasks for tasks, _ in near}
            walks = [w for w in beam(request.graph, subgraph, request.cases) if w.tasks not in known][:BEAMS_PER_SUBGRAPH]
            found += [TaskSequence(number, w.tasks, math.exp(w.log_probability) * _PRIOR_WEIGHT, "lwm") for w in walks]
        ways = [[tasks for tasks, _ in _near_sequences(work.cases)] for work in request.works]
        if (one := composed(request.works, ways)) and one not in {s.tasks for s in found}:
            found.append(TaskSequence(_home(one, request.subgraphs), one, 1 + max((s.score for s in found), default=0.0), "lwm"))
        if request.agreed:
            found = _with_best(found, request.agreed, request.subgraphs, "lwm")
        if request.reading:
            found = _with_best(found, request.reading.tasks, request.subgraphs, "procedure")
        return sorted(found, key=lambda s: (-s.score, s.subgraph, s.tasks))


def first_occurrences(tasks: Sequence[str]) -> tuple[str, ...]:
    """A case's tasks, each once where it first came: a loop is planned once."""
    return tuple(dict.fromkeys(tasks))


def _with_best(found: list[TaskSequence], tasks: tuple[str, ...], subgraphs: Sequence[SubWKG], source: str) -> list[TaskSequence]:
    """The sequences with this one as the best of them; a near case's, where one is the same."""
    best = 1 + max((s.score for s in found), default=0.0)
    if same := [s for s in found if s.tasks == tasks]:
        return [replace(s, score=best) if s is same[0] else s for s in found]
    return [*found, TaskSequence(_home(tasks, subgraphs), tasks, best, source)]


def _near_sequences(cases: Sequence[NearCase]) -> list[tuple[tuple[str, ...], float]]:
    """Distinct sequences of the near cases, best first: votes times the smoothed share of them that succeeded."""
    votes: dict[tuple[str, ...], float] = defaultdict(float)
    right: dict[tuple[str, ...], float] = defaultdict(float)
    for case in cases:
        if case.tasks:
            tasks = first_occurrences(case.tasks)
            votes[tasks] += case.weight
            right[tasks] += case.weight * (0.5 if case.success is None else float(case.success))
    scored = {t: v * (right[t] + _PRIOR_WEIGHT / 2) / (v + _PRIOR_WEIGHT) for t, v in votes.items()}
    return sorted(scored.items(), key=lambda s: (-s[1], s[0]))


def _home(tasks: tuple[str, ...], subgraphs: Sequence[SubWKG]) -> int:
    """The subgraph that shares most tasks with the sequence, the first among equals."""
    shared = [len(set(tasks) & set(s.tasks)) for s in subgraphs]
    return shared.index(max(shared))
