"""Whether a workflow keeps to its constraints, EVAL (12), and by how much it does not."""

import math
from collections.abc import Callable, Collection, Sequence

from opus_pipelines.evaluation.cost import MS_PER_HOUR
from opus_pipelines.evaluation.reward import Evaluation
from opus_pipelines.workflow.constraints import Constraints, folded, merged

__all__ = ["Constraints", "folded", "merged", "violations"]

Resolve = Callable[[str], Collection[str]]


def violations(
    constraints: Constraints, evaluation: Evaluation, titles_in_order: Sequence[str], resolve: Resolve = lambda name: ()
) -> list[str]:
    """Every constraint that the workflow breaks, each with its figures; none means feasible.

    A task is named by any title that folds alike (`folded`), or by one that `resolve` gives for the name (aliases of other clients).
    """
    places: dict[str, list[int]] = {}
    for place, title in enumerate(titles_in_order):
        places.setdefault(folded(title), []).append(place)

    def occurrences(name: str) -> list[int]:
        return sorted(p for key in {folded(t) for t in (name, *resolve(name))} for p in places.get(key, ()))

    return [
        *_limits(constraints, evaluation),
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


def _exceeded(name: str, value: float, limit: float, sign: int) -> str:
    """Two decimals, or as many as it takes to show the difference."""
    gap = abs(value - limit)
    digits = max(2, 1 - math.floor(math.log10(gap)))
    verb = "exceeds" if sign > 0 else "is below"
    return f"{name}: {value:.{digits}f} {verb} {limit:.{digits}f} by {gap:.{digits}f}"


def _order(constraints: Constraints, occurrences: Callable[[str], list[int]]) -> list[str]:
    """Pairs of which both occur, the first not before the second."""
    found = []
    for first, second in constraints.before:
        a, b = occurrences(first), occurrences(second)
        if a and b and a[0] >= b[0]:
            found.append(f"before: {first!r} is task {a[0] + 1}, {second!r} comes earlier as task {b[0] + 1}")
    return found
