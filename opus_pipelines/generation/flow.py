"""One intake to its ranked workflows: the stages of generation in their order.

Each stage is a function from one record to the next (`generation.records`); none looks back at an earlier stage but
through the record that it is given. DESIGN section 2 draws the same flow.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.binding import Bound, with_bound, with_rules, with_wanted_time
from opus_pipelines.generation.decisions import all_rejected, with_chosen
from opus_pipelines.generation.planning.candidates import NEEDED, plan_candidates, rank_candidates
from opus_pipelines.generation.planning.context import Candidate, Draft, RankingContext, Requirements
from opus_pipelines.generation.planning.prices import LeadTimes, Prices
from opus_pipelines.generation.records import (
    Drafted,
    GenerationContext,
    Part,
    Planned,
    Ranked,
    Refused,
    Request,
    Retrieved,
)
from opus_pipelines.generation.refusals import elsewhere, missing_data
from opus_pipelines.generation.retrieve import retrieve
from opus_pipelines.generation.search.costs import Baseline, baseline, task_baselines
from opus_pipelines.generation.written_steps import with_written_steps
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase
from opus_pipelines.lwm.precedence import predecessors
from opus_pipelines.lwm.retrieval.intentions import UNKNOWN_INDUSTRY, intentions
from opus_pipelines.lwm.retrieval.requested_steps import (
    nearest_tasks,
    required_groups,
    required_precedence,
    with_new_steps,
)
from opus_pipelines.lwm.retrieval.rule_constraints import (
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
    RuleConstraints,
    rule_constraints,
)
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher
from opus_pipelines.lwm.stitching import Stitched, counts_of
from opus_pipelines.lwm.workflow_graph import (
    ALGORITHM_1,
    Dag,
    chain,
    linear_extensions,
    workflow_graph,
)
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.files import Weights


def read_requests(intake: Intake, context: GenerationContext) -> list[Request]:
    """Returns one request for each Intention of an intake, in the order of the documents.

    Raises Refused where the intake lacks what is needed, or is for another process by its own procedure.
    """
    if intake.refusal:
        raise Refused(intake.refusal)
    if reason := missing_data(intake.elements):
        raise Refused(reason)
    if (other := elsewhere(intake.elements)) is not None and other.is_whole:
        raise Refused(other.text)
    encoded = intentions(intake, context.index, context.encoder)
    return [
        Request(intake, make_id("n", intake.intake_id, number), intention, is_only=len(encoded) == 1)
        for number, intention in enumerate(encoded)
    ]


def draft(retrieved: Retrieved, context: GenerationContext) -> Drafted:
    """Returns the sequences that the LWM writes for a request, and their Workflow Graph, LWM (9)-(11)."""
    request, evidence, index = retrieved.request, retrieved.evidence, context.index
    graph, subgraphs = index.graph, [subgraph for _, subgraph in retrieved.subgraphs]
    asked = LwmRequest(
        request.intention.vector,
        graph,
        subgraphs,
        retrieved.processes[0].cases,
        context.settings.generation.seed,
        evidence.procedure,
        retrieved.stitched.tasks if retrieved.stitched else (),
        evidence.completeness.consensus_tasks or retrieved.expected,
        request.intention.decoded,
        request.intake.client,
    )
    written = context.model.generate(asked)
    usage = context.model.usage(asked)
    bound, unknown = Bound(retrieved.named), {step.task.task_id: step for step in retrieved.unknown}
    alike = {task: step.like for task, step in unknown.items()}
    if bound.rules:
        written = with_bound(written, bound, counts_of(index, request.intake.industry), graph, alike)
    written = with_chosen(written, evidence.decided, subgraphs)
    if not written:
        raise Refused("neither a case of history nor a procedure of this intake says which steps such work has")
    sequences = {make_id("q", request.intention_id, s.subgraph, s.tasks): s for s in written}
    wfg = workflow_graph({name: _dag(s.tasks, retrieved.stitched) for name, s in sequences.items()}, graph)
    if Part.ALGORITHM_1 in context.without:
        wfg = replace(wfg, edges={pair: edge for pair, edge in wfg.edges.items() if edge.origin != ALGORITHM_1})
    industry = request.intake.industry
    like = None if index.unknown_industry_reason(industry) else industry  # no task of an unknown industry is known
    if industry is None and retrieved.unlike:
        industry = UNKNOWN_INDUSTRY
    steps = evidence.procedure.steps if evidence.procedure else ()
    asked_for = {*evidence.completeness.consensus_tasks, *(step.task_id for step in steps), *bound.demanded}
    declared = context.history(industry).resolved.declared(asked_for)
    new = [step for step in steps if step.task_id not in declared]
    nearest = nearest_tasks(new, graph, index.index, like, context.encoder)
    whole, nearest = with_new_steps(graph, new, nearest), nearest | alike
    added = declared | {task: step.task for task, step in unknown.items()}
    whole = replace(whole, tasks=whole.tasks | added) if added else whole
    return Drafted(retrieved, sequences, wfg, whole, nearest, usage, frozenset(declared))


def _dag(tasks: tuple[str, ...], stitched: Stitched | None) -> Dag:
    """Returns dag_s of a sequence: the stitched plan branches where its order is not known, any other is a chain."""
    return linear_extensions(tasks, stitched.waits) if stitched and tasks == stitched.tasks else chain(tasks)


def plan(drafted: Drafted, context: GenerationContext) -> Planned:
    """Returns the plans that are kept for a draft, evaluated and refined."""
    retrieved, terms = drafted.retrieved, context.terms
    request, procedure = retrieved.request, retrieved.evidence.procedure
    tasks = {node.task_id for node in drafted.wfg.nodes.values() if node.task_id}
    prices = Prices.of(drafted.graph, tasks, terms.cost, context.settings)
    order = required_precedence(procedure, retrieved.precedence, prices.execution_modes)
    lead_times = _lead_times(drafted, context, tuple(prices.nodes))
    bound, counts = Bound(retrieved.named), counts_of(context.index, request.intake.industry)
    titles = {
        task: drafted.graph.tasks[task].title
        for rule in bound.rules
        for task in rule.tasks
        if task in drafted.graph.tasks
    }
    rules = with_rules(_rules(drafted, order, lead_times, context), bound, retrieved, titles)
    rules = with_wanted_time(rules, request.intake.elements)
    sequences = {name: first_occurrences(sequence.tasks) for name, sequence in drafted.sequences.items()}
    ranking = RankingContext(
        request.intake,
        request.intention_id,
        Draft(drafted.graph, drafted.wfg, sequences, prices, lead_times),
        retrieved.evidence,
        Requirements(bound.critical(retrieved.critical, counts), rules.precedence(order), rules, context.index.names),
        terms.review,
        terms.cost,
        context.settings,
    )
    waits_for = predecessors(sequences, ranking.seen, drafted.graph, ranking.requirements.order)
    return Planned(drafted, ranking, plan_candidates(ranking), waits_for)


def _rules(
    drafted: Drafted, order: frozenset[tuple[str, str]], lead_times: LeadTimes, context: GenerationContext
) -> RuleConstraints:
    """Returns what is stated and what the documents demand, resolved to the drafted tasks.

    `order` holds the pairs (a, b) of tasks that history or the procedure does in this order.
    """
    retrieved = drafted.retrieved
    request, (first, *others) = retrieved.request, retrieved.processes
    intention, index = request.intention, context.index
    tasks = sorted(node.task_id for node in drafted.wfg.nodes.values() if node.task_id)
    matcher = TaskMatcher(index.names, drafted.graph, tasks, index.task_vectors, intention.texts)
    statements = IntakeStatements.of(
        request.intake, None if request.is_only else [sentence.text for sentence in intention.decoded.inputs]
    )
    critical = required_groups(retrieved.evidence.procedure, first.critical)
    history = ProcessHistory([replace(first, critical=critical), *others], order, lead_times.is_timed)
    return rule_constraints(intention.decoded.rules, ResolutionContext(statements, matcher, drafted.wfg, history))


def _lead_times(drafted: Drafted, context: GenerationContext, tasks: tuple[str, ...]) -> LeadTimes:
    """Returns how lead times of workflows of these tasks are computed, on the contract's calendar."""
    calendar, industry = context.terms.calendar, drafted.retrieved.request.intake.industry
    step_times = context.index.step_times_on(calendar)
    if drafted.retrieved.unlike:
        step_times = step_times.of_known_tasks
    return LeadTimes(
        step_times,
        step_times.correlations.get(industry, 0.0),
        context.settings.generation.seed,
        Calendar.of(calendar) if calendar else None,
        drafted.nearest,
        tasks,
    )


BASELINE_CASES = 25


def rank(planned: Planned, context: GenerationContext) -> Ranked:
    """Returns the plans in their order, with Reward, Penalty and confidence.

    Raises Refused where people rejected every workflow, or where even the best one lacks a critical task.
    """
    retrieved, cost = planned.drafted.retrieved, context.terms.cost
    ranked = rank_candidates(planned.context, planned.candidates)
    if not ranked and retrieved.evidence.decided.rejected_ids:
        raise Refused(all_rejected(retrieved.evidence.decided))
    if violation := _missing_critical_task(ranked):
        raise Refused(f"no feasible workflow: {violation}")
    nearest = _compared_cases(retrieved)
    compared = [_row(case) for case in nearest]
    return Ranked(
        planned,
        ranked,
        _baseline(compared, retrieved.evidence.cases, cost),
        _median_lead_time_ms(nearest),
        task_baselines(compared, cost),
        Weights.of(cost, context.settings.reward),
        frozenset(case.implementation_id for case in nearest),
    )


def _missing_critical_task(ranked: list[tuple[int, Candidate]]) -> str | None:
    """Returns the violation that says which critical task the best workflow lacks.

    It is None where the workflow lacks none, or where a person chose it all the same.
    """
    best = [candidate for _, candidate in ranked[:1] if candidate.decision is None or candidate.decision.kind is None]
    return next((v for candidate in best for v in candidate.violations if v.startswith(NEEDED)), None)


def _compared_cases(retrieved: Retrieved) -> list[SimilarCase]:
    """Returns the nearest cases that people carried out.

    There are none where several processes are combined: no case did all of that work, so none tells what it costs.
    """
    if len(retrieved.processes) > 1:
        return []
    return _carried_out(retrieved.processes[0].cases)[:BASELINE_CASES]


def _carried_out(cases: Sequence[SimilarCase]) -> list[SimilarCase]:
    return [case for case in cases if not case.is_decision]


def _baseline(compared: list[dict[str, object]], cases: Sequence[SimilarCase], cost: Cost) -> Baseline:
    """Returns medians over the compared cases.

    Successes are counted over all similar cases, as `opus explain` counts them, so that both show one figure.
    """
    outcomes = [c.success for c in _carried_out(cases) if c.success is not None and not c.outcome_by_activities]
    return replace(baseline(compared, cost), success=sum(outcomes) / len(outcomes) if compared and outcomes else None)


def _median_lead_time_ms(cases: Sequence[SimilarCase]) -> float | None:
    known = [c.lead_time_ms for c in cases if c.lead_time_ms is not None]
    return statistics.median(known) if known else None


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


def generate(intake: Intake, context: GenerationContext) -> list[Ranked]:
    """Returns the ranked workflows of an intake, one record for each of its Intentions.

    The same inputs give the same records. Raises Refused where nothing can be generated for one of the Intentions, and
    SettingsError where a stated constraint or price names nothing known.
    """
    return [rank_workflows(request, context) for request in read_requests(intake, context)]


def rank_workflows(request: Request, context: GenerationContext) -> Ranked:
    """Returns the ranked workflows of one Intention."""
    retrieved = with_written_steps(retrieve(request, context), context)
    drafted = draft(retrieved, context)
    planned = plan(drafted, context)
    return rank(planned, context)
