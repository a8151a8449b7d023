"""Proposes the tasks, order and execution modes of plans: the paths that are worth most, and those of history.

Optimising cost alone drops required controls (DESIGN 5): critical, demanded and forbidden tasks, the order and the
limits hold inside the search. Where no path meets all requirements, they are relaxed: first limits, then order, then
forbidden tasks, and critical tasks last; the candidates say which requirements conflict and what would solve it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opus_pipelines.generation.planning.ranking_context import Proposal, RankingContext
from opus_pipelines.generation.planning.search_constraints import (
    DEMANDS_EFFORT,
    is_mendable,
    keeps_limits,
    problem_of,
    why_not,
)
from opus_pipelines.generation.search.label_search import BestPaths, ChosenPath, best_paths
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Demand, Differs, Limit, Problem, keeps
from opus_pipelines.lwm.workflow_graph import WfgEdge
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode

PATHS_PER_RANK = 4  # paths that become plans for every rank: shape, reviews and Penalty change their order
FURTHER = 500  # labels that the search for a path unlike those ranked above it may expand
_KINDS = ((Limit,), (Before,), (Avoids,), (Limit, Before), (Limit, Avoids), (Before, Avoids), (Limit, Before, Avoids))


@dataclass(frozen=True)
class _Level:
    """The requirements that hold at one level of relaxation, and the best paths under them."""

    problem: Problem
    best: BestPaths


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
            best = best_paths(replace(self.problem, demands=demands), 1, FURTHER)
            for path in best.paths:
                return Proposal(path.tasks, _modes(path), like.gap, like.notes), path.worth, best.exact
        return None, -math.inf, best.exact


def propose(context: RankingContext) -> Proposals:
    """Proposes the best paths, and those sequences of history that meet the requirements."""
    problem = problem_of(context)
    most = context.settings.generation.k * PATHS_PER_RANK
    level, kept_all = _relaxed(problem, most)
    notes = () if kept_all else why_not(problem)
    paths = {path.tasks: _modes(path) for path in level.best.paths}
    without = best_paths(
        replace(level.problem, demands=(*level.problem.demands, Avoids("optional steps", context.optional))),
        1,
        DEMANDS_EFFORT,
    )
    paths |= {path.tasks: _modes(path) for path in without.paths if path.tasks not in paths}
    for tasks in sorted(set(context.draft.sequences.values()) - paths.keys()):
        if (nodes := _history(level.problem, tasks)) is not None:
            paths[tasks] = nodes
    proposals = [Proposal(tasks, nodes, level.best.gap, notes) for tasks, nodes in sorted(paths.items())]
    problem = level.problem
    if not any(keeps_limits(path, problem) for path in level.best.paths):
        problem = problem.without(*filter(is_mendable, problem.demands))
    fitting = [path.worth for path in level.best.paths if keeps_limits(path, problem)]
    is_all = not proposals or (level.best.exact and len(fitting) < most)
    return Proposals(proposals, problem, -math.inf if is_all else min(fitting, default=math.inf), _idle(context))


def _idle(context: RankingContext) -> frozenset[str]:
    done = {t for case in context.evidence.cases if case.success is not False for t in case.tasks}
    return frozenset(context.draft.prices.nodes) - done - frozenset[str]().union(*context.required)


def _relaxed(required: Problem, k: int) -> tuple[_Level, bool]:
    """Returns the best paths under all requirements, and whether no requirement had to be relaxed.

    Where no path meets all of them, as many hold as some path meets. Time and success are limits of a plan, not of its
    chain: parallel branches save time, reviews raise success. The best paths without these two limits are therefore
    proposed together with those whose chains keep them.
    """
    for level, demands in enumerate(_levels(required)):
        problem = replace(required, demands=tuple(demands))
        loose = problem.without(*(d for d in demands if is_mendable(d)))
        best = best_paths(loose, k, DEMANDS_EFFORT)
        if loose.demands != problem.demands and not all(keeps_limits(path, problem) for path in best.paths):
            strict = best_paths(problem, k, DEMANDS_EFFORT)
            best = BestPaths(
                _once([*strict.paths, *best.paths]),
                strict.exact and best.exact,
                strict.gap if strict.paths else best.gap,
            )
            if best.paths:
                return _Level(problem, best), not level and bool(strict.paths)
        if best.paths:
            return _Level(problem, best), not level
    return _Level(replace(required, demands=()), best_paths(replace(required, demands=()), k, DEMANDS_EFFORT)), False


def _levels(required: Problem) -> Iterable[list[Demand]]:
    """Yields fewer and fewer of the demands.

    First groups that no path has are left out, then one kind of demand, two kinds, and all three. At last only groups
    remain, as many as some path has together.
    """
    yield list(required.demands)
    left = [d for d in required.demands if not isinstance(d, Contains) or _is_kept(required, [d])]
    if len(left) < len(required.demands):
        yield left
    for kinds in _KINDS:
        yield [d for d in left if not isinstance(d, kinds)]
    held: list[Demand] = []
    for group in (d for d in left if isinstance(d, Contains)):
        if _is_kept(required, [*held, group]):
            held.append(group)
    yield held


def _is_kept(required: Problem, demands: Sequence[Demand]) -> bool:
    return bool(best_paths(replace(required, demands=tuple(demands), objective="cost_usd"), 1, DEMANDS_EFFORT).paths)


def _once(paths: Sequence[ChosenPath]) -> list[ChosenPath]:
    """Returns each path once, as it first occurs."""
    return list({path.tasks: path for path in reversed(paths)}.values())[::-1]


def _modes(path: ChosenPath) -> Mapping[str, TaskNode]:
    return dict(zip(path.tasks, path.nodes, strict=True))


def _history(problem: Problem, tasks: tuple[str, ...]) -> Mapping[str, TaskNode] | None:
    """Returns the best execution modes of a sequence of history: within the limits, else without them.

    Returns None where the sequence does not meet the demands on its tasks and their order.
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
    best = best_paths(chain, 1, DEMANDS_EFFORT).paths or best_paths(chain.without(*limits), 1, DEMANDS_EFFORT).paths
    return _modes(best[0]) if best else None
