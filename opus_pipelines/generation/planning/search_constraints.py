"""The requirements on tasks and their order as demands of the path search, and what each of them costs."""

from opus_pipelines.generation.planning.ranking_context import RankingContext, either
from opus_pipelines.generation.search.label_search import ChosenPath, best_paths
from opus_pipelines.generation.search.minimal_relaxation import infeasibility, relaxation_costs
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Demand, Limit, Problem, keeps
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR

# labels that a search may expand, so that the time of an intake is bounded; what is left open is reported as the gap
DEMANDS_EFFORT = 3_000
HISTORY = "the order of history"


def problem_of(context: RankingContext) -> Problem:
    """Returns the search problem: Reward, or success without a stated gain, under all requirements."""
    gain = context.intake.gain_usd
    return Problem(
        context.draft.wfg,
        context.draft.prices.nodes,
        context.cost,
        gain or 0.0,
        demands=(*_limits(context), *_named(context), *_by_history(context)),
        objective="success" if gain is None else "reward",
        shifts=context.draft.graph.shifts,
    )


def is_mendable(demand: Demand) -> bool:
    """Returns whether branches, which save time, or reviews, which raise success, may make a plan keep the demand."""
    return isinstance(demand, Limit) and demand.figure != "cost_usd"


def keeps_limits(path: ChosenPath, problem: Problem) -> bool:
    """Returns whether the chain keeps the limits."""
    figures = {"cost_usd": -path.cost_usd, "duration_ms": -path.duration_ms, "success": path.success}
    bounds = [
        (d.figure, d.value if d.figure == "success" else -d.value) for d in problem.demands if isinstance(d, Limit)
    ]
    return all(figures[figure] >= bound - 1e-9 * abs(bound) for figure, bound in bounds)


def binding_demands(context: RankingContext) -> tuple[str, ...]:
    """Says for each demand on tasks and order that binds how much more the best chain would earn without it.

    Limits on time and success are left out, as they are in `proposals`; what limits cost a workflow is computed on its
    own steps (`explanations.binding`).
    """
    problem = problem_of(context)
    problem = problem.without(*(d for d in problem.demands if is_mendable(d)))
    own = _named(context)
    free = best_paths(problem.without(*own), 1, DEMANDS_EFFORT).paths if own else []
    best = best_paths(problem, 1, DEMANDS_EFFORT).paths if free and not keeps(free[0].tasks, own) else []
    costs = relaxation_costs(problem, best[0].worth, own, DEMANDS_EFFORT) if best else []
    amounts = ((demand.name, more(worth, context.intake.gain_usd)) for demand, worth in costs)
    return tuple(f"{name}: without it the best chain would {amount}" for name, amount in amounts)


def more(worth: float, gain_usd: float | None) -> str:
    """Says how much more a plan would be worth."""
    return f"earn {worth:.2f} USD more" if gain_usd is not None else f"succeed in {worth:.1%} more of the cases"


def why_not(problem: Problem) -> tuple[str, ...]:
    """Says which demands conflict and what would solve the conflict; empty where a path meets all demands."""
    why = infeasibility(problem, DEMANDS_EFFORT)
    if why is None:
        return ()
    mendable = any(is_mendable(d) for conflict in why.conflicts for d in conflict)
    return (
        *why.sentences,
        *(["conflict: time and success are those of chains, before branches and reviews"] if mendable else []),
    )


def _limits(context: RankingContext) -> list[Demand]:
    limits = context.requirements.constraints
    demands: list[Demand] = []
    if limits.max_cost_usd is not None:
        demands.append(Limit(f"max_cost_usd {limits.max_cost_usd:g}", "cost_usd", limits.max_cost_usd))
    if limits.max_duration_hours is not None:
        demands.append(
            Limit(
                f"max_duration_hours {limits.max_duration_hours:g}",
                "duration_ms",
                limits.max_duration_hours * MS_PER_HOUR,
            )
        )
    if limits.min_success is not None:
        demands.append(Limit(f"min_success {limits.min_success:g}", "success", limits.min_success))
    return demands


def _named(context: RankingContext) -> list[Demand]:
    """Returns the demands of the constraints that name tasks."""
    limits, tasks = context.requirements.constraints, context.requirements.names.tasks
    return [
        *(Contains(f"must_contain {name!r}", tasks(name)) for name in limits.must_contain),
        *(Avoids(f"must_not_contain {name!r}", tasks(name)) for name in limits.must_not_contain),
        *(Before(f"before {[first, second]}", ((tasks(first), tasks(second)),)) for first, second in limits.before),
        *(Contains(f"one_of {list(group)}", frozenset[str]().union(*map(tasks, group))) for group in limits.one_of),
        *(
            d
            for group in limits.exactly_one_of
            for d in _exactly_one(f"exactly_one_of {list(group)}", list(map(tasks, group)))
        ),
    ]


def _exactly_one(name: str, options: list[frozenset[str]]) -> tuple[Demand, Demand]:
    """Returns the demands for one of the options, and for no two of them.

    The second demand lets each of two options come before the other, which no path can keep.
    """
    both = tuple((a, b) for a in options for b in options if a is not b)
    return Contains(name, frozenset[str]().union(*options)), Before(f"{name} (not both)", both)


def _by_history(context: RankingContext) -> list[Demand]:
    known = context.draft.wfg.nodes.keys()
    order = tuple(
        (frozenset({a}), frozenset({b})) for a, b in sorted(context.requirements.order) if a in known and b in known
    )
    needed = [
        Contains(f"needed {either(group, context.draft.graph)}", group) for group in context.requirements.critical
    ]
    return [*needed, *([Before(HISTORY, order)] if order else [])]
