"""Stage 4: plans under the requirements: paths of the Workflow Graph, execution modes, shape and reviews."""

from dataclasses import replace

from opus_pipelines.generation.planning.candidates import plan_candidates
from opus_pipelines.generation.planning.lead_times import LeadTimes
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.planning.ranking_context import Draft, RankingContext, Requirements
from opus_pipelines.generation.records import Drafted, GenerationContext, Planned
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.precedence import predecessors
from opus_pipelines.lwm.retrieval.requested_steps import required_groups, required_precedence
from opus_pipelines.lwm.retrieval.rule_constraints import (
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
    RuleConstraints,
    rule_constraints,
)
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher
from opus_pipelines.workflow.evaluation.calendar import Calendar


def plan(drafted: Drafted, context: GenerationContext) -> Planned:
    """Returns the plans that are kept for a draft, evaluated and refined."""
    retrieved, terms = drafted.retrieved, context.terms
    request, procedure = retrieved.request, retrieved.evidence.procedure
    tasks = {node.task_id for node in drafted.wfg.nodes.values() if node.task_id}
    prices = Prices.of(drafted.graph, tasks, terms.cost, context.settings)
    order = required_precedence(procedure, retrieved.precedence, prices.execution_modes)
    lead_times = _lead_times(drafted, context, tuple(prices.nodes))
    rules = _rules(drafted, order, lead_times, context)
    sequences = {name: first_occurrences(sequence.tasks) for name, sequence in drafted.sequences.items()}
    ranking = RankingContext(
        request.intake,
        request.intention_id,
        Draft(drafted.graph, drafted.wfg, sequences, prices, lead_times),
        retrieved.evidence,
        Requirements(retrieved.critical, rules.precedence(order), rules, context.index.names),
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
