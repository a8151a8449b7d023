"""Random walks on the Work Knowledge Graph: how likely a walk visits a task, and which of two tasks it visits first.

A walk begins and ends as cases do and goes from u to v with a probability in proportion to γ_uv times the transitions:
an edge that history has followed once counts less than its share. The probabilities are exact, from the fundamental
matrix of the absorbing Markov chain (Kemeny and Snell 1960), so a task may be visited again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from opus_pipelines.wkg.graph import WorkGraph

STAYS = 1 - 1e-9  # of every step: the chain ends even where no edge leads to the end


@dataclass(frozen=True)
class Walks:
    """The walks over some tasks.

    `steps` [n, n] has the probabilities from task to task, whose rows sum to at most 1 (the rest: the walk ends), and
    `starts` [n] those of the first task, which sum to 1.
    """

    tasks: tuple[str, ...]
    steps: np.ndarray
    starts: np.ndarray

    @classmethod
    def on(
        cls, graph: WorkGraph, tasks: Sequence[str], begun: Mapping[str, float], ended: Mapping[str, float]
    ) -> "Walks | None":
        """Return the walks over `tasks`; `begun` and `ended` count the cases that began and ended with a task.

        None where no case began with one of the tasks or no edge joins two of them: nothing tells what a walk does.
        """
        names = tuple(sorted(set(tasks) & graph.tasks.keys()))
        place = {task: n for n, task in enumerate(names)}
        weights = np.zeros((len(names), len(names)))
        for task in names:
            for other in graph.successors.get(task, ()):
                if other in place:
                    edge = graph.edges[task, other]
                    weights[place[task], place[other]] = edge.gamma * edge.transitions
        starts = np.array([begun.get(task, 0.0) for task in names])
        if not starts.sum() > 0 or not weights.any():
            return None
        ends = np.array([ended.get(task, 0.0) for task in names])
        whole = weights.sum(1) + ends
        steps = STAYS * weights / np.where(whole > 0, whole, 1.0)[:, None]
        return cls(names, steps, starts / starts.sum())

    @cached_property
    def reaches(self) -> np.ndarray:
        """Return the probability [n, n] that a walk from a task visits another one, now or later; 1 for itself."""
        return _visits(self.steps)

    def precedence(self) -> np.ndarray:
        """Return how much likelier a walk goes from a to b than from b to a [n, n], in [-1, 1]; it is antisymmetric."""
        return np.asarray(self.reaches - self.reaches.T)

    def visits(self, goals: Sequence[str]) -> np.ndarray | None:
        """Return the probability [n] that a walk visits a task, given that it visits all goals, in any order.

        None where no walk visits all of them, or a goal is not among the tasks.
        """
        if not set(goals) <= set(self.tasks):
            return None
        place = {task: n for n, task in enumerate(self.tasks)}
        orders = [[place[task] for task in order] for order in permutations(dict.fromkeys(goals))]
        found = [self._visits_through(order) for order in orders]
        chances = np.array([chance for chance, _ in found])
        if not chances.sum() > 0:
            return None
        visited = (chances / chances.sum()) @ np.stack([visited for _, visited in found])
        visited[orders[0]] = 1.0
        return np.asarray(np.clip(visited, 0.0, 1.0))

    def _visits_through(self, goals: Sequence[int]) -> tuple[float, np.ndarray]:
        """Return the probability that a walk visits the goals in this order, and [n] that it then visits each task."""
        chance, missed, begins = 1.0, np.ones(len(self.tasks)), self.starts
        for goal in goals:
            before = self.steps.copy()
            before[goal] = 0.0  # a walk up to the goal: it stops there
            to_goal = self.reaches[:, goal]
            reached = float(begins @ to_goal)
            if reached <= 0:
                return 0.0, missed
            visited = begins @ _visits(before)
            missed = missed * (1 - np.clip(visited * to_goal / reached, 0.0, 1.0))
            chance, begins = chance * reached, np.eye(len(self.tasks))[goal]
        return chance, 1 - missed * (1 - np.clip(begins @ self.reaches, 0.0, 1.0))


def _visits(steps: np.ndarray) -> np.ndarray:
    """Return the probability [n, n] that a walk from one task visits another one: N_uv / N_vv, N = (I - steps)^-1."""
    expected = np.linalg.inv(np.eye(len(steps)) - steps)
    return np.asarray(np.clip(expected / np.diag(expected)[None, :], 0.0, 1.0))
