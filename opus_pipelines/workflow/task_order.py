"""Represents which tasks of a workflow wait for which, as a strict partial order, and names its review nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from opus_pipelines.workflow.model import REVIEW

INPUT, OUTPUT = "input", "output"
Pair = tuple[str, str]


@dataclass(frozen=True)
class TaskOrder:
    """A strict partial order of tasks that their sequence keeps.

    Bit j of `after[i]` is set where task j waits for task i, directly or not; then j stands behind i in `tasks`.
    """

    tasks: tuple[str, ...]
    after: tuple[int, ...]

    @classmethod
    def chain(cls, tasks: Sequence[str]) -> "TaskOrder":
        """Returns the order in which each task waits for all before it."""
        n = len(tasks)
        return cls(tuple(tasks), tuple((1 << n) - (2 << i) for i in range(n)))

    @classmethod
    def of(cls, tasks: Sequence[str], pairs: Iterable[Pair]) -> "TaskOrder":
        """Returns the transitive closure of pairs, each of which the sequence keeps."""
        place = {t: i for i, t in enumerate(tasks)}
        after = [0] * len(tasks)
        for a, b in pairs:
            after[place[a]] |= 1 << place[b]
        return cls(tuple(tasks), _closed(after))

    @property
    def is_chain(self) -> bool:
        """Whether every task waits for the one before it."""
        return all(mask >> (i + 1) & 1 for i, mask in enumerate(self.after[:-1]))

    def pairs(self) -> list[Pair]:
        """Returns every pair of which the second task waits for the first."""
        return [(self.tasks[i], self.tasks[j]) for i, mask in enumerate(self.after) for j in bits(mask)]

    def covers(self) -> list[Pair]:
        """Returns the transitive reduction: the direct waits."""
        return [(self.tasks[i], self.tasks[j]) for i in range(len(self.tasks)) for j in bits(self._direct(i))]

    def unordered_pairs(self) -> list[Pair]:
        """Returns the pairs, in the order of the sequence, of which neither task waits for the other."""
        n = len(self.tasks)
        return [(self.tasks[i], self.tasks[j]) for i in range(n) for j in range(i + 1, n) if not self.after[i] >> j & 1]

    def without_wait(self, a: str, b: str) -> "TaskOrder":
        """Returns the order without one direct wait; all other waits stay."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        return TaskOrder(self.tasks, tuple(mask & ~(1 << j) if k == i else mask for k, mask in enumerate(self.after)))

    def with_wait(self, a: str, b: str) -> "TaskOrder":
        """Returns the order with one more wait, and with the waits that follow from it."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        more = 1 << j | self.after[j]
        return TaskOrder(
            self.tasks, tuple(mask | more if k == i or mask >> i & 1 else mask for k, mask in enumerate(self.after))
        )

    def edges(self) -> list[Pair]:
        """Returns the direct waits with input and output.

        The input comes before the tasks that wait for nothing, the output behind those that nothing waits for.
        """
        direct = self.covers()
        waiting, waited_for = {b for _, b in direct}, {a for a, _ in direct}
        return [
            *((INPUT, t) for t in self.tasks if t not in waiting),
            *direct,
            *((t, OUTPUT) for t in self.tasks if t not in waited_for),
        ]

    def _direct(self, i: int) -> int:
        mask = self.after[i]
        for j in bits(mask):
            mask &= ~self.after[j]
        return mask


def review_id(task: str) -> str:
    """Returns the node id of the review behind a task's node."""
    return f"{task}_{REVIEW}"


def reviewed_task(node: str) -> str:
    """Returns the task whose review has this node id."""
    return node.removesuffix(f"_{REVIEW}")


def bits(mask: int) -> Iterator[int]:
    """Yields the numbers of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closed(after: list[int]) -> tuple[int, ...]:
    """Returns the transitive closure; tasks stand behind those they wait for, so one backward pass is enough."""
    for i in reversed(range(len(after))):
        for j in bits(after[i]):
            after[i] |= after[j]
    return tuple(after)
