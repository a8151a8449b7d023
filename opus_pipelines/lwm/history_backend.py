"""The history backend: the sequences of the nearest cases, and a Markov beam inside each SWKG. Nothing to train.

A nearby case votes for its sequence by its weight; sequences that succeeded outweigh those that failed. The beam adds
sequences that may be in no case at all.

Several kinds of work made one sequence, LWM (9): each brings what its cases needed, in the order in which they did it.

What no case ever did together has no sequence to look up. The merge is this project's own rule.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.core.versions import history_backend_version
from opus_pipelines.lwm.interface import LwmRequest, ProcessDemand, SimilarCase, TaskSequence
from opus_pipelines.lwm.markov import beam
from opus_pipelines.wkg.steiner_tree import SubWKG

Tasks = tuple[str, ...]


def combined_sequence(works: Sequence[ProcessDemand], best: Sequence[Sequence[Tasks]]) -> Tasks | None:
    """The works' tasks in one sequence; None where there are fewer than two, or one has no model.

    `best`: of each work its cases' sequences, best first. A work's model is the first of them that holds all it needs;
    of it the tasks count that are needed or that another work does.
    """
    models = [_model(work, found) for work, found in zip(works, best, strict=True)]
    if len(works) < 2 or not all(models):
        return None
    first, *others = models
    done = first
    for other, work in zip(others, works[1:], strict=True):
        needed = frozenset[str]().union(*work.critical)
        done = merge_sequences(done, tuple(t for t in other if t in needed or t in done))
    return done


def merge_sequences(one: Tasks, other: Tasks) -> Tasks:
    """Both in one: what only the other does comes right behind the last of the tasks that it does before."""
    found = list(one)
    for n, task in enumerate(other):
        if task not in found:
            found.insert(max((found.index(t) + 1 for t in other[:n]), default=0), task)
    return tuple(found)


def _model(work: ProcessDemand, found: Sequence[Tasks]) -> Tasks:
    return next((tasks for tasks in found if all(group & set(tasks) for group in work.critical)), ())


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
        """For every subgraph its best near sequences and its likeliest walks that no near case took; best of all what
        the procedure asks for, and where several kinds of work are asked for, these made one.
        """
        near = _near_sequences(request.cases)
        found: list[TaskSequence] = []
        for number, subgraph in enumerate(request.subgraphs):
            mine = [s for s in near if _home(s[0], request.subgraphs) == number][:PER_SUBGRAPH]
            found += [TaskSequence(number, tasks, score, "history") for tasks, score in mine]
            known = {tasks for tasks, _ in near}
            walks = [w for w in beam(request.graph, subgraph, request.cases) if w.tasks not in known][
                :BEAMS_PER_SUBGRAPH
            ]
            found += [TaskSequence(number, w.tasks, math.exp(w.log_probability) * _PRIOR_WEIGHT, "lwm") for w in walks]
        ways = [[tasks for tasks, _ in _near_sequences(work.cases)] for work in request.demands]
        if (one := combined_sequence(request.demands, ways)) and one not in {s.tasks for s in found}:
            found.append(
                TaskSequence(_home(one, request.subgraphs), one, 1 + max((s.score for s in found), default=0.0), "lwm")
            )
        if request.consensus:
            found = _with_best(found, request.consensus, request.subgraphs, "lwm")
        if request.procedure:
            found = _with_best(found, request.procedure.tasks, request.subgraphs, "procedure")
        return sorted(found, key=lambda s: (-s.score, s.subgraph, s.tasks))


def first_occurrences(tasks: Sequence[str]) -> tuple[str, ...]:
    """A case's tasks, each once where it first came: a loop is planned once."""
    return tuple(dict.fromkeys(tasks))


def _with_best(
    found: list[TaskSequence], tasks: tuple[str, ...], subgraphs: Sequence[SubWKG], source: str
) -> list[TaskSequence]:
    """The sequences with this one as the best of them; a near case's, where one is the same."""
    best = 1 + max((s.score for s in found), default=0.0)
    if same := [s for s in found if s.tasks == tasks]:
        return [replace(s, score=best) if s is same[0] else s for s in found]
    return [*found, TaskSequence(_home(tasks, subgraphs), tasks, best, source)]


def _near_sequences(cases: Sequence[SimilarCase]) -> list[tuple[tuple[str, ...], float]]:
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
