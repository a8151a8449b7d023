"""Explains a workflow: what each review and each more expensive execution mode earns, and which limits cost Reward."""

from collections.abc import Mapping

import numpy as np

from opus_pipelines.generation.planning.context import Edit, more
from opus_pipelines.generation.search.local_search import LocalSearch, PlanSpace, PlanState, RefinedPlan, kind_of, row
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR, time_usd, weighed_usd
from opus_pipelines.workflow.evaluation.reward import Batch
from opus_pipelines.workflow.model import TaskNode, reviewed_task

TIGHT = 0.01  # share of a limit that is left, below which it is called tight


def explain_choices(refiner: LocalSearch, plan: RefinedPlan) -> tuple[Edit, ...]:
    """Returns what each review adds to the worth, and each execution mode that is not the cheapest of its task."""
    table = refiner.table(plan.state.order)
    mine = row(table, plan.state.picks)
    instead: list[tuple[str, int, int]] = []
    for i, (name, options) in enumerate(table.options.items()):
        if any(node.imputed_usd for node in options):  # what a mode of unknown cost would save is not known
            continue
        costs = [_usd(node, refiner.space) for node in options]
        cheapest = costs.index(min(costs))
        if costs[cheapest] < costs[mine[i]]:
            instead.append((name, i, cheapest))
    if not instead:
        return ()
    rows = np.repeat(mine[None, :], len(instead) + 1, axis=0)
    for n, (_, i, other) in enumerate(instead):
        rows[n, i] = other
    rewards = table.scored(rows).worth
    return tuple(
        Edit(
            kind_of(name, refiner.space),
            _describe(name, plan.state, refiner.space, other),
            float(rewards[-1] - rewards[n]),
        )
        for n, (name, _, other) in enumerate(instead)
    )


def binding_limits(refiner: LocalSearch, plan: RefinedPlan) -> tuple[str, ...]:
    """Names the limits without which these tasks in this shape would earn more, and limits that are nearly reached."""
    space, table = refiner.space, refiner.table(plan.state.order)
    if not space.limits or not plan.keeps_limits:
        return ()

    def lost_usd(limits: Mapping[str, float]) -> float:
        picks, _ = refiner.best_picks(table, limits)
        return float(table.scored(picks[None, :]).worth[0]) - plan.worth

    sentences, step = [], space.reward.quantum_usd
    is_bound = lost_usd({}) > step
    values = _values(table.scored(row(table, plan.state.picks)[None, :]))
    for name, limit in space.limits.items():
        lost = lost_usd({n: x for n, x in space.limits.items() if n != name}) if is_bound else 0.0
        if lost > step:
            sentences.append(f"{name} {limit:g}: without it these steps would {more(lost, space.ends[1].gain_usd)}")
        elif abs(limit - values[name]) <= TIGHT * abs(limit):
            sentences.append(f"{name} {limit:g}: tight, it stands at {values[name]:.4g}")
    return tuple(sentences)


def _values(one: Batch) -> dict[str, float]:
    figures = {
        "max_cost_usd": one.cost_usd,
        "max_duration_hours": one.duration_ms / MS_PER_HOUR,
        "min_success": one.success_probability,
    }
    return {name: float(values[0]) for name, values in figures.items()}


def _usd(node: TaskNode, space: PlanSpace) -> float:
    return weighed_usd(node, space.cost) + time_usd(node.duration_ms, space.cost)


def _describe(name: str, state: PlanState, space: PlanSpace, other: int) -> str:
    pick = state.picks.get(name, 0)
    if name in space.execution_modes:
        modes = space.execution_modes[name]
        return f"{modes[0].title!r} by {modes[pick].actor.label} instead of {modes[other].actor.label}"
    title = space.execution_modes[reviewed_task(name)][0].title
    return f"review of {title!r} by {space.reviewers[pick - 1].actor.label}"
