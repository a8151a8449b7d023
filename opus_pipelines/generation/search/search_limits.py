"""Tests which workflows of a batch keep the limits on cost, time and success, EVAL (12)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR
from opus_pipelines.workflow.evaluation.reward import Batch, Evaluation

LIMITS = ("max_cost_usd", "max_duration_hours", "min_success")
_ROUNDING = 1e-9  # as in `constraints.violations`: a sum's rounding error breaks no limit


def stated(constraints: Constraints) -> dict[str, float]:
    """Returns the limits that are set, by name."""
    return {name: value for name in LIMITS if (value := getattr(constraints, name)) is not None}


def within_limits(limits: Mapping[str, float], batch: Batch) -> NDArray[np.bool_]:
    """Returns (n,) whether each workflow keeps every limit."""
    figures = {
        "max_cost_usd": (batch.cost_usd, 1),
        "max_duration_hours": (batch.duration_ms / MS_PER_HOUR, 1),
        "min_success": (batch.success_probability, -1),
    }
    kept = np.ones(len(batch.worth), bool)
    for name, limit in limits.items():
        values, sign = figures[name]
        kept &= (sign * (values - limit) <= 0) | np.isclose(values, limit, rtol=_ROUNDING, atol=0)
    return kept


def is_within_limits(limits: Mapping[str, float], worth: Evaluation) -> bool:
    """Returns whether one workflow keeps every limit."""
    names = "worth", "success_probability", "cost_usd", "duration_ms"
    return bool(within_limits(limits, Batch(*(np.array([getattr(worth, name)]) for name in names)))[0])
