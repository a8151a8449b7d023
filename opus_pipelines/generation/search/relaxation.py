"""Finds conflicting demands and the minimal relaxations that make a problem feasible, and prices each demand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from opus_pipelines.generation.search.labels import EFFORT, ChosenPath, best_paths
from opus_pipelines.generation.search.problem import Demand, Limit, Problem
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR

MAX_PAIRS = 400  # most pairs of demands that are tested for a conflict smaller than the first one


@dataclass(frozen=True)
class Infeasibility:
    """The reasons why no path keeps every demand.

    `conflicts`: sets of demands that no path keeps together, though some path keeps any proper part of them; without
    one demand of each set a feasible path exists. `smallest`: no conflict has fewer demands than the first. `limits`:
    for every limit whose relaxation alone is enough, the nearest value that some path keeps. `together`: where no
    single limit is enough, the values of all limits on the best path without them. `droppable`: other demands whose
    omission alone is enough. `proven`: False where a search ended early, so that a feasible path may exist.
    """

    conflicts: tuple[tuple[Demand, ...], ...]
    smallest: bool
    limits: tuple[tuple[Limit, float], ...]
    together: tuple[tuple[Limit, float], ...]
    droppable: tuple[Demand, ...]
    proven: bool

    @property
    def sentences(self) -> list[str]:
        """The conflicts as text, then each relaxation by itself, limits first."""
        sentences = [
            f"conflict: {_together(c)}" + ("" if self.proven else " (as far as the search went)")
            for c in self.conflicts
        ]
        sentences += [f"relax: {_moved(limit, value)}, all else kept" for limit, value in self.limits]
        sentences += (
            [f"relax: {' and '.join(_moved(*moved) for moved in self.together)}, all else kept"]
            if self.together
            else []
        )
        sentences += [f"relax: without {demand.name}, all else kept" for demand in self.droppable]
        return sentences if len(sentences) > len(self.conflicts) else [*sentences, "relax: no single demand mends it"]


def infeasibility(problem: Problem, effort: int = EFFORT) -> Infeasibility | None:
    """Returns why no path of the problem keeps all its demands; None where a path does."""
    tests = _FeasibilityTests(problem, effort)
    if tests.fits(problem.demands):
        return None
    conflicts, smallest = _conflicts(tests)
    limits = [(d, value) for d in problem.demands if isinstance(d, Limit) and (value := tests.nearest(d)) is not None]
    limits.sort(key=lambda entry: (abs(entry[1] - entry[0].value) / max(abs(entry[0].value), 1e-9), entry[0].name))
    others = [d for conflict in conflicts for d in conflict if not isinstance(d, Limit)]
    droppable = [d for d in others if tests.fits([other for other in problem.demands if other is not d])]
    together = [] if limits else tests.together()
    return Infeasibility(tuple(conflicts), smallest, tuple(limits), tuple(together), tuple(droppable), tests.proven)


def relaxation_costs(
    problem: Problem, worth: float, demands: Sequence[Demand], effort: int = EFFORT
) -> list[tuple[Demand, float]]:
    """Returns for each binding demand how much more the best path would be worth without it.

    `worth` is the worth of the best path with all demands. The amounts are in units of the objective, the largest
    first; demands that cost nothing are left out.
    """
    costs = []
    for demand in demands:
        best = best_paths(problem.without(demand), 1, effort).paths
        if best and best[0].worth - worth > 1e-9:
            costs.append((demand, best[0].worth - worth))
    return sorted(costs, key=lambda f: (-f[1], f[0].name))


class _FeasibilityTests:
    """Tests whether sets of demands are feasible; each set is searched once."""

    def __init__(self, problem: Problem, effort: int) -> None:
        self.problem, self.effort, self.proven = problem, effort, True
        self._known: dict[frozenset[int], bool] = {}

    def fits(self, demands: Sequence[Demand]) -> bool:
        key = frozenset(map(id, demands))
        if key not in self._known:
            limits = [d.figure for d in demands if isinstance(d, Limit)]
            figure = (
                limits[0] if limits else "cost_usd"
            )  # the best of a figure tells at once whether its limit can be kept
            best = best_paths(replace(self.problem, demands=tuple(demands), objective=figure), 1, self.effort)
            self._known[key] = bool(best.paths)
            self.proven &= bool(best.paths) or best.exact
        return self._known[key]

    def nearest(self, limit: Limit) -> float | None:
        """Returns the feasible value of this figure nearest to its limit, with all other demands kept.

        Returns None where no path keeps the other demands.
        """
        others = tuple(d for d in self.problem.demands if not (isinstance(d, Limit) and d.figure == limit.figure))
        cost = self.problem.cost.model_copy(update={"kappa_usd": 0.0})
        best = best_paths(replace(self.problem, demands=others, objective=limit.figure, cost=cost), 1, self.effort)
        self.proven &= best.exact
        return _figure(best.paths[0], limit) if best.paths else None

    def together(self) -> list[tuple[Limit, float]]:
        """Returns the limits that the best path without any limit breaks, each with its value there.

        The list is empty where no path keeps the other demands.
        """
        limits = [d for d in self.problem.demands if isinstance(d, Limit)]
        best = best_paths(self.problem.without(*limits), 1, self.effort).paths if limits else []
        values = [(limit, _figure(best[0], limit)) for limit in limits] if best else []
        return [
            (limit, x) for limit, x in values if (x < limit.value if limit.figure == "success" else x > limit.value)
        ]


def _figure(path: ChosenPath, limit: Limit) -> float:
    return {"cost_usd": path.cost_usd, "duration_ms": path.duration_ms, "success": path.success}[limit.figure]


def _conflicts(tests: _FeasibilityTests) -> tuple[list[tuple[Demand, ...]], bool]:
    """Returns conflicts, each among the demands that the earlier ones leave, until the rest is feasible."""
    left, all_conflicts, smallest = list(tests.problem.demands), list[tuple[Demand, ...]](), True
    while not tests.fits(left):
        conflicts, is_smallest = _next_conflicts(tests, left)
        smallest = is_smallest if not all_conflicts else smallest
        all_conflicts += conflicts
        taken = {id(d) for conflict in conflicts for d in conflict}
        if not taken:
            break
        left = [d for d in left if id(d) not in taken]
    return all_conflicts, smallest


def _next_conflicts(tests: _FeasibilityTests, demands: list[Demand]) -> tuple[list[tuple[Demand, ...]], bool]:
    """Returns single infeasible demands, else an infeasible pair, else an irreducible conflict.

    The second value is whether no smaller conflict exists.
    """
    if not tests.fits([]):
        return [()], True
    if alone := [(d,) for d in demands if not tests.fits([d])]:
        return list(alone), True
    kept = list(demands)
    for demand in demands:
        rest = [d for d in kept if d is not demand]
        if not tests.fits(rest):
            kept = rest
    if len(kept) == 2:
        return [tuple(kept)], True
    pairs = list(combinations(demands, 2))
    for pair in pairs[:MAX_PAIRS]:
        if not tests.fits(pair):
            return [pair], True
    return [tuple(kept)], len(kept) == 3 and len(pairs) <= MAX_PAIRS


def _together(demands: Sequence[Demand]) -> str:
    names = [d.name for d in demands]
    if not names:
        return "no path leads from input to output"
    if len(names) == 1:
        return f"no path keeps {names[0]}"
    if len(names) == 2:
        return f"no path keeps both {names[0]} and {names[1]}"
    return f"no path keeps all of {', '.join(names[:-1])} and {names[-1]}"


def _moved(limit: Limit, value: float) -> str:
    """Formats how far the limit has to move, rounded to the safe side."""
    unit = MS_PER_HOUR if limit.figure == "duration_ms" else 1.0
    key, digits = limit.name.split(" ")[0], 3 if limit.figure == "success" else 2
    up = limit.figure != "success"
    step = 10.0**digits
    near = (math.ceil if up else math.floor)(value / unit * step + (-1e-6 if up else 1e-6)) / step
    return f"{key} {near:.{digits}f} instead of {limit.value / unit:.{digits}f}"
