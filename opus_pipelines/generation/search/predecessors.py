"""The figures of a task given the tasks directly before it: how the order of tasks enters the Reward, EVAL (7).

Each direct predecessor shifts p, q, time and cost as the WKG's edge between the two says
(`wkg.estimates.pair_figures`). The figures behind several predecessors are the means over the predecessors; each of
them is weighted by γ already, and one without an edge has the task's own figures. A review is looked through: the
predecessor is the task that it reviews. The probabilities stay P(success | all predecessors succeeded) and P(success |
at least one did not), so the inference of success is the same. These rules are the project's own.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from statistics import fmean

from opus_pipelines.wkg.graph import PairShift
from opus_pipelines.workflow.model import TaskNode

Shifts = Mapping[tuple[str, str], PairShift]
_NONE = PairShift()


def behind(node: TaskNode, before: Collection[str], shifts: Shifts) -> TaskNode:
    """Returns the node with its figures behind these tasks; the node itself where no edge shifts them."""
    found = [shifts.get((task, node.task_id), _NONE) for task in before]
    if all(shift is _NONE for shift in found):
        return node
    duration = fmean(shift.duration_factor for shift in found)
    cost = fmean(_cost_factor(node, shift) for shift in found)
    return replace(
        node,
        p=fmean(_shifted(node.p, shift.p_log_odds) for shift in found),
        q=fmean(_shifted(node.q, shift.q_log_odds) for shift in found),
        duration_ms=node.duration_ms * duration,
        cost_usd=node.cost_usd * cost,
        cost_compute_usd=_times(node.cost_compute_usd, cost),
        cost_model_usd=_times(node.cost_model_usd, cost),
        cost_human_usd=_times(node.cost_human_usd, cost),
    )


def errors(node: TaskNode, before: Collection[str], shifts: Shifts) -> tuple[float, float]:
    """Returns the standard errors of p and q of a node behind these tasks that come with the outcomes of the pairs.

    Pairs are independent, so the variance of their mean is the sum of their variances over the square of their number.
    """
    found = [shifts.get((task, node.task_id), _NONE) for task in before]
    p, q = (math.hypot(*values) for values in ((s.p_error for s in found), (s.q_error for s in found)))
    return p / max(len(found), 1), q / max(len(found), 1)


def _cost_factor(node: TaskNode, shift: PairShift) -> float:
    if shift.cost_factor is not None:
        return shift.cost_factor
    return shift.duration_factor if node.cost_basis == "rate" or node.paid_by_time else 1.0


def _times(amount: float | None, factor: float) -> float | None:
    return None if amount is None else amount * factor


def _shifted(chance: float, log_odds: float) -> float:
    """Returns the probability with these log-odds more; 0 and 1 stay what they are."""
    if not log_odds or not 0 < chance < 1:
        return chance
    return 1 / (1 + (1 - chance) / chance * math.exp(-log_odds))
