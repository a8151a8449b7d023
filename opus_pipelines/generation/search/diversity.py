"""Measures how different two workflows are, and selects diverse ones. The rule is this project's own.

A *step* is a task or a review with the way it is carried out: node, actor kind, model and group. The distance of two
workflows is the least number of *swaps* that turns the steps of one into the steps of the other. One swap replaces a
step, removes one or adds one, so the distance is the larger of the two numbers of steps that only one workflow has. The
same task done by another actor is one swap. The order of steps does not count, because it changes when a step runs and
not what is done. The distance is a metric on sets of steps.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Protocol, TypeVar

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
