"""Proposes the tasks, order and execution modes of plans: the paths that are worth most, and those of history.

Optimising cost alone drops required controls (DESIGN 5): critical, demanded and forbidden tasks, the order and the
limits hold inside the search. Where no path meets all requirements, they are relaxed: first limits, then order, then
forbidden tasks, and critical tasks last; the candidates say which requirements conflict and what would solve it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opus_pipelines.lwm.workflow_graph import WfgEdge
from opus_pipelines.optimization.label_search import BestPaths, ChosenPath, best_paths
from opus_pipelines.optimization.problem import Avoids, Before, Contains, Demand, Differs, Limit, Problem, keeps
from opus_pipelines.planning.ranking_context import Proposal, RankingContext
from opus_pipelines.planning.search_constraints import EFFORT, is_mendable, keeps_limits, problem_of, why_not
from opus_pipelines.workflow.model import TaskNode
from opus_pipelines.workflow.task_order import INPUT, OUTPUT

PATHS_PER_RANK = 4  # paths looked at for every workflow that is kept: shape, reviews and Penalty order them anew
FURTHER = 500  # labels that a search for a workflow unlike those ranked above it may look at
_KINDS = ((Limit,), (Before,), (Avoids,), (Limit, Before), (Limit, Avoids), (Before, Avoids), (Limit, Before, Avoids))


@dataclass(frozen=True)
class _Level:
    """The requirements that hold at one level of relaxation, and the best paths under them."""

    problem: Problem
    found: BestPaths


@dataclass(frozen=True)
class Proposals:
    """The proposed paths of one Intention.

    Attributes:
        proposals: the paths, in the order of their tasks' ids.
        problem: the requirements that they meet.
        known_worth: every path that meets the requirements and is worth more is among the proposals; minus infinity
            where all paths are.
        idle: tasks that nothing asks for and that no similar case without failure has.
    """

    proposals: list[Proposal]
    problem: Problem
    known_worth: float
    idle: frozenset[str] = frozenset()

    def further(self, kept: Sequence[Sequence[str]], least: int) -> tuple[Proposal | None, float, bool]:
        """Returns the best path that differs from each path in `kept` by `least` swaps of tasks or more.

        Its worth, and whether the search was exact, come with it. It has no idle steps where that is possible: the
        success model takes whatever has a q above 0 for a repair of what went wrong before.
        """
        others = [Differs(f"unlike {n}", frozenset(tasks), least) for n, tasks in enumerate(kept, start=1)]
        like = self.proposals[0]
        for avoided in (self.idle, frozenset[str]()):
            demands = (*self.problem.demands, *others, Avoids("idle steps", avoided))
            found = best_paths(replace(self.problem, demands=demands), 1, FURTHER)
            for path in found.paths:
                return Proposal(path.tasks, _ways(path), like.gap, like.notes), path.worth, found.exact
        return None, -math.inf, found.exact


def propose(context: RankingContext) -> Proposals:
    """Proposes the best paths, and those sequences of history that meet the requirements."""
    asked = problem_of(context)
    most = context.settings.generation.k * PATHS_PER_RANK
    level, kept_all = _found(asked, most)
    notes = () if kept_all else why_not(asked)
    made = {path.tasks: _ways(path) for path in level.found.paths}
    without = best_paths(
        replace(level.problem, demands=(*level.problem.demands, Avoids("optional steps", context.optional))),
        1,
        EFFORT,
    )
    made |= {path.tasks: _ways(path) for path in without.paths if path.tasks not in made}
    for tasks in sorted(set(context.draft.sequences.values()) - made.keys()):
        if (nodes := _history(level.problem, tasks)) is not None:
            made[tasks] = nodes
    found = [Proposal(tasks, nodes, level.found.gap, notes) for tasks, nodes in sorted(made.items())]
    problem = level.problem
    if not any(keeps_limits(path, problem) for path in level.found.paths):
        problem = problem.without(*filter(is_mendable, problem.demands))
    fitting = [path.worth for path in level.found.paths if keeps_limits(path, problem)]
    is_all = not found or (level.found.exact and len(fitting) < most)
    return Proposals(found, problem, -math.inf if is_all else min(fitting, default=math.inf), _idle(context))


def _idle(context: RankingContext) -> frozenset[str]:
    done = {t for case in context.evidence.cases if case.success is not False for t in case.tasks}
    return frozenset(context.draft.prices.nodes) - done - frozenset[str]().union(*context.required)


def _found(asked: Problem, k: int) -> tuple[_Level, bool]:
    """The best paths with all that is asked; where there is none, with as much of it as some path keeps; and whether
    it is all.

    Time and success are limits of a plan, not of the chain: parallel branches save time, reviews raise success. So the
    best paths without these two are offered beside those that keep them as chains.
    """
    for level, demands in enumerate(_levels(asked)):
        problem = replace(asked, demands=tuple(demands))
        loose = problem.without(*(d for d in demands if is_mendable(d)))
        found = best_paths(loose, k, EFFORT)
        if loose.demands != problem.demands and not all(keeps_limits(path, problem) for path in found.paths):
            strict = best_paths(problem, k, EFFORT)
            found = BestPaths(
                _once([*strict.paths, *found.paths]),
                strict.exact and found.exact,
                strict.gap if strict.paths else found.gap,
            )
            if found.paths:
                return _Level(problem, found), not level and bool(strict.paths)
        if found.paths:
            return _Level(problem, found), not level
    return _Level(replace(asked, demands=()), best_paths(replace(asked, demands=()), k, EFFORT)), False


def _levels(asked: Problem) -> Iterable[list[Demand]]:
    """Less and less of what is asked: without groups that no path holds, without one kind of demand, without two,
    without all three.

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


def _once(paths: Sequence[ChosenPath]) -> list[ChosenPath]:
    """Each path once, as it first occurs."""
    return list({path.tasks: path for path in reversed(paths)}.values())[::-1]


def _ways(path: ChosenPath) -> Mapping[str, TaskNode]:
    return dict(zip(path.tasks, path.nodes, strict=True))


def _history(problem: Problem, tasks: tuple[str, ...]) -> Mapping[str, TaskNode] | None:
    """The best ways of a sequence of history: within the limits, else without them; None where it does not hold what
    is asked.
    """
    if not keeps(tasks, problem.demands):
        return None
    ends = [INPUT, *tasks, OUTPUT]
    edges = {
        pair: problem.wfg.edges.get(pair) or WfgEdge(*pair, "history", None, 1.0, 0, ()) for pair in pairwise(ends)
    }
    chain = replace(
        problem, wfg=replace(problem.wfg, nodes={n: problem.wfg.nodes[n] for n in sorted(ends)}, edges=edges)
    )
    limits = [d for d in problem.demands if isinstance(d, Limit)]
    found = best_paths(chain, 1, EFFORT).paths or best_paths(chain.without(*limits), 1, EFFORT).paths
    return _ways(found[0]) if found else None
