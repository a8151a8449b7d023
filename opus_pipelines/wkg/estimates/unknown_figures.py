"""Unknown figures: they are published as NULL with a reason, so that one of them never stops a rebuild.

The estimators should give finite figures for every log. This module is the last step before a figure is written: a
value that is not a number, outside its range or outside its own interval becomes NULL, and the row has the reason.
"""

import math
from typing import Any

from opus_pipelines.core.statistics import Estimate

ROUNDING = 1e-9  # a figure may lie this far outside its range or interval by rounding; it is then moved to the border
NO_TIMES = "no occurrence has a known duration"
NO_COSTS = "no occurrence has a known cost"
NO_WAITS = "no occurrence has a known waiting time"
ALWAYS_DONE = "every case has the task, so there is nothing to compare with"
ALWAYS_DONE_AMONG_THE_REST = "every case that has the critical tasks found before has this one too"
NOT_COMPUTED = "the estimator gave no number for these outcomes"
NO_INTERVAL = "the estimator gave no 95 % interval for these outcomes"


def probability(name: str, estimate: Estimate) -> dict[str, Any]:
    """The columns of one probability: value, interval, basis, count and reason.

    A value that cannot be told takes its interval and its basis with it; an interval that cannot be told leaves the
    value.
    """
    value = _inside(estimate.value, 0.0, 1.0)
    ends = interval(value, estimate.lower, estimate.upper, 0.0, 1.0) if value is not None else None
    lower, upper = ends or (None, None)
    reason = None if ends else NO_INTERVAL if value is not None else NOT_COMPUTED
    return {
        name: value,
        f"{name}_lower": lower,
        f"{name}_upper": upper,
        f"{name}_basis": estimate.basis if value is not None else None,
        f"{name}_n": estimate.n,
        f"{name}_reason": reason,
    }


def difference(
    names: tuple[str, str, str], figures: tuple[float, float, float] | None, why_none: str
) -> dict[str, Any]:
    """The columns `names` (value, lower, upper) of a difference of two rates, in [-1, 1], and `<first name>_reason`.

    `figures`: None where there is nothing to compare; `why_none` is then the reason.
    """
    value = None if figures is None else _inside(figures[0], -1.0, 1.0)
    ends = interval(value, figures[1], figures[2], -1.0, 1.0) if figures is not None and value is not None else None
    reason = why_none if figures is None else None if ends else NO_INTERVAL if value is not None else NOT_COMPUTED
    return {**dict(zip(names, (value, *(ends or (None, None))), strict=True)), f"{names[0]}_reason": reason}


def interval(value: float, lower: float, upper: float, least: float, most: float) -> tuple[float, float] | None:
    """The interval within [least, most] and round `value`; None where it is no interval, or lies beside the value."""
    ends = _inside(lower, least, most), _inside(upper, least, most)
    if ends[0] is None or ends[1] is None or ends[0] > value + ROUNDING or ends[1] < value - ROUNDING:
        return None
    return min(ends[0], value), max(ends[1], value)


def _inside(value: float, least: float, most: float) -> float | None:
    """The value, moved to a border that it passes by rounding; None where it is not a number or lies outside."""
    if not math.isfinite(value) or not least - ROUNDING <= value <= most + ROUNDING:
        return None
    return min(max(value, least), most)
