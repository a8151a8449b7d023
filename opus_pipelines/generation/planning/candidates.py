"""Plans and ranks workflows: paths of the Workflow Graph become plans, which are evaluated, refined and ranked.

The proposals of an Intention are often nearly the same. Each of the best plans therefore gets the further changes of
execution modes and reviews that cost least. The tasks stay the same, so that critical, demanded and forbidden tasks
stay as they are, and every limit that was kept is still kept. A step with a single execution mode does not change.

Optimising cost alone drops required controls (DESIGN 5): critical, demanded and forbidden tasks, the order and the
limits hold inside the search. Where no path meets all requirements, they are relaxed: first limits, then order, then
forbidden tasks, and critical tasks last; the candidates say which requirements conflict and what would solve it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.ids import canonical, make_id
from opus_pipelines.generation.decisions import WORDS, Applied
from opus_pipelines.generation.planning.confidence import with_confidence
from opus_pipelines.generation.planning.context import (
    DEMANDS_EFFORT,
    Candidate,
    Plan,
    Proposal,
    RankingContext,
    binding_demands,
    either,
    is_mendable,
    keeps_limits,
    problem_of,
    why_not,
)
from opus_pipelines.generation.planning.plans import PlanCacheKey, Planner
from opus_pipelines.generation.planning.ranking import LEAD_TIME
from opus_pipelines.generation.search.constraints import TimeChecks, late, violations
from opus_pipelines.generation.search.labels import BestPaths, ChosenPath, best_paths
from opus_pipelines.generation.search.local_search import Variations
from opus_pipelines.generation.search.problem import (
    Avoids,
    Before,
    Contains,
    Demand,
    Differs,
    Limit,
    Problem,
    keeps,
    select_diverse,
    swaps,
)
from opus_pipelines.intakes.decisions.record import WorkflowContent
from opus_pipelines.lwm.retrieval.requested_steps import required_reason
from opus_pipelines.lwm.workflow_graph import WfgEdge
from opus_pipelines.workflow.evaluation.cost import time_usd
from opus_pipelines.workflow.evaluation.reward import quantised
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode, Workflow, review_id

BASES = 4  # the best workflows of different tasks, whose variations are looked at


@dataclass
class _Pool:
    """Variations of one plan; `eligible` masks those that differ enough from every workflow chosen so far."""

    plan: Plan
    variations: Variations
    eligible: NDArray[np.bool_]

    def best(self) -> tuple[float, int]:
        """Returns the worth of the best eligible variation, and its number."""
        earned = np.where(self.eligible, self.variations.worth, -np.inf)
        number = int(np.argmax(earned)) if len(earned) else 0
        return (float(earned[number]) if len(earned) else -np.inf), number


def varied(planner: Planner, ranked: Sequence[Candidate]) -> list[Plan]:
    """Returns plans that complete the `ranked` candidates to the best `generation.k` that differ enough.

    The workflows are chosen one after the other: each is the best candidate or variation that differs enough from all
    chosen before it. All variations earn less than the first candidate.
    """
    settings = planner.context.settings.generation
    left = [c for c in ranked if c.feasible]
    if not left or settings.diversity > 0:  # the same tasks differ by no share of them
        return []
    pools = _pools(planner, left)
    chosen, plans = left[0].steps, list[Plan]()
    for _ in range(settings.k - 1):
        left = [c for c in left if swaps(c.steps, chosen) >= settings.least_swaps]
        for pool in pools:
            pool.eligible &= pool.variations.swaps_from(chosen) >= settings.least_swaps
        top = max(pools, key=lambda pool: pool.best()[0])
        earned, number = top.best()
        if earned > max((c.worth for c in left[:1]), default=-np.inf):
            chosen = top.variations.steps(number)
            plans.append(planner.vary(top.plan, top.variations.moves(number)))
        elif left:
            chosen = left[0].steps
        else:
            break
    return plans


def of_different_tasks(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Returns the first candidate of every set of tasks."""
    firsts: dict[frozenset[str], Candidate] = {}
    for candidate in ranked:
        firsts.setdefault(frozenset(candidate.tasks), candidate)
    return list(firsts.values())


def _pools(planner: Planner, ranked: Sequence[Candidate]) -> list[_Pool]:
    bases = of_different_tasks(ranked)[:BASES]
    settings = planner.context.settings
    step, most = planner.context.ranking.step, settings.generation.least_swaps
    first = quantised(ranked[0].worth, step)
    variations = [
        (c.plan, planner.cache.variations(c.plan.refined_plan, most)) for c in bases if c.plan.refined_plan is not None
    ]
    return [_Pool(plan, v, np.rint(v.worth / step) < first) for plan, v in variations]


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


# The violation that names a critical task which a workflow lacks begins with this word.
NEEDED = "needed: "
_PLAN_TEXTS_KEPT = 1_024  # plans of which the text behind their ids is kept, some kB each


@dataclass(frozen=True)
class PlannedCandidates:
    """The plans of one Intention that are kept.

    Attributes:
        candidates: evaluated and refined, best first; each differs enough from every better one
            (`generation.search.problem`). There are more than `generation.k` where people rejected workflows.
        is_exhaustive: whether no better plan that differs enough was missed.
        key: tells the plan cache from which these plans and their Reward draws come.
    """

    candidates: tuple[Candidate, ...]
    is_exhaustive: bool
    key: PlanCacheKey


def plan_candidates(context: RankingContext) -> PlannedCandidates:
    """Returns the best plans for one Intention, best first (`RankingContext.ranking`).

    Each path that is proposed becomes a plan. The best plans of different tasks are refined, until the best
    `generation.k` of them have been refined. The first one is therefore the best plan of all; only the others have to
    differ from better ones. Plans that differ enough from better ones are added.
    """
    search = with_ranks_for_rejected(context)
    proposals = propose(search)
    planner = Planner(search, proposals.proposals)
    candidates = [evaluated(search, planner.plan(proposal), proposal.notes) for proposal in proposals.proposals]
    # Without outcomes conformity ranks, and no edit may trade it for a Reward that rests on priors.
    if context.evidence.completeness.consensus_tasks:
        candidates = [replace(c, plan=replace(c.plan, is_refined=True)) for c in candidates]
    while unrefined := [c for c in _of_different_tasks(search, candidates) if not c.plan.is_refined]:
        refined = {c.id: _refined(search, c, planner.refine(c.plan)) for c in unrefined}
        candidates = [refined.get(c.id, c) for c in candidates]
    if context.evidence.completeness.consensus_tasks:
        kept, is_all = _kept(search, candidates), True
    else:
        candidates += [evaluated(search, plan, plan.notes) for plan in varied(planner, _ordered(search, candidates))]
        kept, is_all = _filled(search, planner, proposals, candidates)
    return PlannedCandidates(tuple(_all_refined(search, planner, kept)), is_all, planner.cache.key)


def rank_candidates(context: RankingContext, planned: PlannedCandidates) -> list[tuple[int, Candidate]]:
    """Returns the `generation.k` best workflows with their ranks, from 1 on, and their confidence.

    A workflow that a person rejected is left out; one that a person accepted or wrote has rank 1.
    """
    planner = Planner(context, (), planned.key)
    decided = with_decisions(context, planned.candidates, lambda content: _decided(context, planner, content))
    compared = _with_distances(context, decided, planned.is_exhaustive)
    ranked = with_confidence(context, compared, planner.cache.draws)
    bound = [replace(c, plan=replace(c.plan, binding=(*c.plan.binding, *binding_demands(context)))) for c in ranked[:1]]
    return list(enumerate([*bound, *ranked[1:]], start=1))


def ranked_candidates(context: RankingContext) -> list[tuple[int, Candidate]]:
    """Plans and ranks: the two stages in one call."""
    return rank_candidates(context, plan_candidates(context))


def _filled(
    context: RankingContext, planner: Planner, proposals: Proposals, candidates: list[Candidate]
) -> tuple[list[Candidate], bool]:
    """Returns the best `k` candidates that differ enough, and whether no better ones were missed.

    The search knows all paths down to a worth. A candidate below that worth is replaced by the best path that differs
    enough from all candidates above it.
    """
    settings, known_worth, is_all = context.settings.generation, proposals.known_worth, True
    kept = _kept(context, candidates)
    for _ in range(2 * settings.k):
        sure = next((place for place, c in enumerate(kept) if place and c.worth < known_worth), len(kept))
        if sure == settings.k or not sure or known_worth == -math.inf:
            break
        proposal, known_worth, exact = proposals.further([c.tasks for c in kept[:sure]], settings.least_swaps)
        is_all &= exact
        if proposal is not None:
            more = evaluated(context, planner.plan(proposal), proposal.notes)
            now = _kept(context, [*candidates, more])
            candidates, kept = ([*candidates, more], now) if now[0] is kept[0] else (candidates, kept)
    return kept, is_all


def _all_refined(context: RankingContext, planner: Planner, kept: Sequence[Candidate]) -> list[Candidate]:
    """Refines each candidate, unless it then differs too little from another one or overtakes the first."""
    candidates = list(kept)
    for place, unrefined in enumerate(kept):
        if not unrefined.plan.is_refined:
            refined = _refined(context, unrefined, planner.refine(unrefined.plan))
            ordered = _kept(context, [*candidates[:place], refined, *candidates[place + 1 :]])
            candidates[place] = refined if len(ordered) == len(kept) and ordered[0] is candidates[0] else unrefined
    return _kept(context, candidates)


def _refined(context: RankingContext, candidate: Candidate, plan: Plan) -> Candidate:
    """Returns the candidate with its refined plan; it is evaluated anew only where the workflow changed."""
    if plan.workflow == candidate.workflow:
        return replace(candidate, plan=plan)
    return evaluated(context, plan, plan.notes)


def _decided(context: RankingContext, planner: Planner, content: WorkflowContent) -> tuple[Candidate, tuple[str, ...]]:
    """Returns the workflow that a person chose, evaluated like any other, and what had to be changed in it."""
    plan, changed = planner.plan_decided(content)
    return evaluated(context, plan), changed


def _ordered(context: RankingContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    return [candidate for _, candidate in context.ranking.rank(candidates)]


def _of_different_tasks(context: RankingContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    return of_different_tasks(_ordered(context, candidates))[: context.settings.generation.k]


def _with_distances(context: RankingContext, kept: Sequence[Candidate], is_all: bool) -> list[Candidate]:
    """Adds the distance in swaps from the nearest better candidate, and why there are fewer than `k` candidates."""
    settings = context.settings.generation
    fewer = None
    if len(kept) < settings.k:
        reason = "no other was found" if is_all else "the search ended before another was found"
        plural = "s" if settings.least_swaps > 1 else ""
        share = f" and by {settings.diversity:g} of its tasks" if settings.diversity else ""
        fewer = (
            f"{reason} that keeps what these keep and differs from each of them in "
            f"{settings.least_swaps} step{plural}{share}"
        )
    return [
        replace(c, differs_by=min((swaps(c.steps, better.steps) for better in kept[:place]), default=None), fewer=fewer)
        for place, c in enumerate(kept)
    ]


def _kept(context: RankingContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    settings = context.settings.generation
    return select_diverse(_ordered(context, candidates), settings.least_swaps, settings.diversity)[: settings.k]


def evaluated(context: RankingContext, plan: Plan, notes: Sequence[str] = ()) -> Candidate:
    """Evaluates a plan: Reward, scores and Penalty, violations, lead time in ms and conformity.

    `notes` are added to the violations where there are any.
    """
    assert plan.worth is not None
    assert plan.measured is not None
    worth, (scores, penalties) = plan.worth, plan.measured
    lacking = [
        f"{NEEDED}{either(group, context.draft.graph)} is left out, and {_because(group, context)}"
        for group in context.requirements.critical
        if not group & set(plan.tasks)
    ]
    titles = [context.draft.graph.tasks[t].title for t in plan.tasks]
    times = context.draft.lead_times
    lead_time = times.of(plan.workflow) if times else None
    compared_ms = (
        times.compared_ms(plan.workflow, lead_time)
        if times and lead_time and LEAD_TIME in context.ranking.criteria
        else 0.0
    )
    deadline_checks = (
        times.deadline_checks(plan.workflow, context.requirements.constraints.deadlines, context.requirements.names)
        if times
        else ()
    )
    rules, checks = context.requirements.rules, TimeChecks(lead_time, deadline_checks)
    broken = violations(context.requirements.constraints, worth, titles, context.requirements.names.titles, checks)
    missed = late(context.requirements.constraints, checks)
    broken, missed = ([rules.with_source(violation) for violation in found] for found in (broken, missed))
    conformity, order_conformity = context.evidence.completeness.conformity(plan.tasks)
    return Candidate(
        _id(context, plan),
        plan,
        worth,
        path_cost_usd=sum(_path_cost_usd(context, node) for node in plan.workflow.tasks),
        transitions=_transitions(context, plan.tasks),
        violations=(*lacking, *broken, *notes) if lacking or broken else (),
        risks=tuple(missed) if not lacking and broken == missed else (),
        sequence_ids=_behind(plan.tasks, context.draft.sequences),
        scores=scores,
        penalties=penalties,
        conformity=conformity,
        order_conformity=order_conformity,
        lead_time=lead_time,
        deadline_checks=deadline_checks,
        has_optional=not context.optional.isdisjoint(plan.tasks),
        compared_lead_ms=compared_ms,
    )


def _because(group: frozenset[str], context: RankingContext) -> str:
    """Says why a group of tasks is critical."""
    expected, is_requested = (
        context.evidence.completeness.consensus,
        context.evidence.procedure and group & set(context.evidence.procedure.tasks),
    )
    if not context.evidence.completeness.consensus_tasks or expected is None or is_requested:
        return required_reason(group, context.evidence.procedure)
    return f"{max(expected.support.get(t, 0.0) for t in group):.0%} of the similar cases did it"


def _id(context: RankingContext, plan: Plan) -> str:
    """Returns an id made of the tasks, their actors, the reviews and the edges."""
    return make_id("f", context.intention_id, *_content(plan.workflow, plan.tasks))


@lru_cache(_PLAN_TEXTS_KEPT)
def _content(workflow: Workflow, tasks: tuple[str, ...]) -> tuple[str, str]:
    """Returns the steps and the edges of a plan as canonical JSON; many intakes of a contract have the same plans."""
    nodes = [node for n in Plan(workflow, tasks).nodes if isinstance(node := workflow.by_id[n], TaskNode)]
    return canonical([(t.id, t.actor_kind, t.model, t.actor_group) for t in nodes]), canonical(workflow.edges)


def _path_cost_usd(context: RankingContext, node: TaskNode) -> float:
    """Returns C(t) of LWM (12); reviews have one, too."""
    return node.cost_usd + time_usd(node.duration_ms, context.cost)


def _transitions(context: RankingContext, tasks: Sequence[str]) -> int:
    return sum(edge.transitions for pair in pairwise(tasks) if (edge := context.draft.wfg.edges.get(pair)))


def _behind(tasks: tuple[str, ...], sequences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the sequences with the same tasks in the same order; without one, those that share an edge."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))


def with_decisions(
    context: "RankingContext",
    candidates: Sequence["Candidate"],
    build: Callable[[WorkflowContent], "tuple[Candidate, tuple[str, ...]]"],
) -> list["Candidate"]:
    """Returns the best candidates without the rejected ones; the workflow that a person chose comes first.

    `build` evaluates a workflow and says what had to be changed in it.
    """
    decided, settings = context.evidence.decided, context.settings
    left = [c for c in candidates if signature_of(c) not in decided.rejected][: settings.generation.k]
    chosen = decided.chosen
    if chosen is None:
        return left
    kind = WORDS[chosen.decision]
    if decided.content is None:
        note = (
            f"the workflow that was {kind} ({chosen.workflow_id}, decision {chosen.number}) can no "
            f"longer be built: {decided.gone}"
        )
        return [replace(c, decision=Applied(None, chosen.number, note=note)) if c is left[0] else c for c in left]
    own, changed = build(decided.content)
    others = [c for c in left if c.id != own.id and signature_of(c) != signature_of(own)]
    applied = Applied(kind, chosen.number, chosen.why, chosen.decided_by, "; ".join(changed) or None)
    ranking = context.ranking
    if others and ranking.is_better(others[0], own):
        applied = replace(
            applied, better_id=others[0].id, better_usd=others[0].worth - own.worth if ranking.has_gain else None
        )
    return [replace(own, decision=applied), *others][: settings.generation.k]


def signature_of(candidate: "Candidate") -> tuple[Any, ...]:
    """Returns the signature of a candidate, which compares with `WorkflowContent.signature`."""
    steps = candidate.steps
    if candidate.plan.refined_plan is not None:
        return steps, frozenset(candidate.plan.refined_plan.state.order.pairs())
    return steps, frozenset(WorkflowContent(candidate.tasks, _waits(candidate), {}).order.pairs())


def _waits(candidate: "Candidate") -> frozenset[tuple[str, str]]:
    """Returns the pairs (a, b) of tasks such that b directly waits for a, with reviews left out."""
    behind = {review_id(task): task for task in candidate.tasks}
    pairs = ((behind.get(a, a), behind.get(b, b)) for a, b in candidate.workflow.edges)
    return frozenset((a, b) for a, b in pairs if a != b and a in candidate.tasks and b in candidate.tasks)


def with_ranks_for_rejected(context: "RankingContext") -> "RankingContext":
    """Returns the context with one more rank for each rejected workflow.

    Rejected workflows are planned like any other and then taken out. So the workflows in their place differ from them
    as much as ranked workflows must differ from each other.
    """
    more = len(context.evidence.decided.rejected)
    if not more:
        return context
    settings = context.settings.generation
    wider = settings.model_copy(update={"k": settings.k + more})
    return replace(context, settings=context.settings.model_copy(update={"generation": wider}))
