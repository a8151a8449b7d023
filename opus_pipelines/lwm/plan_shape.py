"""Computes the shape of a workflow: the strict partial order in which its tasks wait for each other.

The rule is this project's own. Of two tasks the later one waits for the earlier one if one of them takes data that the
other leaves, if a precedence orders them, or if history does not show them independent (`lwm.dependency`). A task also
waits where nothing is known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from opus_pipelines.lwm.dependency import Pair, independent
from opus_pipelines.workflow.model import TaskOrder

OrderCounts = Callable[[Pair], tuple[float, float]]


@dataclass(frozen=True)
class OrderFacts:
    """The known facts about the order of tasks.

    `counts`: how often history has a pair forward and backward. `inputs` and `outputs`: the data that each task
    takes and leaves. `precedence`: the pairs of which the first must come first.
    """

    counts: OrderCounts
    inputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outputs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    precedence: frozenset[Pair] = frozenset()

    def flows(self, src: str, dst: str) -> frozenset[str]:
        """Returns the data that the first task leaves and the second takes."""
        return self.outputs.get(src, frozenset()) & self.inputs.get(dst, frozenset())

    def waits(self, first: str, second: str) -> bool:
        """Returns whether the second task, done later, waits for the first."""
        if (first, second) in self.precedence or (second, first) in self.precedence:
            return True
        return bool(self.flows(first, second) or self.flows(second, first)) or not independent(
            *self.counts((first, second))
        )

    def required(self, tasks: Sequence[str]) -> list[Pair]:
        """Returns every pair of the sequence of which the later task waits."""
        return [(a, b) for a, b in combinations(tasks, 2) if self.waits(a, b)]


def plan_shape(tasks: Sequence[str], facts: OrderFacts) -> TaskOrder:
    """Returns the least order of the tasks: it has no unnecessary wait."""
    return TaskOrder.of(tasks, facts.required(tasks))
