"""Plans and ranks workflows: paths of the Workflow Graph become plans, which are evaluated, refined and ranked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from opus_pipelines.core.ids import canonical, make_id
from opus_pipelines.generation.planning.alternatives import of_different_tasks, varied
from opus_pipelines.generation.planning.confidence import with_confidence
from opus_pipelines.generation.planning.plan_cache import PlanCacheKey
from opus_pipelines.generation.planning.plans import Planner
from opus_pipelines.generation.planning.proposals import Proposals, propose
from opus_pipelines.generation.planning.ranking_context import Candidate, Plan, RankingContext, either
from opus_pipelines.generation.planning.search_constraints import binding_demands
from opus_pipelines.generation.planning.standing_decisions import with_decisions, with_ranks_for_rejected
from opus_pipelines.generation.search.constraints import TimeChecks, violations
from opus_pipelines.generation.search.diversity import select_diverse, swaps
from opus_pipelines.generation.search.reward_ranking import LEAD_TIME
from opus_pipelines.intakes.decisions.record import WorkflowContent
from opus_pipelines.lwm.retrieval.requested_steps import required_reason
from opus_pipelines.workflow.evaluation.cost import time_usd
from opus_pipelines.workflow.model import TaskNode, Workflow

# The violation that names a critical task which a workflow lacks begins with this word.
NEEDED = "needed: "
_PLAN_TEXTS_KEPT = 1_024  # plans of which the text behind their ids is kept, some kB each


@dataclass(frozen=True)
class PlannedCandidates:
    """The plans of one Intention that are kept.

    Attributes:
        candidates: evaluated and refined, best first; each differs enough from every better one
            (`generation.search.diversity`). There are more than `generation.k` where people rejected workflows.
        is_exhaustive: whether no better plan that differs enough was missed.
        key: tells the plan cache from which these plans and their Reward draws come.
    """

    candidates: tuple[Candidate, ...]
    is_exhaustive: bool
    key: PlanCacheKey


def plan_candidates(context: RankingContext) -> PlannedCandidates:
    """Returns the best plans for one Intention, best first (`RankingContext.ranking`).

    Each path that is proposed becomes a plan. The best plans of different tasks are refined until the best
    `generation.k` of them are: the first is then the best plan, however much the others must differ from it. Plans that
    differ enough from better ones are added.
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
    broken = violations(
        context.requirements.constraints,
        worth,
        titles,
        context.requirements.names.titles,
        TimeChecks(lead_time, deadline_checks),
    )
    broken = [context.requirements.rules.with_source(violation) for violation in broken]
    conformity, order_conformity = context.evidence.completeness.conformity(plan.tasks)
    return Candidate(
        _id(context, plan),
        plan,
        worth,
        path_cost_usd=sum(_path_cost_usd(context, node) for node in plan.workflow.tasks),
        transitions=_transitions(context, plan.tasks),
        violations=(*lacking, *broken, *notes) if lacking or broken else (),
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
