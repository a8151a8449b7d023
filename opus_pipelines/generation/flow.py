"""One intake to its ranked workflows: encode, route, subgraphs, sequences, Workflow Graph, candidates, ranking.

The flow of DESIGN section 2, composed; every step is a function of the package that owns it.
"""

import statistics
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.settings import Cost, Generation, Settings
from opus_pipelines.decisions.record import NO_DECISIONS, Decisions
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.embedding.passages import unit
from opus_pipelines.evaluation.calendar import Calendar, CalendarSettings
from opus_pipelines.generation.decision_evidence import agreed_with, with_accepted_workflows
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import LargeWorkModel, LwmRequest, ProcessDemand, SimilarCase, TaskSequence
from opus_pipelines.lwm.join_components import join_components
from opus_pipelines.lwm.procedure_reading import ParsedProcedure
from opus_pipelines.lwm.sequence_dag import chain
from opus_pipelines.lwm.workflow_graph import WFG, workflow_graph
from opus_pipelines.optimization.baseline import Baseline, Paid, baseline, paid
from opus_pipelines.optimization.reward_ranking import Ranking
from opus_pipelines.planning.candidates import NEEDED, ranked_candidates
from opus_pipelines.planning.lead_times import LeadTimes
from opus_pipelines.planning.prices import Prices
from opus_pipelines.planning.ranking_context import Candidate, RankingContext
from opus_pipelines.planning.standing_decisions import all_rejected, standing_decisions, with_chosen
from opus_pipelines.requirements.encode import Intention
from opus_pipelines.retrieval.combined_processes import combined_precedence, combined_processes, critical_groups
from opus_pipelines.retrieval.completeness import OUTCOMES, SUPPORT, Completeness, outcomes_decide, undecided_reason
from opus_pipelines.retrieval.consensus import Course, consensus
from opus_pipelines.retrieval.constraints_from_rules import RuleConstraints
from opus_pipelines.retrieval.critical_tasks import critical_tasks
from opus_pipelines.retrieval.intentions import intentions, resolve_constraints, with_missing_part
from opus_pipelines.retrieval.precedence import predecessors
from opus_pipelines.retrieval.requested_steps import (
    nearest_tasks,
    requested_steps,
    required_groups,
    required_precedence,
    with_new_steps,
)
from opus_pipelines.retrieval.routing import Routed, route
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.stated_names import refuse_unknown_tasks
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.neighbourhoods import neighbourhoods
from opus_pipelines.wkg.steiner_tree import SubWKG, steiner
from opus_pipelines.workflow.files import Weights

BASELINE_CASES = 25
# near cases whose first and last task a subgraph must reach, so that a sequence in it can begin and end
ENDS_OF_CASES = 3


@dataclass(frozen=True)
class GenerationResult:
    """Everything one Intention led to. `sequences` carry their ids; subgraphs go from 0 on; `paid`: for each task, by
    the nearest cases.

    `graph`: the WKG with the steps that only the intake's procedure has; `nearest`: of each of them the known task it
    is priced like;
    `predecessors`: of each sequence's places those that it waits for.
    """

    intention_id: str
    intention: Intention
    routed: list[Routed]
    cases: list[SimilarCase]
    subgraphs: list[tuple[str, SubWKG]]
    sequences: dict[str, TaskSequence]
    wfg: WFG
    ranked: list[tuple[int, Candidate]]
    prices: Prices
    baseline: Baseline
    paid: Paid
    weights: Weights
    demands: RuleConstraints
    graph: WorkGraph
    reading: ParsedProcedure | None
    nearest: dict[str, str]
    predecessors: dict[str, list[list[int]]]
    complete: Completeness
    ranking: Ranking
    baseline_lead_time_ms: float | None = None


@dataclass(frozen=True)
class Refused:
    """Why nothing was generated, for the person who sent the intake."""

    reason: str


def generate(
    intake: Intake,
    knowledge: SnapshotIndex,
    encoder: TextEncoder,
    model: LargeWorkModel,
    cost: Cost,
    settings: Settings,
    review: Review | None = None,
    decisions: Decisions = NO_DECISIONS,
    calendar: CalendarSettings | None = None,
) -> list[GenerationResult] | Refused:
    """Ranked workflows of an intake, an entry an Intention, or why there are none. The same inputs give the same rows."""
    if reason := intake.refusal or knowledge.unknown_industry_reason(intake.industry):
        return Refused(reason)
    asked = intentions(intake, knowledge, encoder)
    made = []
    for number, intention in enumerate(asked):
        intention_id = make_id("n", intake.intake_id, number)
        one = _generate(
            intake,
            intention_id,
            intention,
            len(asked) == 1,
            knowledge,
            encoder,
            model,
            cost,
            settings,
            review or Review(),
            decisions,
            calendar,
        )
        if isinstance(one, Refused):
            return one
        made.append(one)
    return made


def _generate(
    intake: Intake,
    intention_id: str,
    intention: Intention,
    alone: bool,
    knowledge: SnapshotIndex,
    encoder: TextEncoder,
    model: LargeWorkModel,
    cost: Cost,
    settings: Settings,
    review: Review,
    decisions: Decisions,
    calendar: CalendarSettings | None,
) -> GenerationResult | Refused:
    graph = knowledge.graph
    knobs = settings.generation
    cases, complete = _similar(intake, intention, knowledge, knobs)
    intention = with_missing_part(intention, cases, knowledge)
    cases = with_accepted_workflows(cases, decisions, intention_id, intention.vector, graph, settings)
    complete = agreed_with(complete, cases)
    routed = route(
        knowledge.index, graph, intention.vector, intake.industry, knobs.routing_top_k, knobs.routing_threshold
    )
    subgraphs = _subgraphs(intention_id, knowledge, routed, cases)
    if not subgraphs:
        return Refused("nothing in the Work Knowledge Graph is near this intake: neither a task nor a case of history")
    reading = requested_steps(
        intake.elements, unit(intention.parts["input"].mean(0)), intake.industry, knowledge.procedures, encoder
    )
    titles = [t.title for t in graph.tasks.values() if intake.industry is None or intake.industry in t.industries]
    refuse_unknown_tasks(
        intake.constraints, knowledge.names, titles, [step.name for step in reading.steps] if reading else ()
    )
    works = _works(intake, intention, alone, cases, reading, knowledge, knobs, complete)
    cases = list({c.implementation_id: c for work in works for c in work.cases}.values())
    asked = works if len(works) > 1 else ()
    request = LwmRequest(
        intention.vector,
        graph,
        [s for _, s in subgraphs],
        works[0].cases,
        knobs.seed,
        reading,
        asked,
        complete.consensus_tasks,
    )
    written = model.generate(request)
    decided = standing_decisions(
        decisions, intention_id, graph.tasks.keys() | {s.task_id for s in (reading.steps if reading else ())}
    )
    written = with_chosen(written, decided, [s for _, s in subgraphs])
    sequences = {make_id("q", intention_id, s.subgraph, s.tasks): s for s in written}
    wfg = join_components(
        workflow_graph({i: chain(s.tasks) for i, s in sequences.items()}, graph), graph, knowledge.task_similarity
    )
    nearest = nearest_tasks(reading.steps, graph, knowledge.index, intake.industry, encoder) if reading else {}
    graph = with_new_steps(graph, reading.steps, nearest) if reading else graph
    prices = Prices.of(graph, {n.task_id for n in wfg.nodes.values() if n.task_id}, cost, settings)
    needed = required_groups(reading, critical_groups(works))
    settled = required_precedence(reading, combined_precedence(works, knobs.settled_share), prices.ways)
    read = [replace(works[0], critical=required_groups(reading, works[0].critical)), *works[1:]]
    lead_times = _lead_times(knowledge, intake, calendar, nearest, knobs.seed, tuple(prices.nodes))
    demands = resolve_constraints(intake, intention, alone, knowledge, graph, wfg, read, settled, lead_times.is_timed)
    situation = RankingContext(
        intake,
        intention_id,
        graph,
        wfg,
        cases,
        {i: first_occurrences(s.tasks) for i, s in sequences.items()},
        needed,
        demands.precedence(settled),
        demands.constraints,
        review,
        prices,
        cost,
        settings,
        knowledge.names,
        demands,
        reading,
        decided,
        complete,
        lead_times,
    )
    ranked = ranked_candidates(situation)
    if not ranked and decided.rejected_ids:
        return Refused(all_rejected(decided))
    if lacking := _lacks_critical(ranked):
        return Refused(f"no feasible workflow: {lacking}")
    done = [[_row(c) for c in [c for c in work.cases if not c.is_decision][:BASELINE_CASES]] for work in works]
    whole = done[0] if len(works) == 1 else []  # no case did all of combined work: none tells what it costs
    return GenerationResult(
        intention_id,
        intention,
        routed,
        cases,
        subgraphs,
        sequences,
        wfg,
        ranked,
        prices,
        _baseline(whole, cases, cost),
        paid(whole, cost),
        Weights.of(cost, settings.reward),
        demands,
        graph,
        reading,
        nearest,
        predecessors(situation.sequences, situation.seen, graph, situation.order),
        complete,
        situation.ranking,
        _lead_time_of([c for w in works[:1] for c in w.cases]),
    )


def _similar(
    intake: Intake, intention: Intention, knowledge: SnapshotIndex, knobs: Generation
) -> tuple[list[SimilarCase], Completeness]:
    """The similar cases, most similar first, and what tells which work may be left out."""
    cases = knowledge.cases.near(intention.vector, intake.industry, knobs.near_cases)
    if cases and outcomes_decide(cases):
        return cases, _by_outcomes(cases, cases[0].similarity, knowledge, intake.gain_usd is not None)
    found = knowledge.scope(intake.industry).similar(intake, unit(intention.parts["input"].mean(0)))
    if found is None:
        return cases, Completeness(SUPPORT, undecided_reason(cases, SUPPORT, None))
    top = found.rows[: knobs.near_cases].tolist()
    cases = knowledge.cases.at(top, found.weights[: knobs.near_cases].tolist(), found.nearest)
    if outcomes_decide(cases):
        return cases, _by_outcomes(cases, found.nearest, knowledge, intake.gain_usd is not None)
    steps = frozenset(found.consensus.support) - knowledge.passive
    return cases, Completeness(SUPPORT, undecided_reason(cases, SUPPORT, found.nearest), found, found.consensus, steps)


def _by_outcomes(
    cases: list[SimilarCase], nearest: float | None, knowledge: SnapshotIndex, has_gain: bool
) -> Completeness:
    """Outcomes decide; where events are among what similar cases did, what they agree on tells which of them to
    expect. Without a stated gain workflows of equal success are held against these cases.
    """
    followed = [c for c in cases if c.success is not False and c.activities]
    expected, steps = None, frozenset[str]()
    if followed and (not has_gain or any(knowledge.passive.intersection(c.activities) for c in followed)):
        expected = consensus([Course.of(c.activities) for c in followed], np.array([c.weight for c in followed]))
    if not has_gain:
        steps = frozenset[str]().union(*(c.activities for c in followed)) - knowledge.passive
    return Completeness(OUTCOMES, undecided_reason(cases, OUTCOMES, nearest), None, expected, steps)


def _lacks_critical(ranked: list[tuple[int, Candidate]]) -> str | None:
    """What the best workflow lacks that none may lack; None where it lacks nothing, or where a person chose it all the
    same.
    """
    chosen = [best for _, best in ranked[:1] if best.decision is None or best.decision.kind is None]
    return next((v for best in chosen for v in best.violations if v.startswith(NEEDED)), None)


def _lead_times(
    knowledge: SnapshotIndex,
    intake: Intake,
    calendar: CalendarSettings | None,
    nearest: dict[str, str],
    seed: int,
    tasks: tuple[str, ...],
) -> LeadTimes:
    waiting = knowledge.step_times_on(calendar)
    correlation = waiting.correlations.get(intake.industry, 0.0)
    return LeadTimes(waiting, correlation, seed, Calendar.of(calendar) if calendar else None, nearest, tasks)


def _lead_time_of(cases: list[SimilarCase]) -> float | None:
    """The median lead time of the nearest cases; None where none has one."""
    known = [c.lead_time_ms for c in cases if not c.is_decision and c.lead_time_ms is not None][:BASELINE_CASES]
    return statistics.median(known) if known else None


def _works(
    intake: Intake,
    intention: Intention,
    alone: bool,
    cases: list[SimilarCase],
    reading: ParsedProcedure | None,
    knowledge: SnapshotIndex,
    knobs: Generation,
    complete: Completeness,
) -> list[ProcessDemand]:
    """The kinds of work that are asked for: one, where a part of the procedure decides, or the intake has several
    Intentions.
    """
    needed = complete.critical
    if complete.rule == OUTCOMES:
        groups = (
            g - knowledge.passive
            for g in critical_tasks(cases, knowledge.critical_task_rows(intake.industry), intake.client, knobs)
        )
        needed = [group for group in groups if group]
    near = ProcessDemand(cases, needed)
    if not alone or (reading and reading.has_goal):
        return [near]
    return combined_processes(
        near, intention.decoded.rules, intention.texts, intake, intention.vector, knowledge, knobs
    )


def _subgraphs(
    intention_id: str, knowledge: SnapshotIndex, routed: list[Routed], cases: list[SimilarCase]
) -> list[tuple[str, SubWKG]]:
    """One SWKG a neighbourhood, LWM (6)-(8); the near cases' first and last tasks are terminals beside the routed
    ones.
    """
    seeds = {r.id: r.similarity for r in routed}
    for case in [c for c in cases if c.tasks][:ENDS_OF_CASES]:
        for task in (case.tasks[0], case.tasks[-1]):
            seeds.setdefault(task, min([r.similarity for r in routed], default=0.0))
    found = neighbourhoods(knowledge.graph, sorted(seeds.items()))
    made = [steiner(knowledge.graph, n.terminals, n.tasks) for n in found]
    return [(make_id("g", intention_id, number, sorted(s.tasks)), s) for number, s in enumerate(made)]


def _baseline(whole: list[dict[str, object]], cases: list[SimilarCase], cost: Cost) -> Baseline:
    """Medians over the compared cases; successes are counted over all near cases, as `opus explain` counts them: one
    figure, not two.
    """
    outcomes = [case.success for case in cases if case.success is not None and not case.is_decision]
    return replace(baseline(whole, cost), success=sum(outcomes) / len(outcomes) if whole and outcomes else None)


def _row(case: SimilarCase) -> dict[str, object]:
    return {
        "tasks": case.tasks,
        "task_cost_usd": case.task_cost_usd,
        "task_duration_ms": case.task_duration_ms,
        "actor_kinds": case.actor_kinds,
        "models": case.models,
        "actor_groups": case.actor_groups,
        "success": case.success,
    }
