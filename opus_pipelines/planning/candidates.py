"""From the Workflow Graph to ranked candidates: proposals, each worked out, evaluated, scored, held against what is
demanded, ranked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opus_pipelines.core.ids import make_id
from opus_pipelines.decisions.record import Content
from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.optimization.constraints import violations
from opus_pipelines.optimization.diversity import select_diverse, swaps
from opus_pipelines.optimization.reward_ranking import LEAD_TIME
from opus_pipelines.planning.alternatives import of_different_tasks, varied
from opus_pipelines.planning.confidence import with_confidence
from opus_pipelines.planning.plan_cache import PlanCacheKey
from opus_pipelines.planning.plans import Planner
from opus_pipelines.planning.proposals import Proposals, propose
from opus_pipelines.planning.ranking_context import Candidate, Plan, RankingContext, either
from opus_pipelines.planning.search_constraints import binding
from opus_pipelines.planning.standing_decisions import with_decisions, with_room
from opus_pipelines.retrieval.requested_steps import required_reason
from opus_pipelines.workflow.model import TaskNode

NEEDED = "needed: "  # how a violation begins that says which critical task is left out


@dataclass(frozen=True)
class PlannedCandidates:
    """The plans of one Intention that are kept.

    Attributes:
        candidates: evaluated and refined, best first; each differs enough from every better one
            (`optimization.diversity`). There are more than `generation.k` where people rejected workflows.
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
    search = with_room(context)
    asked = propose(search)
    planner = Planner(search, asked.proposals)
    found = [evaluated(search, planner.plan(proposal), proposal.notes) for proposal in asked.proposals]
    if (
        context.evidence.completeness.consensus_tasks
    ):  # no outcomes: conformity ranks, and no edit may trade it for a Reward that rests on priors
        found = [replace(c, plan=replace(c.plan, is_refined=True)) for c in found]
    while rough := [c for c in _of_different_tasks(search, found) if not c.plan.is_refined]:
        done = {c.id: _refined(search, c, planner.refined(c.plan)) for c in rough}
        found = [done.get(c.id, c) for c in found]
    if context.evidence.completeness.consensus_tasks:
        kept, is_all = _kept(search, found), True
    else:
        found += [evaluated(search, made, made.notes) for made in varied(planner, _ordered(search, found))]
        kept, is_all = _filled(search, planner, asked, found)
    return PlannedCandidates(tuple(_all_refined(search, planner, kept)), is_all, planner.shop.question)


def rank_candidates(context: RankingContext, planned: PlannedCandidates) -> list[tuple[int, Candidate]]:
    """Returns the `generation.k` best workflows with their ranks, from 1 on, and their confidence.

    A workflow that a person rejected is left out; one that a person accepted or wrote has rank 1.
    """
    planner = Planner(context, (), planned.key)
    decided = with_decisions(context, planned.candidates, lambda content: _decided(context, planner, content))
    compared = _told_apart(context, decided, planned.is_exhaustive)
    ranked = with_confidence(context, compared, planner.shop.draws)
    bound = [replace(c, plan=replace(c.plan, binding=(*c.plan.binding, *binding(context)))) for c in ranked[:1]]
    return list(enumerate([*bound, *ranked[1:]], start=1))


def ranked_candidates(context: RankingContext) -> list[tuple[int, Candidate]]:
    """Plans and ranks: the two stages in one call."""
    return rank_candidates(context, plan_candidates(context))


def _filled(
    context: RankingContext, planner: Planner, asked: Proposals, found: list[Candidate]
) -> tuple[list[Candidate], bool]:
    """The best `k` that differ enough, of these and of all paths; and whether no better ones were missed.

    What earns less than the search has looked down to gives way to the best path that differs enough from all that earn
    more.
    """
    knobs, known_worth, is_all = context.settings.generation, asked.known_worth, True
    kept = _kept(context, found)
    for _ in range(2 * knobs.k):
        sure = next((place for place, c in enumerate(kept) if place and c.worth < known_worth), len(kept))
        if sure == knobs.k or not sure or known_worth == -math.inf:
            break
        proposal, known_worth, exact = asked.further([c.tasks for c in kept[:sure]], knobs.least_swaps)
        is_all &= exact
        if proposal is not None:
            more = evaluated(context, planner.plan(proposal), proposal.notes)
            now = _kept(context, [*found, more])
            found, kept = ([*found, more], now) if now[0] is kept[0] else (found, kept)
    return kept, is_all


def _all_refined(context: RankingContext, planner: Planner, kept: Sequence[Candidate]) -> list[Candidate]:
    """The kept ones, each refined where it then still differs enough from all others and does not overtake the first."""
    found = list(kept)
    for place, rough in enumerate(kept):
        if not rough.plan.is_refined:
            made = _refined(context, rough, planner.refined(rough.plan))
            ordered = _kept(context, [*found[:place], made, *found[place + 1 :]])
            found[place] = made if len(ordered) == len(kept) and ordered[0] is found[0] else rough
    return _kept(context, found)


def _refined(context: RankingContext, candidate: Candidate, made: Plan) -> Candidate:
    """The candidate with its plan refined; where that changed nothing in the workflow, everything that is said of it
    stays.
    """
    if made.workflow == candidate.workflow:
        return replace(candidate, plan=made)
    return evaluated(context, made, made.notes)


def _decided(context: RankingContext, planner: Planner, content: Content) -> tuple[Candidate, tuple[str, ...]]:
    """The workflow that a person chose, by the same figures as any other, and what had to be changed in it."""
    made, changed = planner.decided(content)
    return evaluated(context, made), changed


def _ordered(context: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    return [candidate for _, candidate in context.ranking.rank(found)]


def _of_different_tasks(context: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    return of_different_tasks(_ordered(context, found))[: context.settings.generation.k]


def _told_apart(context: RankingContext, kept: Sequence[Candidate], is_all: bool) -> list[Candidate]:
    """Each with how far it lies from the nearest better one, and where they are fewer than `k`, why."""
    knobs = context.settings.generation
    fewer = None
    if len(kept) < knobs.k:
        found = "no other was found" if is_all else "the search ended before another was found"
        plural = "s" if knobs.least_swaps > 1 else ""
        share = f" and by {knobs.diversity:g} of its tasks" if knobs.diversity else ""
        fewer = f"{found} that keeps what these keep and differs from each of them in {knobs.least_swaps} step{plural}{share}"
    return [
        replace(c, differs_by=min((swaps(c.steps, better.steps) for better in kept[:place]), default=None), fewer=fewer)
        for place, c in enumerate(kept)
    ]


def _kept(context: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    knobs = context.settings.generation
    return select_diverse(_ordered(context, found), knobs.least_swaps, knobs.diversity)[: knobs.k]


def evaluated(context: RankingContext, made: Plan, notes: Sequence[str] = ()) -> Candidate:
    """A plan with everything that is said of it; `notes` join its violations where it has any."""
    assert made.worth is not None
    assert made.measured is not None
    worth, (scores, penalties) = made.worth, made.measured
    lacking = [
        f"{NEEDED}{either(group, context.draft.graph)} is left out, and {_because(group, context)}"
        for group in context.requirements.critical
        if not group & set(made.tasks)
    ]
    titles = [context.draft.graph.tasks[t].title for t in made.tasks]
    times = context.draft.lead_times
    lead_time = times.of(made.workflow) if times else None
    compared_ms = (
        times.compared_ms(made.workflow, lead_time)
        if times and lead_time and LEAD_TIME in context.ranking.criteria
        else 0.0
    )
    dues = (
        times.dues(made.workflow, context.requirements.constraints.deadlines, context.requirements.names)
        if times
        else ()
    )
    broken = violations(
        context.requirements.constraints, worth, titles, context.requirements.names.titles, lead_time, dues
    )
    broken = [context.requirements.rules.with_source(violation) for violation in broken]
    conformity, order_conformity = context.evidence.completeness.conformity(made.tasks)
    return Candidate(
        _id(context, made),
        made,
        worth,
        path_cost_usd=sum(_path_cost_usd(context, node) for node in made.workflow.tasks),
        transitions=_transitions(context, made.tasks),
        violations=(*lacking, *broken, *notes) if lacking or broken else (),
        sequence_ids=_behind(made.tasks, context.draft.sequences),
        scores=scores,
        penalties=penalties,
        conformity=conformity,
        order_conformity=order_conformity,
        lead_time=lead_time,
        dues=dues,
        has_optional=not context.optional.isdisjoint(made.tasks),
        compared_lead_ms=compared_ms,
    )


def _because(group: frozenset[str], context: RankingContext) -> str:
    """Why a group of tasks is critical, in words."""
    expected, asked = (
        context.evidence.completeness.consensus,
        context.evidence.procedure and group & set(context.evidence.procedure.tasks),
    )
    if not context.evidence.completeness.consensus_tasks or expected is None or asked:
        return required_reason(group, context.evidence.procedure)
    return f"{max(expected.support.get(t, 0.0) for t in group):.0%} of the similar cases did it"


def _id(context: RankingContext, made: Plan) -> str:
    """By its tasks, who does each, its reviews and which step waits for which."""
    steps = [
        (t.id, t.actor_kind, t.model, t.actor_group)
        for n in made.nodes
        if isinstance(t := made.workflow.by_id[n], TaskNode)
    ]
    return make_id("f", context.intention_id, steps, made.workflow.edges)


def _path_cost_usd(context: RankingContext, node: TaskNode) -> float:
    """C(t) of LWM (12), a review's among them."""
    return node.cost_usd + time_usd(node.duration_ms, context.cost)


def _transitions(context: RankingContext, tasks: Sequence[str]) -> int:
    return sum(edge.transitions for pair in pairwise(tasks) if (edge := context.draft.wfg.edges.get(pair)))


def _behind(tasks: tuple[str, ...], sequences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The sequences that are this very workflow; where none is, those that brought its edges."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))
