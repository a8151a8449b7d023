"""Paths that a path must differ from (`problem.Differs`): how far its beginning does, and whether it still can."""

from collections.abc import Iterable
from typing import NamedTuple

from opus_pipelines.optimization.problem import Differs, Problem
from opus_pipelines.optimization.search_net import SearchNet, bits

Common = tuple[
    tuple[int, int] | None, ...
]  # with each path to differ from: nodes that it lacks, nodes that it has; None: differs enough


class DiversityConstraint(NamedTuple):
    """`others`: of each path to differ from its nodes in the graph, how many it has in all, and by how many swaps;
    `ends`: no tasks.
    """

    others: tuple[tuple[int, int, int], ...] = ()
    ends: int = 0
    goal: int = 0

    @classmethod
    def of(cls, problem: Problem, net: SearchNet) -> "DiversityConstraint":
        """What the problem asks of paths through its net."""
        asked = [d for d in problem.demands if isinstance(d, Differs)]
        others = ((sum(1 << net.number[n] for n in d.nodes if n in net.number), len(d.nodes), d.least) for d in asked)
        return cls(tuple(others), 1 << net.start | 1 << net.goal, net.goal)

    def so_far(self, nodes: tuple[int, ...]) -> Common:
        """How far the beginning of a path differs: enough by nodes that the other lacks, by what it leaves out only at
        the output.
        """
        mask, is_whole = self._tasks(nodes), nodes[-1] == self.goal
        found: list[tuple[int, int] | None] = []
        for own, size, least in self.others:
            extra, common = (mask & ~own).bit_count(), (mask & own).bit_count()
            found.append(None if extra >= least or (is_whole and size - common >= least) else (extra, common))
        return tuple(found)

    def is_reached(self, nodes: tuple[int, ...]) -> bool:
        """Whether a whole path differs enough."""
        return all(known is None for known in self.so_far(nodes))

    def is_open(self, nodes: tuple[int, ...], left: int) -> bool:
        """Whether a path that begins so, and may still have the nodes of the mask `left`, may differ enough."""
        if not self.others:
            return True
        mask, ahead = self._tasks(nodes), self._tasks(bits(left))
        return all(
            ((mask | ahead) & ~own).bit_count() >= least or size - (mask & own).bit_count() >= least
            for own, size, least in self.others
        )

    def _tasks(self, nodes: Iterable[int]) -> int:
        return sum(1 << n for n in nodes) & ~self.ends if self.others else 0
