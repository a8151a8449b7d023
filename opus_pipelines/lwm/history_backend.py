"""The history backend of the LWM: the sequences of similar cases.

It needs no training. A similar case votes for its sequence with its weight, and sequences that succeeded outweigh those
that failed. Random walks along the edges of an SWKG are not written: they changed no workflow of the sample. A sequence
that no case did comes from the paths of the Workflow Graph, from the intake's procedure, or from joined processes.

Where an intake demands several processes, the plan that joins them (`lwm.stitching`) is added, LWM (9): no case ever
did them together, so there is no sequence to look up.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.core.versions import history_backend_version
from opus_pipelines.lwm.interface import LargeWorkModel, LwmRequest, SimilarCase, TaskSequence
from opus_pipelines.wkg.subgraphs import SubWKG

PER_SUBGRAPH = 8  # most sequences of similar cases
_PRIOR_WEIGHT = 0.2  # of the prior success rate 1/2


class HistoryBackend(LargeWorkModel):
    """A backend that uses history alone."""

    name = "history"

    @property
    def version(self) -> str:
        """Return name and algorithm version; the backend has no weights of its own."""
        return history_backend_version()

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Return, for every subgraph, the best sequences of similar cases.

        The consensus of the similar cases, and the steps that the intake's procedure asks for, get the highest
        scores, as does the plan that joins several demanded processes.
        """
        near = _similar_sequences(request.cases)
        sequences: list[TaskSequence] = []
        for number in range(len(request.subgraphs)):
            own = [s for s in near if _closest_subgraph(s[0], request.subgraphs) == number][:PER_SUBGRAPH]
            sequences += [TaskSequence(number, tasks, score, "history") for tasks, score in own]
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
