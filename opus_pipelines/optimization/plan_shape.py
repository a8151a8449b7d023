"""The shape of a workflow: which of its tasks wait for which, as a strict partial order that its sequence of tasks
keeps.

The rule is this project's own. Of two tasks the later one waits for the earlier one if it takes data that the earlier
one leaves (or the other way round), if their order is settled, or if history does not show them independent
(`lwm.dependency`). What is not known waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from opus_pipelines.lwm.dependency import Pair, independent
from opus_pipelines.workflow.task_order import TaskOrder

Told = Callable[[Pair], tuple[float, float]]


@dataclass(frozen=True)
class OrderFacts:
    """What is known of tasks: how often a pair was done forward and backward, what each takes and leaves, which orders
    are settled.
    """

    told: Told
    takes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    leaves: Mapping[str, frozenset[str]] = field(default_factory=dict)
    settled: frozenset[Pair] = frozenset()

    def flows(self, src: str, dst: str) -> frozenset[str]:
        """The data that the first leaves and the second takes."""
        return self.leaves.get(src, frozenset()) & self.takes.get(dst, frozenset())

    def waits(self, first: str, second: str) -> bool:
        """Whether the second, done later, waits for the first."""
        if (first, second) in self.settled or (second, first) in self.settled:
            return True
        return bool(self.flows(first, second) or self.flows(second, first)) or not independent(
            *self.told((first, second))
        )

    def required(self, tasks: Sequence[str]) -> list[Pair]:
        """Every pair of the sequence of which the later one waits."""
        return [(a, b) for a, b in combinations(tasks, 2) if self.waits(a, b)]


def plan_shape(tasks: Sequence[str], facts: OrderFacts) -> TaskOrder:
    """The least order of the tasks: nothing waits that need not."""
    return TaskOrder.of(tasks, facts.required(tasks))
