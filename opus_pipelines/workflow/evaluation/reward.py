"""Evaluates workflows by EVAL: success, schedule, cost and Reward (7) of one in one record, or of many of one shape.

Many of one shape are evaluated in one NumPy pass over arrays with one row per workflow; the figures are those of
`evaluate`. `merit` compares workflows as EVAL (13) does: Rewards in steps of a quantum, then Penalties. Without a
stated gain, success probabilities take the place of Rewards.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.cost import (
    MS_PER_HOUR,
    consumed_usd,
    peaks,
    schedule,
    weights_held,
    workflow_cost,
)
from opus_pipelines.workflow.evaluation.success import ExactInference, Floats, Success, inferred_success
from opus_pipelines.workflow.model import Node, Workflow


@dataclass(frozen=True)
class Evaluation:
    """The figures of a workflow, named as in `workflows/optimized`; the maps are by node.

    cost_usd == cost_compute_usd + cost_model_usd + cost_human_usd + cost_time_usd + cost_held_usd, to the last bit.
    Costs, times and the Reward cover known figures only; `imputed_usd` stands for the rest where workflows are compared
    (`generation.search.costs`). Gain, expected gain and Reward are None where no gain is stated.
    `success_inference` is exact, product or simulated (`bayesian_network.Inferred`); the figures that end with the word
    product are the paper's, EVAL (4) and (7), which take the predecessors of a step for independent.
    """

    reward_usd: float | None
    gain_usd: float | None
    expected_gain_usd: float | None
    success_probability: float
    cost_usd: float
    cost_compute_usd: float
    cost_model_usd: float
    cost_human_usd: float
    cost_time_usd: float
    cost_held_usd: float
    duration_ms: float
    peak_memory_gb: float
    peak_threads: float
    success: dict[str, float]
    start_ms: dict[str, float]
    finish_ms: dict[str, float]
    success_inference: str
    success_probability_product: float
    reward_product_usd: float | None
    imputed_usd: float = 0.0

    @property
    def worth(self) -> float:
        """The value that the search maximises: the Reward less imputed dollars, or P_succ(W) without a stated gain."""
        return self.success_probability if self.reward_usd is None else self.reward_usd - self.imputed_usd

    @property
    def imputed_worth(self) -> float:
        """The part of `worth` that stands for unknown costs and times."""
        return 0.0 if self.reward_usd is None else self.imputed_usd


def evaluate(workflow: Workflow, cost: Cost, reward: Reward) -> Evaluation:
    """Evaluates EVAL (1)-(7) of one workflow.

    `gain_usd` is the sum of the outputs' gains, and `reward_usd` is the expected gain less the cost. `reward.inference`
    selects the inference of success: exact (`workflow.evaluation.success`), or the paper's product form. Where
    exact inference is too wide, success is simulated.
    """
    inferred = inferred_success(workflow, reward.inference)
    success = inferred.success
    times = schedule(workflow)
    held = peaks(workflow, times)
    spent = workflow_cost(workflow, times.duration_ms, held, cost)
    gains = [(n.id, n.gain_usd) for n in workflow.outputs if n.gain_usd is not None]
    stated = workflow.states_gain

    def expected_gain(of: Success) -> float | None:
        return math.fsum(gain * of.nodes[output] for output, gain in gains) if stated else None

    expected, by_product = expected_gain(success), expected_gain(inferred.product)
    return Evaluation(
        reward_usd=None if expected is None else expected - spent.cost_usd,
        gain_usd=math.fsum(gain for _, gain in gains) if stated else None,
        expected_gain_usd=expected,
        success_probability=success.workflow,
        cost_usd=spent.cost_usd,
        cost_compute_usd=spent.cost_compute_usd,
        cost_model_usd=spent.cost_model_usd,
        cost_human_usd=spent.cost_human_usd,
        cost_time_usd=spent.cost_time_usd,
        cost_held_usd=spent.cost_held_usd,
        duration_ms=times.duration_ms,
        peak_memory_gb=held.memory_gb,
        peak_threads=held.threads,
        success=success.nodes,
        start_ms=times.start_ms,
        finish_ms=times.finish_ms,
        imputed_usd=math.fsum(task.imputed_usd for task in workflow.tasks),
        success_inference=inferred.method,
        success_probability_product=inferred.product.workflow,
        reward_product_usd=None if by_product is None else by_product - spent.cost_usd,
    )


def quantised(worth: float, quantum: float) -> int:
    """Returns the Reward (or success probability) in whole steps of the quantum, rounded half to even.

    Raw floats would break ties by rounding errors, and a comparison with a tolerance is not transitive. Raises
    WorkflowError for a value that is not finite.
    """
    if not math.isfinite(worth):
        raise WorkflowError(f"a Reward of {worth} cannot be ranked")
    return round(worth / quantum)


def merit(worth: float, penalty: float | None, quantum: float) -> tuple[int, float]:
    """Returns the sort key of (13), least first: Reward descending, Penalty ascending, an unmeasured one last."""
    return -quantised(worth, quantum), math.inf if penalty is None else penalty


ROWS = 1 << 14  # rows of one pass, so that its arrays fit into the processor's cache
EXACT_ROWS = 1 << 7  # likewise where tables of up to 2^WIDEST numbers for each row are needed


@dataclass(frozen=True)
class Figures:
    """The parameters of n workflows that share nodes and edges.

    The columns follow `Workflow.inputs`, `.tasks` and `.outputs`. p, q, cost_usd and duration_ms are (n, tasks), prior
    is (n, inputs), and gain_usd is (n, outputs), None where no gain is stated. `held` maps a resource name to (n,
    tasks). imputed_usd is (n, tasks): the amount that stands for unknown costs and times; it lowers the Reward and is
    part of no cost. An array with one row stands for all rows.
    """

    p: Floats
    q: Floats
    cost_usd: Floats
    duration_ms: Floats
    prior: Floats
    gain_usd: Floats | None
    held: Mapping[str, Floats]
    imputed_usd: Floats

    @classmethod
    def of(cls, workflow: Workflow, cost: Cost) -> "Figures":
        """Returns the parameters of one workflow as arrays of one row.

        `cost_usd` includes the price of the other resources that the tasks consume.
        """
        tasks = workflow.tasks
        columns = {
            name: np.array([[getattr(t, name) for t in tasks]]) for name in ("p", "q", "duration_ms", "imputed_usd")
        }
        names = sorted({name for t in tasks for name in t.held})
        return cls(
            **columns,
            cost_usd=np.array([[t.cost_usd + consumed_usd(t, cost) for t in tasks]]),
            prior=np.array([[n.prior for n in workflow.inputs]]),
            gain_usd=np.array([[n.gain_usd for n in workflow.outputs]], dtype=np.float64)
            if workflow.states_gain
            else None,
            held={name: np.array([[t.held.get(name, 0.0) for t in tasks]]) for name in names},
        )

    @property
    def rows(self) -> int:
        """The number n of workflows."""
        plain = self.p, self.q, self.cost_usd, self.duration_ms, self.prior, self.gain_usd, self.imputed_usd
        return max(len(a) for a in (*plain, *self.held.values()) if a is not None)

    def part(self, start: int, stop: int) -> "Figures":
        """Returns the rows start..stop; arrays of one row stay as they are."""

        def cut(a: Floats) -> Floats:
            return a if len(a) == 1 else a[start:stop]

        plain = {
            name: cut(getattr(self, name)) for name in ("p", "q", "cost_usd", "duration_ms", "prior", "imputed_usd")
        }
        gain = None if self.gain_usd is None else cut(self.gain_usd)
        return Figures(**plain, gain_usd=gain, held={name: cut(a) for name, a in self.held.items()})


@dataclass(frozen=True)
class Batch:
    """The figures of n workflows, each (n,).

    `worth` is the value by which they are compared, as in `Evaluation`; the cost is the known cost.
    """

    worth: Floats
    success_probability: Floats
    cost_usd: Floats
    duration_ms: Floats


def evaluate_batch(
    workflow: Workflow, figures: Figures, cost: Cost, inference: Literal["product", "exact"] = "exact"
) -> Batch:
    """Evaluates EVAL (1)-(7) of every row; equal to `evaluate` up to rounding (1e-12).

    Raises WorkflowError where exact inference is too wide or too long (`workflow.evaluation.success`).
    """
    shape = _Shape.of(workflow)
    n, size = figures.rows, ROWS
    is_exact = inference == "exact" and not product_is_exact(workflow, figures)
    if is_exact:
        size = EXACT_ROWS
    parts = []
    for start in range(0, n, size):
        part, rows = figures.part(start, min(start + size, n)), min(start + size, n) - start
        network = ExactInference(workflow, shape.chances(part)) if is_exact else None
        parts.append(_pass(shape, part, rows, cost, network))
    return Batch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def product_is_exact(workflow: Workflow, figures: Figures) -> bool:
    """Returns whether no uncertain branches meet again in any row, so that the product form is exact."""
    return ExactInference(workflow, _Shape.of(workflow).chances(figures)).is_product


@dataclass(frozen=True)
class _Shape:
    """The nodes in topological order: (kind, its column, the positions of its parents)."""

    nodes: tuple[tuple[str, int, tuple[int, ...]], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, workflow: Workflow) -> "_Shape":
        place = {node: i for i, node in enumerate(workflow.topological())}
        groups: tuple[Sequence[Node], ...] = (workflow.inputs, workflow.tasks, workflow.outputs)
        columns = {n.id: i for group in groups for i, n in enumerate(group)}
        kinds = {n.id: n.kind if n.kind in ("input", "output") else "task" for n in workflow.nodes}
        nodes = tuple((kinds[v], columns[v], tuple(place[u] for u in workflow.predecessors(v))) for v in place)
        return cls(nodes, tuple(place))

    def chances(self, figures: Figures) -> dict[str, tuple[Floats, Floats]]:
        """Returns p and q of each node, as `ExactInference` takes them."""
        one, zero = np.ones(1), np.zeros(1)
        found = {}
        for name, (kind, column, _) in zip(self.names, self.nodes, strict=True):
            if kind == "task":
                found[name] = figures.p[:, column], figures.q[:, column]
            else:
                found[name] = (figures.prior[:, column] if kind == "input" else one), zero
        return found


def _pass(
    shape: _Shape, figures: Figures, rows: int, cost: Cost, network: ExactInference | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Returns worth, success, cost and duration of one part; without a network success is in the product form."""
    # Columns of one task lie together in memory: every operation below works on whole columns.
    p, q, spent, took, prior = (
        np.asfortranarray(a) for a in (figures.p, figures.q, figures.cost_usd, figures.duration_ms, figures.prior)
    )
    gain = figures.gain_usd
    right: list[Floats] = []
    finish: list[Floats] = []
    start_of: dict[int, Floats] = {}
    outputs: list[int] = []
    expected, zero = np.zeros(rows), np.zeros(1)
    for kind, column, parents in shape.nodes:
        above = _all_right(shape, parents, right, network)
        begin = zero
        for u in parents:
            begin = np.maximum(begin, finish[u]) if begin is not zero else finish[u]
        if kind == "input":
            right.append(prior[:, column])
            finish.append(zero)
        elif kind == "task":
            right.append(np.minimum(1.0, p[:, column] * above + q[:, column] * (1 - above)))
            start_of[column] = begin
            finish.append(begin + took[:, column])
        else:
            right.append(above)
            finish.append(begin)
            expected = expected if gain is None else expected + gain[:, column] * above
            outputs.append(len(right) - 1)
    success = np.ones(rows) * _all_right(shape, outputs, right, network)
    duration = np.zeros(rows)
    for end in finish:
        duration = np.maximum(duration, end)
    total = np.zeros(rows)
    for column in range(spent.shape[1]):
        total = total + spent[:, column]
    total = total + cost.usd_per_hour_of_duration * duration / MS_PER_HOUR + _held_usd(figures, start_of, rows, cost)
    if gain is None:
        return success, success, total, duration
    worth = expected - total
    return worth - figures.imputed_usd.sum(axis=1) if figures.imputed_usd.any() else worth, success, total, duration


def _all_right(shape: _Shape, nodes: Sequence[int], right: list[Floats], network: ExactInference | None) -> Floats:
    """Returns P(all these nodes are right), (n,) or (1,)."""
    if network is not None and len(nodes) > 1:
        return network.all_right([shape.names[u] for u in nodes], dict(zip(shape.names, right, strict=False)))
    together = np.ones(1)
    for u in nodes:
        together = together * right[u]
    return together


def _held_usd(figures: Figures, start_of: Mapping[int, Floats], rows: int, cost: Cost) -> Floats:
    """Returns <w_r, R^(r)> by (3), (18): the largest amount held at the start of any task.

    Resources without a weight are skipped.
    """
    weights = weights_held(cost)
    total = np.zeros(rows)
    took = figures.duration_ms
    for name, amounts in figures.held.items():
        weight = weights.get(name, 0.0)
        if not weight or not amounts.any():
            continue
        peak = np.zeros(rows)
        for j in start_of:
            at = start_of[j]
            held = np.zeros(rows)
            for i, begin in start_of.items():
                held = held + amounts[:, i] * ((begin <= at) & (at < begin + took[:, i]))
            peak = np.maximum(peak, np.where(took[:, j] > 0, held, 0.0))
        total = total + weight * peak
    return total
