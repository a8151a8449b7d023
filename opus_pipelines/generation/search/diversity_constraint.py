"""Tests a path, complete or partial, against the diversity constraints of a problem (`problem.Differs`)."""

from collections.abc import Iterable
from typing import NamedTuple

from opus_pipelines.generation.search.problem import Differs, Problem
from opus_pipelines.generation.search.search_net import SearchNet
from opus_pipelines.workflow.model import bits

Common = tuple[
    tuple[int, int] | None, ...
]  # with each path to differ from: nodes that it lacks, nodes that it has; None: differs enough


class DiversityConstraint(NamedTuple):
    """The paths that every found path must differ from.

    `others` has one entry for each such path: the mask of its nodes in the graph, its number of nodes, and the least
    number of swaps. `ends` masks the input and the output, which are no tasks.
    """

    others: tuple[tuple[int, int, int], ...] = ()
    ends: int = 0
    goal: int = 0

    @classmethod
    def of(cls, problem: Problem, net: SearchNet) -> "DiversityConstraint":
        """Returns the diversity constraint of a problem for paths through its net."""
        constraints = [d for d in problem.demands if isinstance(d, Differs)]
        others = (
            (sum(1 << net.number[n] for n in d.nodes if n in net.number), len(d.nodes), d.least) for d in constraints
        )
        return cls(tuple(others), 1 << net.start | 1 << net.goal, net.goal)

    def so_far(self, nodes: tuple[int, ...]) -> Common:
        """Returns how far a partial path differs from each other path, None where it differs enough.

        Added nodes count at once. Omitted nodes count only at the output, because a partial path may still visit them.
        """
        mask, is_whole = self._tasks(nodes), nodes[-1] == self.goal
        counts: list[tuple[int, int] | None] = []
        for own, size, least in self.others:
            extra, common = (mask & ~own).bit_count(), (mask & own).bit_count()
            counts.append(None if extra >= least or (is_whole and size - common >= least) else (extra, common))
        return tuple(counts)

    def is_reached(self, nodes: tuple[int, ...]) -> bool:
        """Returns whether a complete path differs enough from all others."""
        return all(known is None for known in self.so_far(nodes))

    def is_open(self, nodes: tuple[int, ...], left: int) -> bool:
        """Returns whether a partial path can still differ enough, if it may add the nodes of the mask `left`."""
        if not self.others:
            return True
        mask, ahead = self._tasks(nodes), self._tasks(bits(left))
        return all(
            ((mask | ahead) & ~own).bit_count() >= least or size - (mask & own).bit_count() >= least
            for own, size, least in self.others
        )

    def _tasks(self, nodes: Iterable[int]) -> int:
        return sum(1 << n for n in nodes) & ~self.ends if self.others else 0
