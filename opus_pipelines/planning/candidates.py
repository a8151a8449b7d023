"""From the Workflow Graph to ranked candidates: proposals, each worked out, evaluated, scored, held against what is
demanded, ranked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.core.ids import make_id
from opus_pipelines.decisions.record import Content
from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.optimization.constraints import violations
from opus_pipelines.optimization.diversity import select_diverse, swaps
from opus_pipelines.optimization.reward_ranking import LEAD_TIME
from opus_pipelines.planning.alternatives import of_different_tasks, varied
from opus_pipelines.planning.confidence import with_confidence
from opus_pipelines.planning.plans import Planner
from opus_pipelines.planning.proposals import Proposals, propose
from opus_pipelines.planning.ranking_context import Candidate, Plan, RankingContext, either
from opus_pipelines.planning.search_constraints import binding
from opus_pipelines.planning.standing_decisions import with_decisions, with_room
from opus_pipelines.retrieval.requested_steps import required_reason
from opus_pipelines.workflow.model import TaskNode

NEEDED = "needed: "  # how a violation begins that says which critical task is left out


def ranked_candidates(situation: RankingContext) -> list[tuple[int, Candidate]]:
    """The `generation.k` best workflows with their ranks (`Situation.ranking`), each far enough from every better one
    (`optimization.diversity`).

    Every proposal is worked out; the best of different tasks are refined, until the best `k` of these have been: the
    first of them is rank 1, however different the others must be. Then others that differ enough join. A workflow that
    a person rejected is left out, one that a person accepted or wrote is rank 1 (`decided`).
    """
    search = with_room(situation)
    asked = propose(search)
    planner = Planner(search, asked.proposals)
    found = [evaluated(search, planner.plan(proposal), proposal.notes) for proposal in asked.proposals]
    if (
        situation.complete.consensus_tasks
    ):  # no outcomes: conformity ranks, and no edit may trade it for a Reward that rests on priors
        found = [replace(c, plan=replace(c.plan, is_refined=True)) for c in found]
    while rough := [c for c in _of_different_tasks(search, found) if not c.plan.is_refined]:
        done = {c.id: _refined(search, c, planner.refined(c.plan)) for c in rough}
        found = [done.get(c.id, c) for c in found]
    if situation.complete.consensus_tasks:
        kept, is_all = _kept(search, found), True
    else:
        found += [evaluated(search, made, made.notes) for made in varied(planner, _ordered(search, found))]
        kept, is_all = _filled(search, planner, asked, found)
    decided = with_decisions(
        situation, _all_refined(search, planner, kept), lambda content: _decided(situation, planner, content)
    )
    ranked = with_confidence(situation, _told_apart(situation, decided, is_all), planner.shop.draws)
    bound = [replace(c, plan=replace(c.plan, binding=(*c.plan.binding, *binding(situation)))) for c in ranked[:1]]
    return list(enumerate([*bound, *ranked[1:]], start=1))


def _filled(
    situation: RankingContext, planner: Planner, asked: Proposals, found: list[Candidate]
) -> tuple[list[Candidate], bool]:
    """The best `k` that differ enough, of these and of all paths; and whether no better ones were missed.

    What earns less than the search has looked down to gives way to the best path that differs enough from all that earn
    more.
    """
    knobs, known_worth, is_all = situation.settings.generation, asked.known_worth, True
    kept = _kept(situation, found)
    for _ in range(2 * knobs.k):
        sure = next((place for place, c in enumerate(kept) if place and c.worth < known_worth), len(kept))
        if sure == knobs.k or not sure or known_worth == -math.inf:
            break
        proposal, known_worth, exact = asked.further([c.tasks for c in kept[:sure]], knobs.least_swaps)
        is_all &= exact
        if proposal is not None:
            more = evaluated(situation, planner.plan(proposal), proposal.notes)
            now = _kept(situation, [*found, more])
            found, kept = ([*found, more], now) if now[0] is kept[0] else (found, kept)
    return kept, is_all


def _all_refined(situation: RankingContext, planner: Planner, kept: Sequence[Candidate]) -> list[Candidate]:
    """The kept ones, each refined where it then still differs enough from all others and does not overtake the first."""
    found = list(kept)
    for place, rough in enumerate(kept):
        if not rough.plan.is_refined:
            made = _refined(situation, rough, planner.refined(rough.plan))
            ordered = _kept(situation, [*found[:place], made, *found[place + 1 :]])
            found[place] = made if len(ordered) == len(kept) and ordered[0] is found[0] else rough
    return _kept(situation, found)


def _refined(situation: RankingContext, candidate: Candidate, made: Plan) -> Candidate:
    """The candidate with its plan refined; where that changed nothing in the workflow, everything that is said of it
    stays.
    """
    if made.workflow == candidate.workflow:
        return replace(candidate, plan=made)
    return evaluated(situation, made, made.notes)


def _decided(situation: RankingContext, planner: Planner, content: Content) -> tuple[Candidate, tuple[str, ...]]:
    """The workflow that a person chose, by the same figures as any other, and what had to be changed in it."""
    made, changed = planner.decided(content)
    return evaluated(situation, made), changed


def _ordered(situation: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    return [candidate for _, candidate in situation.ranking.rank(found)]


def _of_different_tasks(situation: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    return of_different_tasks(_ordered(situation, found))[: situation.settings.generation.k]


def _told_apart(situation: RankingContext, kept: Sequence[Candidate], is_all: bool) -> list[Candidate]:
    """Each with how far it lies from the nearest better one, and where they are fewer than `k`, why."""
    knobs = situation.settings.generation
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


def _kept(situation: RankingContext, found: Sequence[Candidate]) -> list[Candidate]:
    knobs = situation.settings.generation
    return select_diverse(_ordered(situation, found), knobs.least_swaps, knobs.diversity)[: knobs.k]


def evaluated(situation: RankingContext, made: Plan, notes: Sequence[str] = ()) -> Candidate:
    """A plan with everything that is said of it; `notes` join its violations where it has any."""
    assert made.worth is not None
    assert made.measured is not None
    worth, (scores, penalties) = made.worth, made.measured
    lacking = [
        f"{NEEDED}{either(group, situation.graph)} is left out, and {_because(group, situation)}"
        for group in situation.needed
        if not group & set(made.tasks)
    ]
    titles = [situation.graph.tasks[t].title for t in made.tasks]
    times = situation.lead_times
    lead_time = times.of(made.workflow) if times else None
    compared_ms = (
        times.compared_ms(made.workflow, lead_time)
        if times and lead_time and LEAD_TIME in situation.ranking.criteria
        else 0.0
    )
    dues = times.dues(made.workflow, situation.constraints.deadlines, situation.names) if times else ()
    broken = violations(situation.constraints, worth, titles, situation.names.titles, lead_time, dues)
    if situation.demands:
        broken = [situation.demands.with_source(violation) for violation in broken]
    conformity, order_conformity = situation.complete.conformity(made.tasks)
    return Candidate(
        _id(situation, made),
        made,
        worth,
        path_cost_usd=sum(_path_cost_usd(situation, node) for node in made.workflow.tasks),
        transitions=_transitions(situation, made.tasks),
        violations=(*lacking, *broken, *notes) if lacking or broken else (),
        sequence_ids=_behind(made.tasks, situation.sequences),
        scores=scores,
        penalties=penalties,
        conformity=conformity,
        order_conformity=order_conformity,
        lead_time=lead_time,
        dues=dues,
        has_optional=not situation.optional.isdisjoint(made.tasks),
        compared_lead_ms=compared_ms,
    )


def _because(group: frozenset[str], situation: RankingContext) -> str:
    """Why a group of tasks is critical, in words."""
    expected, asked = situation.complete.consensus, situation.reading and group & set(situation.reading.tasks)
    if not situation.complete.consensus_tasks or expected is None or asked:
        return required_reason(group, situation.reading)
    return f"{max(expected.support.get(t, 0.0) for t in group):.0%} of the similar cases did it"


def _id(situation: RankingContext, made: Plan) -> str:
    """By its tasks, who does each, its reviews and which step waits for which."""
    steps = [
        (t.id, t.actor_kind, t.model, t.actor_group)
        for n in made.nodes
        if isinstance(t := made.workflow.by_id[n], TaskNode)
    ]
    return make_id("f", situation.intention_id, steps, made.workflow.edges)


def _path_cost_usd(situation: RankingContext, node: TaskNode) -> float:
    """C(t) of LWM (12), a review's among them."""
    return node.cost_usd + time_usd(node.duration_ms, situation.cost)


def _transitions(situation: RankingContext, tasks: Sequence[str]) -> int:
    return sum(edge.transitions for pair in pairwise(tasks) if (edge := situation.wfg.edges.get(pair)))


def _behind(tasks: tuple[str, ...], sequences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The sequences that are this very workflow; where none is, those that brought its edges."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))
