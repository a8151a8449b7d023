"""Holds every option of every node of one shape as arrays, so that many choices are scored in one pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.cost import consumed_usd
from opus_pipelines.workflow.evaluation.reward import Batch, Figures, evaluate_batch, product_is_exact
from opus_pipelines.workflow.model import TaskNode, Workflow

Picks = NDArray[np.int64]
Allowed = Callable[[Batch], NDArray[np.bool_]]
_COLUMNS = ("p", "q", "cost_usd", "duration_ms", "imputed_usd")
# most workflows of one pass with exact inference, which takes some ten microseconds each; the product form takes one
EXACT_ROWS = 2_048


@dataclass(frozen=True)
class PlanTable:
    """A workflow, and the options of the nodes that have any, in the order of its tasks.

    A row of picks has one option number for each of these nodes.
    """

    workflow: Workflow
    options: Mapping[str, Sequence[TaskNode]]
    cost: Cost
    reward: Reward

    @classmethod
    def of(
        cls, workflow: Workflow, options: Mapping[str, Sequence[TaskNode]], cost: Cost, reward: Reward | None = None
    ) -> "PlanTable":
        """Returns the table of the options of those nodes that the workflow has."""
        return cls(workflow, {t.id: options[t.id] for t in workflow.tasks if t.id in options}, cost, reward or Reward())

    @property
    def sizes(self) -> list[int]:
        """The number of options of each node that has any."""
        return [len(nodes) for nodes in self.options.values()]

    @cached_property
    def is_chain(self) -> bool:
        """Whether the workflow has one input and one output, and each node leads to the next alone."""
        nodes = self.workflow.topological()
        ends = len(self.workflow.inputs), len(self.workflow.outputs)
        return ends == (1, 1) and all(self.workflow.predecessors(b) == [a] for a, b in pairwise(nodes))

    @property
    def by_product(self) -> bool:
        """Whether every row is scored in the product form.

        It is the inference of the settings, or equal to it, or exact inference is too wide (`is_too_wide`).
        """
        return self.reward.inference == "product" or self.is_chain or self._product_is_exact or self.is_too_wide

    @cached_property
    def is_too_wide(self) -> bool:
        """Whether the settings ask for exact inference and it is too wide: then the scores are approximations."""
        if self.reward.inference == "product" or self.is_chain or self._product_is_exact:
            return False
        try:
            evaluate_batch(self.workflow, self._uncertain, self.cost, "exact")
        except WorkflowError:
            return True
        return False

    def scored(self, picks: Picks) -> Batch:
        """Evaluates n workflows from picks (n, nodes with options), success inferred as `by_product` states."""
        return self._evaluated(picks, "product" if self.by_product else "exact")

    def by_product_form(self, picks: Picks) -> Batch:
        """Evaluates the same with success in the product form, whatever the settings state."""
        return self._evaluated(picks, "product")

    def _evaluated(self, picks: Picks, inference: Literal["product", "exact"]) -> Batch:
        columns = {name: np.repeat(getattr(self._base, name), len(picks), axis=0) for name in _COLUMNS}
        held = {
            h: np.repeat(self._base.held.get(h, np.zeros_like(self._base.p)), len(picks), axis=0) for h in self._held
        }
        for (i, figures), chosen in zip(self._columns, picks.T, strict=True):
            for name, values in figures.items():
                (held if name in held else columns)[name][:, i] = values[chosen]
        return evaluate_batch(self.workflow, replace(self._base, **columns, held=held), self.cost, inference)

    def workflow_of(self, picks: Picks) -> Workflow:
        """Returns the workflow that one row of picks represents."""
        nodes = {name: nodes[pick] for (name, nodes), pick in zip(self.options.items(), picks.tolist(), strict=True)}
        tasks = [nodes.get(t.id, t) for t in self.workflow.tasks]
        return Workflow((*self.workflow.inputs, *tasks, *self.workflow.outputs), self.workflow.edges)

    @cached_property
    def _product_is_exact(self) -> bool:
        return product_is_exact(self.workflow, self._uncertain)

    @property
    def _uncertain(self) -> Figures:
        """The figures of one row in which every task has a chance of its own, whatever its options."""
        return replace(self._base, p=np.full_like(self._base.p, 0.5), q=np.full_like(self._base.q, 0.25))

    @cached_property
    def _base(self) -> Figures:
        return Figures.of(self.workflow, self.cost)

    @cached_property
    def _held(self) -> list[str]:
        return sorted(
            {h for nodes in self.options.values() for node in nodes for h in node.held} | set(self._base.held)
        )

    @cached_property
    def _columns(self) -> list[tuple[int, dict[str, NDArray[np.float64]]]]:
        """For each node with options its column among the tasks, and the figures of every option."""
        place = {t.id: i for i, t in enumerate(self.workflow.tasks)}
        return [
            (
                place[name],
                {figure: np.array([getattr(node, figure) for node in nodes]) for figure in _COLUMNS}
                | {"cost_usd": np.array([node.cost_usd + consumed_usd(node, self.cost) for node in nodes])}
                | {h: np.array([node.held.get(h, 0.0) for node in nodes]) for h in self._held},
            )
            for name, nodes in self.options.items()
        ]
