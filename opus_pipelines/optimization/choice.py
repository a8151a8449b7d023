"""How each task is done, and where reviews go: the choice among the options of every node that earns the most, EVAL (7).

A place where a review may stand is a node like any other: its first option, `NO_REVIEW`, changes nothing and costs nothing. Small
problems are solved by looking at every combination in one pass; a chain of any length exactly, by the upper envelope of
straight lines (what follows a step is worth a convex function of the success that reaches it); the rest by greedy changes
of one node or two at a time.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from opus_pipelines.evaluation.batch import Batch, Figures, Floats, evaluate_batch
from opus_pipelines.evaluation.cost import consumed_usd, time_usd, weights_held
from opus_pipelines.optimization.envelope import best_on_chain
from opus_pipelines.settings import Cost
from opus_pipelines.workflow.model import TaskNode, Workflow

COMBINATIONS = 1 << 17  # up to which every one is looked at; 15 places for a review are 32,768
Allowed = Callable[[Batch], "np.ndarray"]
Options = Mapping[str, Sequence[TaskNode]]


@dataclass(frozen=True)
class Choice:
    """The workflow with its options chosen. `exact`: no other choice earns more; else the best that greedy changes found.

    `earned_usd`: for every node that is not at its first option, what the Reward would lose if it were.
    """

    workflow: Workflow
    reward_usd: float
    exact: bool
    earned_usd: Mapping[str, float]


def review_place(node: str, title: str) -> TaskNode:
    """The first option of a place for a review: no review."""
    return TaskNode(node, node, title, p=1.0, q=0.0, kind="review")


def best_choice(workflow: Workflow, options: Options, cost: Cost, allowed: Allowed | None = None) -> Choice | None:
    """The best choice of an option for each node named in `options`, from the first options on; ties go to earlier ones.

    `allowed` says of a batch which rows keep their constraints, EVAL (12); None where no combination that was looked at does.
    """
    names = [t.id for t in workflow.tasks if t.id in options]
    table = _Table.of(workflow, {name: list(options[name]) for name in names}, cost)
    sizes = [len(options[name]) for name in names]
    if math.prod(sizes) <= COMBINATIONS:
        picks, exact = table.best_of(_all(sizes), allowed), True
    elif allowed is None and _is_chain(workflow) and not any(weights_held(cost).values()):
        picks, exact = _on_chain(workflow, names, options, cost), True
    else:
        picks, exact = _greedy(table, sizes, allowed), False
    return None if picks is None else table.chosen(picks, exact)


@dataclass(frozen=True)
class _Table:
    """The figures of every option of every node, to be picked from by number."""

    workflow: Workflow
    options: dict[str, list[TaskNode]]
    cost: Cost
    base: Figures

    @classmethod
    def of(cls, workflow: Workflow, options: dict[str, list[TaskNode]], cost: Cost) -> "_Table":
        return cls(workflow, options, cost, Figures.of(workflow, cost))

    def scored(self, picks: "np.ndarray") -> Batch:
        """(n, nodes with options) numbers of options → n workflows scored."""
        columns = {name: np.repeat(getattr(self.base, name), len(picks), axis=0) for name in ("p", "q", "cost_usd", "duration_ms")}
        held_names = sorted({h for nodes in self.options.values() for node in nodes for h in node.held} | set(self.base.held))
        zero = np.zeros_like(self.base.p)
        held = {h: np.repeat(self.base.held.get(h, zero), len(picks), axis=0) for h in held_names}
        place = {t.id: i for i, t in enumerate(self.workflow.tasks)}
        for column, (name, nodes) in enumerate(self.options.items()):
            chosen, i = picks[:, column], place[name]
            for figure in ("p", "q", "duration_ms"):
                columns[figure][:, i] = np.array([getattr(node, figure) for node in nodes])[chosen]
            columns["cost_usd"][:, i] = np.array([node.cost_usd + consumed_usd(node, self.cost) for node in nodes])[chosen]
            for h in held_names:
                held[h][:, i] = np.array([node.held.get(h, 0.0) for node in nodes])[chosen]
        return evaluate_batch(self.workflow, replace(self.base, **columns, held=held), self.cost)

    def best_of(self, picks: "np.ndarray", allowed: Allowed | None) -> "np.ndarray | None":
        """The row that earns the most of those allowed; the first of several. Rewards within rounding are several."""
        batch = self.scored(picks)
        rewards: Floats = batch.reward_usd if allowed is None else np.where(allowed(batch), batch.reward_usd, -np.inf)
        top = rewards.max()
        if top == -np.inf:
            return None
        found: np.ndarray = picks[int(np.argmax(rewards >= top - 1e-12 * max(1.0, abs(top))))]
        return found

    def chosen(self, picks: "np.ndarray", exact: bool) -> Choice:
        nodes = {name: nodes[pick] for (name, nodes), pick in zip(self.options.items(), picks.tolist(), strict=True)}
        tasks = [nodes.get(t.id, t) for t in self.workflow.tasks]
        workflow = Workflow.of([*self.workflow.inputs, *tasks, *self.workflow.outputs], self.workflow.edges)
        moved = [i for i, pick in enumerate(picks.tolist()) if pick]
        reverted = np.repeat(picks[None, :], len(moved) + 1, axis=0)
        for row, i in enumerate(moved):
            reverted[row, i] = 0
        rewards = self.scored(reverted).reward_usd
        names = list(self.options)
        return Choice(workflow, float(rewards[-1]), exact, {names[i]: float(rewards[-1] - rewards[row]) for row, i in enumerate(moved)})


def _all(sizes: Sequence[int]) -> "np.ndarray":
    """Every combination, first options first."""
    if not sizes:
        return np.zeros((1, 0), int)
    return np.stack([grid.ravel() for grid in np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")], axis=1)


def _greedy(table: _Table, sizes: Sequence[int], allowed: Allowed | None) -> "np.ndarray | None":
    """From the first options on, the best change of one node, or of two where no single one helps, until none does."""
    now = table.best_of(np.zeros((1, len(sizes)), int), allowed)
    start = np.zeros(len(sizes), int) if now is None else now
    if now is None:  # the start breaks a constraint: look for one that does not among single changes from every uniform choice
        uniform = [np.minimum(level, np.array(sizes) - 1) for level in range(max(sizes))]
        now = table.best_of(np.stack([*uniform, *(c for u in uniform for c in _changes(u, sizes, 1))]), allowed)
        if now is None:
            return None
        start = now
    while True:
        for width in (1, 2):
            best = table.best_of(np.stack([start, *_changes(start, sizes, width)]), allowed)
            if best is not None and not (best == start).all():
                start = best
                break
        else:
            return start


def _changes(picks: "np.ndarray", sizes: Sequence[int], width: int) -> list["np.ndarray"]:
    """Every choice that differs from `picks` in `width` nodes."""
    found = []
    for places in combinations(range(len(sizes)), width):
        for levels in _all([sizes[i] for i in places]):
            if all(level != picks[i] for i, level in zip(places, levels, strict=True)):
                other = picks.copy()
                other[list(places)] = levels
                found.append(other)
    return found


def _is_chain(workflow: Workflow) -> bool:
    nodes = workflow.topological()
    return (
        len(workflow.inputs) == 1 and len(workflow.outputs) == 1
        and all(workflow.predecessors(b) == [a] for a, b in pairwise(nodes))
    )


def _on_chain(workflow: Workflow, names: Sequence[str], options: Options, cost: Cost) -> "np.ndarray":
    """EVAL (5) is a sum over the nodes of a chain, for its duration is: what each step costs is known by itself."""
    steps = [n for node in workflow.topological() if isinstance(n := workflow.by_id[node], TaskNode)]
    choices = [options.get(step.id, [step]) for step in steps]
    lines = [[(o.p, o.q, o.cost_usd + consumed_usd(o, cost) + time_usd(o.duration_ms, cost)) for o in found] for found in choices]
    picked = best_on_chain(lines, workflow.inputs[0].prior, workflow.outputs[0].gain_usd)
    by_id = {step.id: pick for step, pick in zip(steps, picked, strict=True)}
    return np.array([by_id[name] for name in names])
