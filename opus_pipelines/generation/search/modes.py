"""Chooses the execution mode of each task and the places of reviews that earn the most, EVAL (7).

A place where a review may stand is a node like any other: its first option changes nothing and costs nothing
(`reviews`). A chain of any length is solved exactly by the upper envelope of straight lines, because the worth of what
follows a step is a convex function of the success that reaches it. Small problems are solved by evaluating every
combination in one pass, all others by greedy changes of one node or two at a time. Where branches meet again, only the
`EXACT_ROWS` workflows with the best product form are inferred exactly in each pass.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.net import best_on_chain
from opus_pipelines.workflow.evaluation.cost import consumed_usd, time_usd, weighed_usd, weights_held
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


COMBINATIONS = 1 << 15  # up to so many, every combination is evaluated: so many have 15 places for a review


def best_mode_choice(
    table: PlanTable, allowed: Allowed | None = None, combinations: int = COMBINATIONS
) -> tuple[Picks, bool] | None:
    """Returns the best option number for each node of the table, and whether the choice is optimal.

    The search begins at the first options; ties go to earlier options. `allowed` returns for a batch which rows keep
    their constraints, EVAL (12). Up to so many `combinations`, every one is evaluated. Returns None where no evaluated
    combination keeps the constraints.
    """
    if table.is_chain and not any(weights_held(table.cost).values()):
        picks = _on_chain(table)
        if allowed is None or allowed(table.scored(picks[None, :]))[0]:
            return picks, True
    size = math.prod(table.sizes)
    if size <= combinations:
        best = _best_of(table, _all(table.sizes), allowed)
        return None if best is None else (best, not table.is_too_wide and (table.by_product or size <= EXACT_ROWS))
    best = _greedy(table, allowed)
    return None if best is None else (best, False)


def _best_of(table: PlanTable, picks: Picks, allowed: Allowed | None) -> Picks | None:
    """Returns the allowed row that earns the most; the first of several. Rewards within rounding count as equal."""
    if not table.by_product and len(picks) > EXACT_ROWS:
        likely = np.argsort(-table.by_product_form(picks).worth, kind="stable")[:EXACT_ROWS]
        picks = picks[np.sort(likely)]
    batch = table.scored(picks)
    rewards = batch.worth if allowed is None else np.where(allowed(batch), batch.worth, -np.inf)
    top = rewards.max()
    if top == -np.inf:
        return None
    best: Picks = picks[int(np.argmax(rewards >= top - 1e-12 * max(1.0, abs(top))))]
    return best


def _all(sizes: Sequence[int]) -> Picks:
    """Returns every combination, first options first."""
    if not sizes:
        return np.zeros((1, 0), np.int64)
    return np.stack([grid.ravel() for grid in np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")], axis=1)


def _greedy(table: PlanTable, allowed: Allowed | None) -> Picks | None:
    """Applies the best change of one node, or of two where no single one helps, until none helps."""
    sizes = table.sizes
    current = _best_of(table, np.zeros((1, len(sizes)), np.int64), allowed)
    if (
        current is None
    ):  # the start breaks a constraint: look for one that does not among single changes from every uniform choice
        uniform = [np.minimum(level, np.array(sizes) - 1) for level in range(max(sizes))]
        current = _best_of(table, np.stack([*uniform, *(c for u in uniform for c in _changes(u, sizes, 1))]), allowed)
        if current is None:
            return None
    while True:
        for width in (1, 2):
            best = _best_of(table, np.stack([current, *_changes(current, sizes, width)]), allowed)
            if best is not None and not (best == current).all():
                current = best
                break
        else:
            return current


def _changes(picks: Picks, sizes: Sequence[int], width: int) -> list[Picks]:
    """Returns every choice that differs from `picks` in `width` nodes."""
    changes = []
    for places in combinations(range(len(sizes)), width):
        for levels in _all([sizes[i] for i in places]):
            if all(level != picks[i] for i, level in zip(places, levels, strict=True)):
                other = picks.copy()
                other[list(places)] = levels
                changes.append(other)
    return changes


def _on_chain(table: PlanTable) -> Picks:
    """Solves a chain exactly. EVAL (5) is a sum over the nodes of a chain, because its duration is a sum.

    Without a stated gain success alone counts: a gain of 1 and no costs.
    """
    workflow, cost = table.workflow, table.cost
    gain = workflow.outputs[0].gain_usd
    steps = [n for node in workflow.topological() if isinstance(n := workflow.by_id[node], TaskNode)]
    choices = [table.options.get(step.id, [step]) for step in steps]
    spent = (lambda o: 0.0) if gain is None else (lambda o: weighed_usd(o, cost) + time_usd(o.duration_ms, cost))
    lines = [[(o.p, o.q, spent(o)) for o in modes] for modes in choices]
    picked = best_on_chain(lines, workflow.inputs[0].prior, 1.0 if gain is None else gain)
    by_id = {step.id: pick for step, pick in zip(steps, picked, strict=True)}
    return np.array([by_id[name] for name in table.options], np.int64)
