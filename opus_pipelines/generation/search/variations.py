"""Lists the variations of a plan: other execution modes and fewer reviews, a few swaps away, with their worth.

No review is added: one that does not pay is not an alternative, and one that pays is already part of the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.generation.search.diversity import StepKey, Steps, step_of
from opus_pipelines.generation.search.local_search import LocalSearch, RefinedPlan
from opus_pipelines.generation.search.plan_states import PlanMove, kind_of, row
from opus_pipelines.generation.search.plan_table import EXACT_ROWS, Picks, PlanTable
from opus_pipelines.generation.search.search_limits import within_limits
from opus_pipelines.workflow.model import REVIEW, TaskNode

# most variations that are changed once more; with no more single changes than this, every pair of them is evaluated
BEAM = 64


@dataclass(frozen=True)
class Variations:
    """The variations of a plan that keep the limits.

    `picks` is (n, nodes with options); `worth` is (n,), as in `Evaluation`.
    """

    refiner: LocalSearch
    plan: RefinedPlan
    picks: Picks
    worth: NDArray[np.float64]

    @classmethod
    def of(cls, refiner: LocalSearch, plan: RefinedPlan, most: int) -> "Variations":
        """Returns the variations with up to `most` changes of mode or review, each of another node.

        Only the variations that earn most are changed once more.
        """
        table = refiner.table(plan.state.order)
        base = row(table, plan.state.picks)
        changes = [
            (i, to)
            for i, options in enumerate(table.options.values())
            for to in range(len(options))
            if to != base[i] and (base[i] or options[0].kind != REVIEW)
        ]
        layers = [base[None, :]]
        for _ in range(most):
            layers.append(_once_more(_likely(table, layers[-1], BEAM), base, changes))
        every = np.concatenate(layers[1:])
        if not table.by_product:
            every = _likely(table, every, EXACT_ROWS)
        batch = table.scored(every)
        kept = within_limits(refiner.space.limits, batch)
        return cls(refiner, plan, every[kept], batch.worth[kept])

    def swaps_from(self, other: Steps) -> NDArray[np.int64]:
        """Returns (n,) the number of swaps from each variation to these steps, as `diversity.swaps`."""
        flat, start = self._options
        places = self.picks + start
        common = np.array([step in other for step in flat])[places].sum(axis=1)
        distances: NDArray[np.int64] = (
            np.maximum(np.array([step is not None for step in flat])[places].sum(axis=1), len(other)) - common
        )
        return distances

    def steps(self, number: int) -> Steps:
        """Returns the steps of one variation."""
        flat, start = self._options
        return frozenset(step for place in self.picks[number] + start if (step := flat[place]) is not None)

    def moves(self, number: int) -> list[PlanMove]:
        """Returns the changes that lead to one variation."""
        table = self.refiner.table(self.plan.state.order)
        base = row(table, self.plan.state.picks)
        chosen = self.picks[number]
        return [
            PlanMove(kind_of(n, self.refiner.space), (n,), int(chosen[i]))
            for i, n in enumerate(table.options)
            if chosen[i] != base[i]
        ]

    @cached_property
    def _options(self) -> tuple[list[StepKey | None], Picks]:
        """The step of every option of every node in one list, and the first index of each node.

        The step is None for a review that is absent.
        """
        options: Sequence[Sequence[TaskNode]] = list(self.refiner.table(self.plan.state.order).options.values())
        flat = [
            None if number == 0 and node.kind == REVIEW else step_of(node)
            for nodes in options
            for number, node in enumerate(nodes)
        ]
        return flat, np.cumsum([0, *map(len, options)])[:-1]


def _once_more(rows: Picks, base: Picks, changes: Sequence[tuple[int, int]]) -> Picks:
    """Returns every change of one further node of every row, each once."""
    nodes, options = np.array(changes or np.zeros((0, 2)), np.int64).T
    of_row, change = (grid.ravel() for grid in np.indices((len(rows), len(nodes))))
    is_further = rows[of_row, nodes[change]] == base[nodes[change]]
    of_row, change = of_row[is_further], change[is_further]
    changed = rows[of_row]
    changed[np.arange(len(changed)), nodes[change]] = options[change]
    return np.unique(changed, axis=0)


def _likely(table: PlanTable, rows: Picks, most: int) -> Picks:
    """Returns the rows that earn most in the product form."""
    if len(rows) <= most:
        return rows
    best: Picks = rows[np.argsort(-table.by_product_form(rows).worth, kind="stable")[:most]]
    return best
