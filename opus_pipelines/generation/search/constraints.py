"""Tests whether a workflow, or each of a batch, keeps its constraints, EVAL (12), and by how much it breaks them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.workflow.constraints import NOT_APPLIED, Constraints, StepDeadline, folded, merged
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR
from opus_pipelines.workflow.evaluation.lead_time import LeadTime
from opus_pipelines.workflow.evaluation.reward import Batch, Evaluation

__all__ = ["Constraints", "DeadlineCheck", "TimeChecks", "folded", "late", "merged", "violations"]

Resolve = Callable[[str], Collection[str]]
MIN_P_DEADLINE = 0.9  # a deadline that one case in ten misses is kept, as a 90th percentile says it


@dataclass(frozen=True)
class DeadlineCheck:
    """The result of testing one step deadline against a workflow.

    `lead_time` is the time up to that step; it has no draws where the time is unknown. `limit_hours` is the limit that
    the lead time is compared with, in hours of working time where the deadline and the lead time count those.
    """

    deadline: StepDeadline
    lead_time: LeadTime
    limit_hours: float

    @property
    def p_kept(self) -> float | None:
        """The probability that the deadline is kept; None where it is unknown."""
        return self.lead_time.within(self.limit_hours)

    @property
    def text(self) -> str:
        """The deadline as text, with the probability of keeping it and what that rests on, or why it is unknown."""
        if self.p_kept is None:
            return f"{self.deadline.text}: {NOT_APPLIED}, because the time up to the step is {self.lead_time.basis}"
        rests_on = self.lead_time.rests_on(self.limit_hours)
        return f"{self.deadline.text}: kept with probability {self.p_kept:.3f} ({rests_on})"


@dataclass(frozen=True)
class TimeChecks:
    """What is compared with the deadlines of a workflow.

    `lead_time` is compared with `max_lead_time_hours`; without a lead time that constraint is not tested. `deadlines`
    are the checks of the deadlines of those steps that the workflow has.
    """

    lead_time: LeadTime | None = None
    deadlines: Sequence[DeadlineCheck] = ()


NO_TIME_CHECKS = TimeChecks()


def violations(
    constraints: Constraints,
    evaluation: Evaluation,
    titles_in_order: Sequence[str],
    resolve: Resolve = lambda name: (),
    times: TimeChecks = NO_TIME_CHECKS,
) -> list[str]:
    """Returns every constraint that the workflow breaks, each with its figures; an empty list means feasible.

    A deadline of a step whose probability is unknown is not applied. A name in a constraint matches every title with
    the same folded form (`folded`), and every title that `resolve` gives for the name (aliases of other clients).
    """
    places: dict[str, list[int]] = {}
    for place, title in enumerate(titles_in_order):
        places.setdefault(folded(title), []).append(place)

    def occurrences(name: str) -> list[int]:
        return sorted(p for key in {folded(t) for t in (name, *resolve(name))} for p in places.get(key, ()))

    return [
        *_limits(constraints, evaluation),
        *late(constraints, times),
        *(f"must_contain: {name!r} is missing" for name in constraints.must_contain if not occurrences(name)),
        *(
            f"must_not_contain: {name!r} is task {occurrences(name)[0] + 1}"
            for name in constraints.must_not_contain
            if occurrences(name)
        ),
        *_order(constraints, occurrences),
        *_choices(constraints, occurrences),
    ]


def late(constraints: Constraints, times: TimeChecks) -> list[str]:
    """Returns the deadlines, of the whole workflow and of its steps, that are missed too often."""
    whole = _deadline(constraints, times.lead_time) if times.lead_time else []
    return [*whole, *_late(constraints, times.deadlines)]


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
    """Returns the deadline of the workflow where it is missed too often, or where its probability is unknown."""
    limit = constraints.max_lead_time_hours
    if limit is None:
        return []
    least = _least(constraints)
    kept = lead_time.within(limit)
    if kept is None:
        return [
            f"max_lead_time_hours: whether {limit:g} hours are kept cannot be told: the lead time is {lead_time.basis}"
        ]
    if kept >= least:
        return []
    p90 = lead_time.p90_ms or 0.0  # known where the probability is
    return [
        f"max_lead_time_hours: the lead time, waiting included, keeps {limit:g} hours with probability {kept:.3f}"
        f" ({lead_time.rests_on(limit)}), which is below {least:g}; "
        f"its 90th percentile is {p90 / MS_PER_HOUR:.2f} hours"
    ]


def _least(constraints: Constraints) -> float:
    return MIN_P_DEADLINE if constraints.min_p_deadline is None else constraints.min_p_deadline


def _late(constraints: Constraints, checks: Sequence[DeadlineCheck]) -> list[str]:
    """Returns the deadlines of steps that are missed too often."""
    least = _least(constraints)
    return [
        f"deadlines: {check.text}, which is below {least:g}"
        for check in checks
        if check.p_kept is not None and check.p_kept < least
    ]


def _choices(constraints: Constraints, occurrences: Callable[[str], list[int]]) -> list[str]:
    """Returns the groups of which no task is present, or more than the one that is allowed."""
    broken = []
    for kind, groups in (("one_of", constraints.one_of), ("exactly_one_of", constraints.exactly_one_of)):
        for group in groups:
            there, names = [name for name in group if occurrences(name)], " or ".join(map(repr, group))
            if not there:
                broken.append(
                    f"{kind}: neither {names} is there" if len(group) == 2 else f"{kind}: none of {names} is there"
                )
            elif kind == "exactly_one_of" and len(there) > 1:
                broken.append(f"{kind}: {' and '.join(map(repr, there))} are there, and only one of {names} may be")
    return broken


def _exceeded(name: str, value: float, limit: float, sign: int) -> str:
    """Formats an exceeded limit with two decimals, or with as many as it takes to show the difference."""
    gap = abs(value - limit)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    verb = "exceeds" if sign > 0 else "is below"
    what = "touch time of " if name == "max_duration_hours" else ""  # so that nobody takes it for the lead time
    return f"{name}: {what}{value:.{digits}f} {verb} {limit:.{digits}f} by {gap:.{digits}f}"


def _order(constraints: Constraints, occurrences: Callable[[str], list[int]]) -> list[str]:
    """Returns the pairs of which both tasks occur and the first does not come before the second."""
    broken = []
    for first, second in constraints.before:
        a, b = occurrences(first), occurrences(second)
        if a and b and a[0] >= b[0]:
            broken.append(f"before: {first!r} is task {a[0] + 1}, {second!r} comes earlier as task {b[0] + 1}")
    return broken


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
