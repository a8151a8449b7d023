"""Which tasks a candidate has, in which order and in which ways: the paths of the Workflow Graph that earn most, and history's own.

The cheapest path is a trap (DESIGN 5): what is needed, demanded and forbidden, the order and the limits hold inside the search. Where
nothing keeps them all, less is asked: limits go first, then order, then what is forbidden, and what is needed last of all; the
candidates say which demands conflict and what would mend it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opus_pipelines.evaluation.cost import MS_PER_HOUR
from opus_pipelines.generation.situation import Proposal, Situation, either
from opus_pipelines.optimization.bounded import BestPaths, ChosenPath, best_paths
from opus_pipelines.optimization.problem import Avoids, Before, Contains, Demand, Differs, Limit, Problem, keeps
from opus_pipelines.optimization.relax import infeasible, what_they_cost
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WfgEdge
from opus_pipelines.workflow.model import TaskNode

PATHS_PER_RANK = 4  # paths looked at for every workflow that is kept: shape, reviews and Penalty order them anew
EFFORT = 3_000      # labels a search may look at: an intake's time is bounded, and what a search left open is told as its gap
FURTHER = 500       # likewise, of one for a workflow unlike those that are ranked above it
HISTORY = "the order of history"
_KINDS = ((Limit,), (Before,), (Avoids,), (Limit, Before), (Limit, Avoids), (Before, Avoids), (Limit, Before, Avoids))


@dataclass(frozen=True)
class _Level:
    """What is asked, and what was found with it."""

    problem: Problem
    found: BestPaths


@dataclass(frozen=True)
class Proposed:
    """`proposals` in the order of their tasks' ids. `problem`: what was asked of them.

    `known_usd`: every path that keeps it and is worth more is among them; minus infinity where all are. `idle`: tasks that nothing asks
    for and that no near case which did not fail has done.
    """

    proposals: list[Proposal]
    problem: Problem
    known_usd: float
    idle: frozenset[str] = frozenset()

    def further(self, kept: Sequence[Sequence[str]], least: int) -> tuple[Proposal | None, float, bool]:
        """The best path that differs from each of these by at least so many swaps of tasks, what it is worth, whether none is worth more.

        Without idle steps where that is possible: the success model takes whatever has a q above 0 for a repair of what went wrong before.
        """
        others = [Differs(f"unlike {n}", frozenset(tasks), least) for n, tasks in enumerate(kept, start=1)]
        like = self.proposals[0]
        for avoided in (self.idle, frozenset[str]()):
            demands = (*self.problem.demands, *others, Avoids("idle steps", avoided))
            found = best_paths(replace(self.problem, demands=demands), 1, FURTHER)
            for path in found.paths:
                return Proposal(path.tasks, _ways(path), like.gap_usd, like.notes), path.worth, found.exact
        return None, -math.inf, found.exact


def proposals(situation: Situation) -> list[Proposal]:
    """Every proposal, in the order of its tasks' ids."""
    return proposed(situation).proposals


def proposed(situation: Situation) -> Proposed:
    """The best paths and what history did of all that keeps what is asked, and how to ask for more."""
    asked = problem_of(situation)
    most = situation.settings.generation.k * PATHS_PER_RANK
    level, kept_all = _found(asked, most)
    notes = () if kept_all else why_not(asked)
    made = {path.tasks: _ways(path) for path in level.found.paths}
    for tasks in sorted(set(situation.sequences.values()) - made.keys()):
        if (nodes := _history(level.problem, tasks)) is not None:
            made[tasks] = nodes
    found = [Proposal(tasks, nodes, level.found.gap, notes) for tasks, nodes in sorted(made.items())]
    problem = level.problem
    if not any(_keeps(path, problem) for path in level.found.paths):
        problem = problem.without(*filter(_is_mendable, problem.demands))
    fitting = [path.worth for path in level.found.paths if _keeps(path, problem)]
    is_all = not found or (level.found.exact and len(fitting) < most)
    return Proposed(found, problem, -math.inf if is_all else min(fitting, default=math.inf), _idle(situation))


def _idle(situation: Situation) -> frozenset[str]:
    done = {t for case in situation.cases if case.success is not False for t in case.tasks}
    return frozenset(situation.prices.nodes) - done - frozenset[str]().union(*situation.required)


def problem_of(situation: Situation) -> Problem:
    """What is asked of a path: Reward, within everything that history needs and the intake demands."""
    return Problem(
        situation.wfg, situation.prices.nodes, situation.cost, situation.intake.gain_usd,
        demands=(*_limits(situation), *_named(situation), *_by_history(situation)),
    )


def binding(situation: Situation) -> tuple[str, ...]:
    """Of each demand of the intake on tasks and order that binds: what the best chain would earn more without it, in words.

    Time and success are left out of it, as for `proposals`; what the limits cost a workflow is said of its own steps (`why`).
    """
    problem = problem_of(situation)
    problem = problem.without(*(d for d in problem.demands if _is_mendable(d)))
    own = _named(situation)
    free = best_paths(problem.without(*own), 1, EFFORT).paths if own else []
    best = best_paths(problem, 1, EFFORT).paths if free and not keeps(free[0].tasks, own) else []
    costs = what_they_cost(problem, best[0].worth, own, EFFORT) if best else []
    return tuple(f"{demand.name}: without it the best chain would earn {usd:.2f} USD more" for demand, usd in costs)


def why_not(problem: Problem) -> tuple[str, ...]:
    """Which demands conflict, and what would mend it, in sentences; none where something keeps them all."""
    why = infeasible(problem, EFFORT)
    if why is None:
        return ()
    mendable = any(_is_mendable(d) for conflict in why.conflicts for d in conflict)
    return (*why.sentences, *(["conflict: time and success are those of chains, before branches and reviews"] if mendable else []))


def _limits(situation: Situation) -> list[Demand]:
    limits = situation.constraints
    found: list[Demand] = []
    if limits.max_cost_usd is not None:
        found.append(Limit(f"max_cost_usd {limits.max_cost_usd:g}", "cost_usd", limits.max_cost_usd))
    if limits.max_duration_hours is not None:
        found.append(Limit(f"max_duration_hours {limits.max_duration_hours:g}", "duration_ms", limits.max_duration_hours * MS_PER_HOUR))
    if limits.min_success is not None:
        found.append(Limit(f"min_success {limits.min_success:g}", "success", limits.min_success))
    return found


def _named(situation: Situation) -> list[Demand]:
    """What the constraints say of tasks."""
    limits, tasks = situation.constraints, situation.names.tasks
    return [
        *(Contains(f"must_contain {name!r}", tasks(name)) for name in limits.must_contain),
        *(Avoids(f"must_not_contain {name!r}", tasks(name)) for name in limits.must_not_contain),
        *(Before(f"before {[first, second]}", ((tasks(first), tasks(second)),)) for first, second in limits.before),
    ]


def _by_history(situation: Situation) -> list[Demand]:
    known = situation.wfg.nodes.keys()
    order = tuple((frozenset({a}), frozenset({b})) for a, b in sorted(situation.order) if a in known and b in known)
    needed = [Contains(f"needed {either(group, situation.graph)}", group) for group in situation.needed]
    return [*needed, *([Before(HISTORY, order)] if order else [])]


def _found(asked: Problem, k: int) -> tuple[_Level, bool]:
    """The best paths with all that is asked; where there is none, with as much of it as some path keeps; and whether it is all.

    Time and success are limits of a plan, not of the chain: parallel branches save time, reviews raise success. So the best paths
    without these two are offered beside those that keep them as chains.
    """
    for level, demands in enumerate(_levels(asked)):
        problem = replace(asked, demands=tuple(demands))
        loose = problem.without(*(d for d in demands if _is_mendable(d)))
        found = best_paths(loose, k, EFFORT)
        if loose.demands != problem.demands and not all(_keeps(path, problem) for path in found.paths):
            strict = best_paths(problem, k, EFFORT)
            found = BestPaths(_once([*strict.paths, *found.paths]), strict.exact and found.exact, strict.gap if strict.paths else found.gap)
            if found.paths:
                return _Level(problem, found), not level and bool(strict.paths)
        if found.paths:
            return _Level(problem, found), not level
    return _Level(replace(asked, demands=()), best_paths(replace(asked, demands=()), k, EFFORT)), False


def _is_mendable(demand: Demand) -> bool:
    """Whether a plan may keep it where the chain does not: branches save time, reviews raise success."""
    return isinstance(demand, Limit) and demand.figure != "cost_usd"


def _levels(asked: Problem) -> Iterable[list[Demand]]:
    """Less and less of what is asked: without groups that no path holds, without one kind of demand, without two, without all three.

    At last only groups are asked, as many as some path holds together.
    """
    yield list(asked.demands)
    left = [d for d in asked.demands if not isinstance(d, Contains) or _is_kept(asked, [d])]
    if len(left) < len(asked.demands):
        yield left
    for kinds in _KINDS:
        yield [d for d in left if not isinstance(d, kinds)]
    held: list[Demand] = []
    for group in (d for d in left if isinstance(d, Contains)):
        if _is_kept(asked, [*held, group]):
            held.append(group)
    yield held


def _is_kept(asked: Problem, demands: Sequence[Demand]) -> bool:
    return bool(best_paths(replace(asked, demands=tuple(demands), objective="cost_usd"), 1, EFFORT).paths)


def _keeps(path: ChosenPath, problem: Problem) -> bool:
    """Whether the chain keeps the limits."""
    figures = {"cost_usd": -path.cost_usd, "duration_ms": -path.duration_ms, "success": path.success}
    bounds = [(d.figure, d.value if d.figure == "success" else -d.value) for d in problem.demands if isinstance(d, Limit)]
    return all(figures[figure] >= bound - 1e-9 * abs(bound) for figure, bound in bounds)


def _once(paths: Sequence[ChosenPath]) -> list[ChosenPath]:
    """Each path once, as it first occurs."""
    return list({path.tasks: path for path in reversed(paths)}.values())[::-1]


def _ways(path: ChosenPath) -> Mapping[str, TaskNode]:
    return dict(zip(path.tasks, path.nodes, strict=True))


def _history(problem: Problem, tasks: tuple[str, ...]) -> Mapping[str, TaskNode] | None:
    """The best ways of a sequence of history: within the limits, else without them; None where it does not hold what is asked."""
    if not keeps(tasks, problem.demands):
        return None
    ends = [INPUT, *tasks, OUTPUT]
    edges = {pair: problem.wfg.edges.get(pair) or WfgEdge(*pair, "history", None, 1.0, 0, ()) for pair in pairwise(ends)}
    chain = replace(problem, wfg=replace(problem.wfg, nodes={n: problem.wfg.nodes[n] for n in sorted(ends)}, edges=edges))
    limits = [d for d in problem.demands if isinstance(d, Limit)]
    found = best_paths(chain, 1, EFFORT).paths or best_paths(chain.without(*limits), 1, EFFORT).paths
    return _ways(found[0]) if found else None
