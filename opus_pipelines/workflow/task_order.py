"""Which tasks of a workflow wait for which, as a strict partial order that its sequence of tasks keeps; and the ids of
its review nodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opus_pipelines.workflow.model import REVIEW

INPUT, OUTPUT = "input", "output"
Pair = tuple[str, str]


@dataclass(frozen=True)
class TaskOrder:
    """A strict partial order: bit j of `after[i]` says that task j waits for task i, directly or not; j stands behind
    i in `tasks`.
    """

    tasks: tuple[str, ...]
    after: tuple[int, ...]

    @classmethod
    def chain(cls, tasks: Sequence[str]) -> "TaskOrder":
        """Each task waits for all before it."""
        n = len(tasks)
        return cls(tuple(tasks), tuple((1 << n) - (2 << i) for i in range(n)))

    @classmethod
    def of(cls, tasks: Sequence[str], pairs: Iterable[Pair]) -> "TaskOrder":
        """The transitive closure of pairs, each of which the sequence keeps."""
        place = {t: i for i, t in enumerate(tasks)}
        after = [0] * len(tasks)
        for a, b in pairs:
            after[place[a]] |= 1 << place[b]
        return cls(tuple(tasks), _closed(after))

    @property
    def is_chain(self) -> bool:
        """Does every task wait for the one before it."""
        return all(mask >> (i + 1) & 1 for i, mask in enumerate(self.after[:-1]))

    def pairs(self) -> list[Pair]:
        """Every pair of which the second waits."""
        return [(self.tasks[i], self.tasks[j]) for i, mask in enumerate(self.after) for j in _bits(mask)]

    def covers(self) -> list[Pair]:
        """The transitive reduction: what waits directly."""
        return [(self.tasks[i], self.tasks[j]) for i in range(len(self.tasks)) for j in _bits(self._direct(i))]

    def unordered_pairs(self) -> list[Pair]:
        """Pairs, as the sequence has them, of which neither waits for the other."""
        n = len(self.tasks)
        return [(self.tasks[i], self.tasks[j]) for i in range(n) for j in range(i + 1, n) if not self.after[i] >> j & 1]

    def has_pairs(self, pairs: Iterable[Pair]) -> bool:
        """Whether the second of every pair waits for the first."""
        place = {t: i for i, t in enumerate(self.tasks)}
        return all(self.after[place[a]] >> place[b] & 1 for a, b in pairs)

    def without_wait(self, a: str, b: str) -> "TaskOrder":
        """Without one pair that waits directly: all else stays."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        return TaskOrder(self.tasks, tuple(mask & ~(1 << j) if k == i else mask for k, mask in enumerate(self.after)))

    def with_wait(self, a: str, b: str) -> "TaskOrder":
        """With one pair more, and what follows from it."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        more = 1 << j | self.after[j]
        return TaskOrder(
            self.tasks, tuple(mask | more if k == i or mask >> i & 1 else mask for k, mask in enumerate(self.after))
        )

    def edges(self) -> list[Pair]:
        """The direct waits, with the input before what waits for nothing and the output behind what nothing waits for."""
        direct = self.covers()
        waiting, waited_for = {b for _, b in direct}, {a for a, _ in direct}
        return [
            *((INPUT, t) for t in self.tasks if t not in waiting),
            *direct,
            *((t, OUTPUT) for t in self.tasks if t not in waited_for),
        ]

    def _direct(self, i: int) -> int:
        mask = self.after[i]
        for j in _bits(mask):
            mask &= ~self.after[j]
        return mask


def review_id(task: str) -> str:
    """The node of the review behind a task's node."""
    return f"{task}_{REVIEW}"


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closed(after: list[int]) -> tuple[int, ...]:
    """Tasks stand behind those they wait for, so one pass from the last on closes the relation."""
    for i in reversed(range(len(after))):
        for j in _bits(after[i]):
            after[i] |= after[j]
    return tuple(after)
