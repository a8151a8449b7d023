"""How different two workflows are, and the most worthwhile of many that differ enough. The rule is this project's own.

A *step* is a task or a review as it is carried out: which one, by which kind of actor, model and group. Two workflows
lie as many *swaps* apart as it takes at least to turn the steps of the one into those of the other, where one swap puts
a step in the place of another, takes one out or puts one in: the larger of the two numbers of steps that only one of
them has. The same task done by someone else is one swap. Order alone is none: who waits for whom changes what runs
when, not what is done. It is a metric on sets of steps.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Protocol, TypeVar

from opus_pipelines.workflow.model import TaskNode, Workflow

Step = tuple[str, str | None, str | None, str | None]  # node, actor kind, model, group
Steps = frozenset[Step]


class Differing(Protocol):
    """A candidate that can be told from another."""

    @property
    def tasks(self) -> Sequence[str]: ...
    @property
    def steps(self) -> Steps: ...


D = TypeVar("D", bound=Differing)


def step_of(node: TaskNode) -> Step:
    """The step that a node stands for."""
    return node.id, node.actor_kind, node.model, node.actor_group


def steps_of(workflow: Workflow) -> Steps:
    """All its steps, reviews among them."""
    return frozenset(map(step_of, workflow.tasks))


def swaps(first: Collection[Hashable], second: Collection[Hashable]) -> int:
    """How many swaps two sets of steps, or of tasks, lie apart; 0 for equal ones."""
    common = len(set(first) & set(second))
    return max(len(first), len(second)) - common


def jaccard_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """1 - |common| / |all| of two sets of tasks; 0 for two empty ones."""
    a, b = set(first), set(second)
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def select_diverse(ranked: Sequence[D], least_swaps: int, least_share: float = 0.0) -> list[D]:
    """Those of the ranked, best first, that differ enough from every better one that is kept: the first always, then
    one after the other.

    Enough: at least `least_swaps` swaps, and at least `least_share` Jaccard distance of their tasks.
    """
    kept: list[D] = []
    for candidate in ranked:
        if all(is_diverse(candidate, better, least_swaps, least_share) for better in kept):
            kept.append(candidate)
    return kept


def is_diverse(first: Differing, second: Differing, least_swaps: int, least_share: float = 0.0) -> bool:
    """Whether two differ enough."""
    return (
        swaps(first.steps, second.steps) >= least_swaps and jaccard_distance(first.tasks, second.tasks) >= least_share
    )
