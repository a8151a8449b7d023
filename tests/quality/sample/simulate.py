"""Simulates workflows from truth.json, so that a generated workflow's Reward can be held against what would really
happen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.quality.sample.reward_by_truth import PlannedStep, Step, earned_usd, kind_of, step_of, way_of
from opus_pipelines.workflow.model import OutputNode, TaskNode, Workflow

__all__ = ["Step", "expected_reward", "kind_of", "simulate_chain", "simulate_workflow", "step_of", "way_of"]
ESTIMATED = "estimated"  # the basis of the figures of a step that history lacks


@dataclass(frozen=True)
class SimResult:
    """Means over the runs; dollars, milliseconds of work (waiting is not in it), share of runs that succeeded."""

    mean_reward: float
    mean_cost: float
    success_rate: float
    mean_duration_ms: float


def simulate_chain(
    truth: dict[str, Any],
    industry: str,
    steps: Sequence[Step],
    gain_usd: float,
    runs: int = 10_000,
    seed: int = 0,
    kind: str | None = None,
) -> SimResult:
    """Carry out `steps` - (task, actor kind, model) - `runs` times; reward = gain where it succeeded - cost.

    A needed task of the kind of case that `steps` lack damages a run with its probability. Without `kind` it is the
    kind whose regular tasks are nearest to the steps'. Tasks are canonical names, or anything that `step_of` knows.
    Raises InputError for an unknown task or way.
    """
    random = np.random.default_rng(seed)
    names = [step_of(truth, industry, name) for name, _, _ in steps]
    right, cost, duration = np.ones(runs, bool), np.zeros(runs), np.zeros(runs)
    for name, (_, actor_kind, model) in zip(names, steps, strict=True):
        way = way_of(truth, industry, name, actor_kind, model)
        right = random.random(runs) < np.where(right, way["p"], way["q"])
        spent, took = _spend(truth, way, random, runs)
        cost, duration = cost + spent, duration + took
    for needed in kind_of(truth, industry, names, kind)["needed"]:
        if needed["task"] not in names:
            right &= random.random(runs) >= needed["damage"]
    return SimResult(
        float(np.mean(gain_usd * right - cost)), float(cost.mean()), float(right.mean()), float(duration.mean())
    )


def simulate_workflow(
    truth: dict[str, Any],
    industry: str,
    workflow: Workflow,
    kind: str,
    parents: Mapping[str, Sequence[str]] | None = None,
    runs: int = 10_000,
    seed: int = 0,
) -> SimResult:
    """Carry out a workflow of any shape; reward = gains of what came out right - cost; the duration is that of its
    longest path.

    A task is done right with the truth's p where all its parents are right, else with q; `parents` puts others in place
    of the workflow's own, as where work in parallel is seen as done one after the other. A review that the truth does
    not know has the figures of its node. A step whose figures are estimates is one that history lacks: where the truth
    has no such task or way, it corrects nothing. Raises InputError for any other task or way unknown.
    """
    random = np.random.default_rng(seed)
    above = parents or {node.id: workflow.predecessors(node.id) for node in workflow.nodes}
    whole = np.ones(runs, bool)
    done = [name for t in workflow.tasks if not t.is_review and (name := _task_of(truth, industry, t)) is not None]
    for needed in kind_of(truth, industry, done, kind)["needed"]:
        if needed["task"] not in done:
            whole &= random.random(runs) >= needed["damage"]
    right: dict[str, np.ndarray] = {}
    finish: dict[str, np.ndarray] = {}
    cost = np.zeros(runs)
    for name in workflow.topological():
        node = workflow.by_id[name]
        before = np.logical_and.reduce([np.ones(runs, bool), *(right[u] for u in above.get(name, ()))])
        began = np.maximum.reduce([np.zeros(runs), *(finish[u] for u in workflow.predecessors(name))])
        right[name], finish[name] = before, began
        if isinstance(node, TaskNode):
            p, q, spent, took = _done(truth, industry, node, random, runs)
            right[name] = random.random(runs) < np.where(before, p, q)
            finish[name], cost = began + took, cost + spent
    gain = sum(_gain_usd(node) * (right[node.id] & whole) for node in workflow.outputs)
    success = np.logical_and.reduce([right[node.id] for node in workflow.outputs]) & whole
    duration = np.maximum.reduce(list(finish.values()))
    return SimResult(float(np.mean(gain - cost)), float(cost.mean()), float(success.mean()), float(duration.mean()))


def expected_reward(
    truth: dict[str, Any], industry: str, workflow: Workflow, kind: str, start_ms: Mapping[str, float]
) -> float:
    """The mean that `simulate_workflow` comes near, exactly, where tasks are done `one_after_the_other`: a chain's
    success is a recursion.

    Raises InputError as it does.
    """
    tasks = {task.id: task for task in workflow.tasks}
    steps = []
    for name in _by_start(workflow, start_ms):
        node = tasks[name]
        mode = (str(node.actor_kind), node.model) if node.actor_kind else None  # a tool that no history says who does
        if mode is not None:
            _known_way(truth, industry, node)
        starts, ends = start_ms[name], start_ms[name] + (node.duration_ms or 0.0)
        figures = node.p, node.q, node.cost_usd, node.p_basis == ESTIMATED
        steps.append(PlannedStep(node.title, mode, starts, ends, node.is_review, *figures))
    return earned_usd(truth, industry, kind, sum(map(_gain_usd, workflow.outputs)), steps)


def _gain_usd(output: OutputNode) -> float:
    if output.gain_usd is None:
        raise InputError(f"output {output.id!r} states no gain_usd: there is no Reward to simulate")
    return output.gain_usd


def one_after_the_other(workflow: Workflow, start_ms: Mapping[str, float]) -> dict[str, list[str]]:
    """Parents of a workflow whose tasks are done in the order in which they start, each seeing what the last one left:
    how the truth has it, and how history records work that overlaps.
    """
    order = _by_start(workflow, start_ms)
    found: dict[str, list[str]] = {name: order[max(0, i - 1) : i] for i, name in enumerate(order)}
    return found | {node.id: order[-1:] for node in workflow.outputs}


def _by_start(workflow: Workflow, start_ms: Mapping[str, float]) -> list[str]:
    place = {name: i for i, name in enumerate(workflow.topological())}
    return sorted((t.id for t in workflow.tasks), key=lambda name: (start_ms[name], place[name]))


def _done(
    truth: dict[str, Any], industry: str, node: TaskNode, random: np.random.Generator, runs: int
) -> tuple[float, float, np.ndarray | float, np.ndarray | float]:
    """p, q, and the dollars and milliseconds of each run."""
    way = _known_way(truth, industry, node)
    if way is None:
        return node.p, node.q if node.is_review else 0.0, node.cost_usd, node.duration_ms
    return (way["p"], way["q"], *_spend(truth, way, random, runs))


def _known_way(truth: dict[str, Any], industry: str, node: TaskNode) -> dict[str, Any] | None:
    """The truth's way of doing a node's task, None of a review that it does not know; raises InputError of
    any other.
    """
    try:
        return way_of(truth, industry, step_of(truth, industry, node.title), str(node.actor_kind), node.model)
    except InputError:
        if not (node.is_review or node.p_basis == ESTIMATED):
            raise
        return None


def _task_of(truth: dict[str, Any], industry: str, node: TaskNode) -> str | None:
    """The canonical task of a node, None of a step that neither history nor the truth has."""
    try:
        return step_of(truth, industry, node.title)
    except InputError:
        if node.p_basis != ESTIMATED:
            raise
        return None


def _spend(
    truth: dict[str, Any], way: dict[str, Any], random: np.random.Generator, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """(dollars, milliseconds) of each run; people's and programs' cost follows their time, a model's its tokens."""
    shape = truth["variation"] ** -2
    took = random.gamma(shape, way["duration_ms_mean"] / shape, runs)
    if way["model"] is None:
        return took * (way["cost_usd_mean"] / way["duration_ms_mean"]), took
    tokens = sum(random.gamma(shape, way[f"tokens_{side}_mean"] / shape, runs) for side in ("in", "out"))
    return np.asarray(tokens) * truth["usd_per_million_tokens"][way["model"]] / 1e6, took
