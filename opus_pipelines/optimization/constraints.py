"""Whether a workflow keeps to its constraints, EVAL (12), and by how much it does not."""

import math
from collections.abc import Callable, Collection, Sequence

from opus_pipelines.evaluation.cost import MS_PER_HOUR
from opus_pipelines.evaluation.lead_time import LeadTime
from opus_pipelines.evaluation.reward import Evaluation
from opus_pipelines.workflow.constraints import Constraints, folded, merged

__all__ = ["Constraints", "folded", "merged", "violations"]

Resolve = Callable[[str], Collection[str]]
MIN_P_DEADLINE = 0.9  # a deadline that one case in ten misses is kept, as a 90th percentile says it


def violations(
    constraints: Constraints, evaluation: Evaluation, titles_in_order: Sequence[str], resolve: Resolve = lambda name: (),
    lead_time: LeadTime | None = None,
) -> list[str]:
    """Every constraint that the workflow breaks, each with its figures; none means feasible.

    `lead_time`: what `max_lead_time_hours` is held against; without one that constraint is not looked at.
    A task is named by any title that folds alike (`folded`), or by one that `resolve` gives for the name (aliases of other clients).
    """
    places: dict[str, list[int]] = {}
    for place, title in enumerate(titles_in_order):
        places.setdefault(folded(title), []).append(place)

    def occurrences(name: str) -> list[int]:
        return sorted(p for key in {folded(t) for t in (name, *resolve(name))} for p in places.get(key, ()))

    return [
        *_limits(constraints, evaluation),
        *(_deadline(constraints, lead_time) if lead_time else ()),
        *(f"must_contain: {name!r} is missing" for name in constraints.must_contain if not occurrences(name)),
        *(f"must_not_contain: {name!r} is task {occurrences(name)[0] + 1}" for name in constraints.must_not_contain if occurrences(name)),
        *_order(constraints, occurrences),
    ]


def _limits(constraints: Constraints, evaluation: Evaluation) -> list[str]:
    hours = evaluation.duration_ms / MS_PER_HOUR
    figures = [
        ("max_cost_usd", evaluation.cost_usd, constraints.max_cost_usd, 1),
        ("max_duration_hours", hours, constraints.max_duration_hours, 1),
        ("min_success", evaluation.success_probability, constraints.min_success, -1),
    ]
    return [
        _exceeded(name, value, limit, sign)
        for name, value, limit, sign in figures
        # A sum's rounding error breaks no limit.
        if limit is not None and sign * (value - limit) > 0 and not math.isclose(value, limit, rel_tol=1e-9)
    ]


def _deadline(constraints: Constraints, lead_time: LeadTime) -> list[str]:
    """The deadline, where it is missed too often, or where nothing tells whether it is kept."""
    limit = constraints.max_lead_time_hours
    if limit is None:
        return []
    least = MIN_P_DEADLINE if constraints.min_p_deadline is None else constraints.min_p_deadline
    kept, p90 = lead_time.within(limit), lead_time.p90_ms
    if kept is None or p90 is None:
        return [f"max_lead_time_hours: whether {limit:g} hours are kept cannot be told: the lead time is {lead_time.basis}"]
    if kept >= least:
        return []
    return [
        f"max_lead_time_hours: the lead time, waiting included, keeps {limit:g} hours with probability {kept:.3f}, which is below"
        f" {least:g}; its 90th percentile is {p90 / MS_PER_HOUR:.2f} hours"
    ]


def _exceeded(name: str, value: float, limit: float, sign: int) -> str:
    """Two decimals, or as many as it takes to show the difference."""
    gap = abs(value - limit)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    verb = "exceeds" if sign > 0 else "is below"
    what = "touch time of " if name == "max_duration_hours" else ""  # so that nobody takes it for the lead time
    return f"{name}: {what}{value:.{digits}f} {verb} {limit:.{digits}f} by {gap:.{digits}f}"


def _order(constraints: Constraints, occurrences: Callable[[str], list[int]]) -> list[str]:
    """Pairs of which both occur, the first not before the second."""
    found = []
    for first, second in constraints.before:
        a, b = occurrences(first), occurrences(second)
        if a and b and a[0] >= b[0]:
            found.append(f"before: {first!r} is task {a[0] + 1}, {second!r} comes earlier as task {b[0] + 1}")
    return found
