"""The tasks that a request leads to by the trained Intention encoder, without a look at cases; their usual order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.intention import Intention
from opus_pipelines.lwm.interface import TrainedIntention
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.graph import WorkGraph

LIKELY = 0.5  # probability from which a task is part of the expected work: the set with the fewest expected errors
UNLIKELY = 0.2  # probability below which few similar cases do not make a task critical
_SURE = 0.9  # probability from which one stretch of the client input alone asks for a task
FOLLOWED = 0.95  # weight of each further step of a walk, so that near successors count more than far ones


@dataclass(frozen=True)
class Told:
    """What the documents of an intake tell besides its Intention.

    Attributes:
        demanded: the tasks that they name.
        stretches: unit vectors [n, d] of stretches of the client input that are read one by one, because no process
            context says how they belong together.
    """

    demanded: frozenset[str] = frozenset()
    stretches: np.ndarray | None = None


@dataclass(frozen=True)
class ExpectedWork:
    """The work that a request leads to: P(the work has the step) by step, and the likely steps in order."""

    probabilities: Mapping[str, float]
    steps: tuple[str, ...]

    @classmethod
    def of(cls, probabilities: Mapping[str, float], graph: WorkGraph) -> "ExpectedWork":
        """Return the expected work with its steps in the order in which walks along the WKG do them."""
        return cls(probabilities, likely_tasks(probabilities, graph))

    def critical(self, groups: Sequence[frozenset[str]]) -> list[frozenset[str]]:
        """Return what a workflow must do where few similar cases say so: their groups of critical tasks and the steps.

        A group of unlikely tasks is left out: what one case did by chance is no rule. The steps are required because a
        Reward alone would leave out whatever costs something.
        """
        kept = [g for g in groups if max(self.probabilities.get(task, 1.0) for task in g) >= UNLIKELY]
        known = frozenset[str]().union(*kept)
        return sorted([*kept, *(frozenset({task}) for task in self.steps if task not in known)], key=sorted)

    def joined(self, groups: Sequence[frozenset[str]], graph: WorkGraph) -> tuple[str, ...]:
        """Return the likely steps with the likeliest task of each group that they do not meet, in the usual order."""
        lacking = [group for group in groups if group.isdisjoint(self.steps)]
        added = [max(sorted(group), key=lambda task: self.probabilities.get(task, 0.0)) for group in lacking]
        return in_usual_order([*self.steps, *added], graph) if added else self.steps


def expected_tasks(
    encoder: TrainedIntention, intention: Intention, index: SnapshotIndex, of: Intake, told: Told = Told()
) -> dict[str, float]:
    """Return P(the work of the request has the step) for each work step of the industry.

    An intake that asks for several things is read as a whole and request by request; a step that one of them is likely
    to need is needed. Stretches that are read one by one add the steps that they ask for surely, since a short text is
    read less safely than a long one. A step that the documents name is certain. `of` is the intake, whose industry is
    known to the encoder; where history knows its client, the client's own shares of the tasks count.
    """
    rates = index.task_rates(str(of.industry), of.client)
    if not rates:
        return {}
    tasks, shares = np.stack([index.task_vectors[task] for task in rates]), np.array(list(rates.values()))
    inputs = [intention.parts["input"]]
    if len(intention.requests) > 1:
        inputs += [intention.texts[request.text][None] for request in intention.requests]
    vectors = np.stack([encoder.composed({**intention.parts, "input": rows}) for rows in inputs])
    likely = encoder.probabilities(vectors, tasks, shares).max(0)
    if told.stretches is not None and len(told.stretches):
        alone = encoder.probabilities(told.stretches, tasks, shares).max(0)
        likely = np.where(alone >= _SURE, np.maximum(likely, alone), likely)
    return dict(zip(rates, likely.tolist(), strict=True)) | {task: 1.0 for task in told.demanded if task in rates}


def stretches_of(intention: Intention) -> list[str]:
    """Return the sentences of the client input of a goal, and each two neighbours in one document."""
    stated = [text for text in intention.decoded.inputs if text.element_id is not None]
    pairs = [f"{a.text} {b.text}" for a, b in pairwise(stated) if a.element_id == b.element_id]
    return list(dict.fromkeys([*(text.text for text in stated), *pairs]))


def likely_tasks(expected: Mapping[str, float], graph: WorkGraph) -> tuple[str, ...]:
    """Return the tasks that are likelier than not, in the order in which walks along the WKG do them."""
    return in_usual_order((task for task, p in expected.items() if p >= LIKELY), graph)


def in_usual_order(steps: Iterable[str], graph: WorkGraph) -> tuple[str, ...]:
    """Return each of the tasks once, in the order in which walks along the WKG do them.

    A task comes first from which walks reach the others more often than the others reach it.
    """
    tasks = sorted(set(steps))
    if len(tasks) < 2:
        return tuple(tasks)
    lead = _reached(tasks, graph)
    lead = lead - lead.T
    left, order = list(range(len(tasks))), list[int]()
    while left:
        first = max(left, key=lambda n: (float(lead[n, left].sum()), -n))
        order.append(first)
        left.remove(first)
    return tuple(tasks[n] for n in order)


def _reached(tasks: Sequence[str], graph: WorkGraph) -> np.ndarray:
    """Return the expected discounted visits [tasks, tasks] of a walk from the first task to the second."""
    place = {task: n for n, task in enumerate(tasks)}
    step = np.zeros((len(tasks), len(tasks)))
    for task in tasks:
        for after in graph.successors.get(task, ()):
            if after in place:
                step[place[task], place[after]] = graph.edges[task, after].probability
    return np.asarray(np.linalg.inv(np.eye(len(tasks)) - FOLLOWED * step))
