"""Stage 2: what history says about a request: routing, similar cases, critical tasks, precedence and SWKGs."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.generation.binding import bound_rules
from opus_pipelines.generation.decisions import (
    accepted_elsewhere,
    agreed_with,
    standing_decisions,
    with_accepted_workflows,
)
from opus_pipelines.generation.planning.context import Evidence
from opus_pipelines.generation.records import GenerationContext, Part, Refused, Request, Retrieved
from opus_pipelines.intakes.elements import PROCEDURAL
from opus_pipelines.intakes.procedures.reading import ParsedProcedure
from opus_pipelines.intakes.requirements.intention import missing_part
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.retrieval.case_memory import encoded_requests, request_of
from opus_pipelines.lwm.retrieval.completeness import (
    LEAST_COSINE,
    OUTCOMES,
    SUPPORT,
    Completeness,
    are_few,
    critical_tasks,
    outcomes_decide,
    undecided_reason,
)
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace, consensus
from opus_pipelines.lwm.retrieval.expected_tasks import ExpectedWork, Told, expected_tasks, stretches_of
from opus_pipelines.lwm.retrieval.intentions import UNKNOWN_INDUSTRY, likeness_of, with_missing_part
from opus_pipelines.lwm.retrieval.requested_steps import (
    procedure_parts,
    requested_steps,
    with_unanimous_steps,
)
from opus_pipelines.lwm.retrieval.routing import Routed, Router, subgraphs_of, whole_of
from opus_pipelines.lwm.retrieval.similar_cases import StartOutcomes
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.task_names import refuse_misspelt_tasks, unknown_demands
from opus_pipelines.lwm.retrieval.unknown_steps import UnknownStep, unknown_steps
from opus_pipelines.lwm.stitching import (
    Stitched,
    combined_precedence,
    combined_processes,
    counts_of,
    critical_groups,
    demanded_tasks,
    stitch,
)
from opus_pipelines.wkg.subgraphs import SubWKG

_ALONE = {Part.COMPOSITION, Part.SIMILAR_CASES}  # without either, no further process is looked up in cases


def retrieve(request: Request, context: GenerationContext) -> Retrieved:
    """Returns what history and the intake's own procedure say about a request.

    Raises Refused where the Work Knowledge Graph has nothing near the request, or does not know its industry and the
    procedure lists no steps, or a stated constraint demands a task that nobody knows; and SettingsError where the name
    of a task in a constraint is misspelt.
    """
    intake, settings = request.intake, context.settings.generation
    if reason := context.index.unknown_industry_reason(intake.industry):
        return _without_history(request, reason, context)
    unlike = _unlike_reason(request, context)
    if unlike and (own := _own_procedure(request, context)):
        return _of_own_procedure(request, own, unlike, context)
    cases, completeness = _similar_cases(request, context)
    if unlike:
        completeness = replace(completeness, undecided_reason=unlike)
    by_input = missing_part(request.intention) == "context" and completeness.rule == OUTCOMES
    given = request
    request = replace(request, intention=with_missing_part(request.intention, cases, context.index))
    decisions, tasks = context.terms.decisions, context.index.graph.tasks
    accepted = accepted_elsewhere(decisions, request.intention_id, tasks.keys())
    cases = with_accepted_workflows(cases, accepted, request.intention.vector, context.settings)
    completeness = agreed_with(completeness, cases)
    expected = _expected_work(given if by_input else request, by_input, context)
    routed = [] if Part.ROUTING in context.without else _routed(request, expected, context)
    graph = context.index.graph
    found = (
        [whole_of(graph, intake.industry)] if Part.SUBGRAPHS in context.without else subgraphs_of(graph, routed, cases)
    )
    subgraphs = [_named(subgraph, request, n) for n, subgraph in enumerate(found)]
    if not subgraphs:
        raise Refused("nothing in the Work Knowledge Graph is near this intake: neither a task nor a case of history")
    procedure = _procedure(request, context)
    steps = procedure.steps if procedure else ()
    unknown = _unknown_steps(request, context)
    completeness = replace(completeness, undecided_reason=_doubt_of(unknown) or completeness.undecided_reason)
    titles = [t.title for t in tasks.values() if intake.industry is None or intake.industry in t.industries]
    _check_stated(request, titles, [*(s.name for s in steps), *(s.task.title for s in unknown)], context)
    alone = expected if by_input or are_few(cases) else None
    critical = _critical_tasks(cases, completeness, request, context)
    first = ProcessDemand(cases, alone.critical(critical) if alone else critical)
    processes = _processes(first, request, procedure, context)
    plan = stitch(processes, intake.industry, context.index)
    if plan is not None:
        subgraphs += [_named(s, request, n) for n, s in enumerate(plan.subgraphs, len(subgraphs))]
        completeness, processes = _by_stitching(plan, completeness, processes, request, context)
    return Retrieved(
        request,
        routed,
        subgraphs,
        Evidence(
            list({c.implementation_id: c for process in processes for c in process.cases}.values()),
            completeness,
            procedure,
            standing_decisions(decisions, request.intention_id, tasks.keys() | {step.task_id for step in steps}),
        ),
        processes,
        combined_precedence(processes, settings.settled_share, plan.tasks if plan else completeness.consensus_tasks),
        alone.joined(critical_groups(processes), context.index.graph) if alone else (),
        unlike,
        plan,
        bound_rules(request, cases, critical, unknown, context).rules,
        unknown,
    )


def _check_stated(request: Request, titles: Collection[str], new: Sequence[str], context: GenerationContext) -> None:
    """Raises SettingsError for misspelt names in stated constraints, and Refused for demands that cannot be met.

    A name that history does not have is no mistake where history has no case of the client: it has names of its own.
    """
    constraints, names = request.intake.constraints, context.index.names
    if not context.index.is_new_client(request.intake.client, request.intake.industry):
        refuse_misspelt_tasks(constraints, names, titles, new)
    if reason := unknown_demands(constraints, names, titles, new):
        raise Refused(reason)


def _named(subgraph: SubWKG, request: Request, number: int) -> tuple[str, SubWKG]:
    return make_id("g", request.intention_id, number, sorted(subgraph.tasks)), subgraph


def _by_stitching(
    plan: Stitched, before: Completeness, processes: list[ProcessDemand], request: Request, context: GenerationContext
) -> tuple[Completeness, list[ProcessDemand]]:
    """Returns what decides which tasks may be left out where several processes are joined, and the processes.

    Where outcomes decide and a gain is stated, the Reward decides as elsewhere. Otherwise workflows are compared with
    the stitched plan: no case did all of that work, so no outcome tells what a workflow may leave out of it.
    """
    if before.rule == OUTCOMES and request.intake.gain_usd is not None:
        return before, processes
    steps = frozenset(plan.chances) - context.index.passive
    agreed = plan.consensus(float(len(processes)), context.settings.generation.seed)
    doubt = "no case of history did all of the work that is asked for: what is right is an estimate from its parts"
    completeness = Completeness(SUPPORT, doubt, before.similar, agreed, steps)
    demanded = [[frozenset({goal}) for goal in sorted(process.goals)] for process in processes]
    demanded[0] += completeness.critical
    return completeness, [replace(p, critical=c) for p, c in zip(processes, demanded, strict=True)]


def _without_history(request: Request, reason: str, context: GenerationContext) -> Retrieved:
    """Returns what the intake's own procedure asks for, for an industry that history does not know.

    Raises Refused where the procedure lists no steps.
    """
    procedure = _procedure(request, context)
    if procedure is None:
        raise Refused(
            f"{reason}; its process context lists no steps by which a workflow could be made, and no tool of the "
            "contract's catalogue is asked for"
        )
    return _of_own_procedure(request, procedure, reason, context)


def _unlike_reason(request: Request, context: GenerationContext) -> str | None:
    """Returns why an intake without a stated industry is unlike all history, None where it is not."""
    if request.intake.industry is not None or Part.SIMILAR_CASES in context.without:
        return None
    nearest = context.index.cases.near(request.intention.vector, None, 1)
    return likeness_of(context.index, context.encoder).reason(nearest)


def _own_procedure(request: Request, context: GenerationContext) -> ParsedProcedure | None:
    """Returns the intake's own procedure, read as that of an industry which history does not know."""
    stranger = replace(request, intake=replace(request.intake, industry=UNKNOWN_INDUSTRY))
    return _procedure(stranger, context)


def _of_own_procedure(
    request: Request, procedure: ParsedProcedure, reason: str, context: GenerationContext
) -> Retrieved:
    """Returns what the intake's own procedure asks for, and nothing of history.

    Cases of other industries are not similar cases: their work is not this one's. No verdict on the result is clear.
    """
    tasks = {step.task_id for step in procedure.steps}
    _check_stated(request, (), [step.name for step in procedure.steps], context)
    doubt = f"{reason}: {_source_of_steps(request, procedure)}, the figures are estimates"
    return Retrieved(
        request,
        [],
        [(make_id("g", request.intention_id, 0, []), SubWKG({}, ()))],
        Evidence(
            [],
            Completeness(OUTCOMES, doubt),
            procedure,
            standing_decisions(context.terms.decisions, request.intention_id, context.index.graph.tasks.keys() | tasks),
        ),
        [ProcessDemand([], [])],
        frozenset(),
        unlike=reason,
    )


def _source_of_steps(request: Request, procedure: ParsedProcedure) -> str:
    """Returns what the steps of work that history does not know rest on, in words."""
    if not procedure.is_of_request:
        return "the steps are those that the intake's own procedure asks for"
    elements = [e for e in request.intake.elements if e.role in PROCEDURAL]
    unread = "".join(f"; {e.name} was not read, because {e.left_out}" for e in elements if e.left_out and not e.text)
    none = (
        "no procedure says which steps there are"
        if not any(e.text for e in elements)
        else ("no step of the catalogue could be told from the procedure")
    )
    return f"the steps are guessed from the words of the request alone, because {none}{unread}"


def _similar_cases(request: Request, context: GenerationContext) -> tuple[list[SimilarCase], Completeness]:
    """Returns the similar cases, most similar first, and what decides which tasks may be left out.

    Where the intake states attributes that history knows, or too few similar cases have a known outcome, cases are
    compared by their texts and attributes instead of Γ.
    """
    if Part.SIMILAR_CASES in context.without:
        return [], Completeness(SUPPORT, undecided_reason([], SUPPORT, None))
    intake, index, most = request.intake, context.index, context.settings.generation.near_cases
    has_gain = intake.gain_usd is not None
    cases = index.cases.near(request.intention.vector, intake.industry, most)
    if cases and outcomes_decide(cases) and not index.cases_of(intake.industry).states_attributes(intake):
        at_start = StartOutcomes.of([c.success for c in cases], [c.weight for c in cases], "text")
        complete = _by_outcomes(cases, cases[0].similarity, index, has_gain)
        return cases, replace(complete, at_start=at_start, basis="text")
    similar = index.cases_of(intake.industry).similar(intake, request.input_vector)
    if similar is None:
        return cases, Completeness(SUPPORT, undecided_reason(cases, SUPPORT, None))
    compared = index.cases.at(
        similar.compared[:most].tolist(), similar.compared_weights[:most].tolist(), similar.nearest
    )
    if outcomes_decide(compared):
        complete = _by_outcomes(compared, similar.nearest, index, has_gain)
        return compared, replace(complete, at_start=similar.at_start, basis=similar.basis)
    cases = index.cases.at(similar.rows[:most].tolist(), similar.weights[:most].tolist(), similar.nearest)
    of_model = expected_by_model(request, context)
    agreed = replace(of_model, cases=similar.consensus.cases) if of_model else similar.consensus
    steps = frozenset(agreed.support) - index.passive
    doubt = undecided_reason(cases, SUPPORT, similar.nearest)
    complete = Completeness(SUPPORT, doubt, similar, agreed, steps, at_start=similar.at_start, basis=similar.basis)
    return cases, replace(complete, model_support=of_model.support) if of_model else complete


def expected_by_model(request: Request, context: GenerationContext) -> Consensus | None:
    """Returns the consensus of what a trained model expects of the request; None where none serves the industry."""
    intake, model = request.intake, context.model
    if intake.industry is None or not model.serves(intake.industry):
        return None
    memory, text = context.memory(intake.elements, intake.industry), request_of(intake.elements)
    if memory is None or not text.strip():
        return None
    vector = request.input_vector
    written = model.expected(encoded_requests([text], vector[None], context.encoder)[0], memory.memory)
    traces = [memory.trace(one.tasks) for one in written]
    weights = np.array([one.probability for one in written])
    return consensus(traces, weights).with_likeliest_first()


def _by_outcomes(cases: list[SimilarCase], nearest: float | None, index: SnapshotIndex, has_gain: bool) -> Completeness:
    """Returns the completeness where outcomes of history decide.

    Where similar cases have events among their activities, the consensus of the cases tells which events to expect.
    Without a stated gain, workflows of equal success are compared with the cases by their steps.
    """
    followed = [c for c in cases if c.success is not False and c.activities]
    expected, steps = None, frozenset[str]()
    if followed and (not has_gain or any(index.passive.intersection(c.activities) for c in followed)):
        expected = consensus([Trace.of(c.activities) for c in followed], np.array([c.weight for c in followed]))
    if not has_gain:
        steps = frozenset[str]().union(*(c.activities for c in followed)) - index.passive
    return Completeness(OUTCOMES, undecided_reason(cases, OUTCOMES, nearest), None, expected, steps)


def _expected_work(request: Request, by_input: bool, context: GenerationContext) -> ExpectedWork | None:
    """Returns what the trained Intention encoder expects of the request, None where none serves the industry.

    `by_input`: the client input is read stretch by stretch, too, because no process context says what the work is.
    """
    industry, index = request.intake.industry, context.index
    encoder = context.model.intention_encoder(industry) if industry is not None else None
    if encoder is None:
        return None
    demanded = frozenset(demanded_tasks(request.intention, request.intake, index))
    texts = stretches_of(request.intention) if by_input else []
    told = Told(demanded, context.encoder.encode(texts) if texts else None)
    likely = expected_tasks(encoder, request.intention, index, request.intake, told)
    return ExpectedWork.of(likely, index.graph) if likely else None


def _routed(request: Request, expected: ExpectedWork | None, context: GenerationContext) -> list[Routed]:
    """Returns the tasks near Γ, with their cosines; with a trained encoder the likely tasks, with probabilities."""
    settings, industry = context.settings.generation, request.intake.industry
    if expected is not None:
        likely = [Routed(task, expected.probabilities[task]) for task in expected.steps]
        return sorted(likely, key=lambda r: (-r.similarity, r.id))
    router = Router(context.index.index, context.index.graph, industry)
    return router.route(request.intention.vector, settings.routing_top_k, settings.routing_threshold)


def _procedure(request: Request, context: GenerationContext) -> ParsedProcedure | None:
    """Returns the intake's own procedure as it was read, or None where it has none."""
    if Part.PROCEDURE in context.without:
        return None
    intake, vector = request.intake, request.input_vector
    industry = intake.industry
    history = context.history(industry)
    read = requested_steps(intake.elements, vector, industry, history, context.encoder)
    if read is None:
        return None
    part = next((p for p in procedure_parts(intake.elements) if (p.head or "") == read.head), None)
    return with_unanimous_steps(
        read, history.procedures.successes(part, industry) if part else (), context.index.graph.tasks
    )


def _unknown_steps(request: Request, context: GenerationContext) -> tuple[UnknownStep, ...]:
    """Returns the steps that a client without history asks for and that history lacks; a catalogue names all there are.

    Of several Intentions none tells which of them a procedure is for.
    """
    intake, index = request.intake, context.index
    is_asked = context.catalogue is None and request.is_only and index.is_new_client(intake.client, intake.industry)
    if not is_asked or not context.without.isdisjoint({Part.PROCEDURE, Part.UNKNOWN_STEPS}):
        return ()
    return unknown_steps(intake, index, context.encoder)


def _doubt_of(unknown: Sequence[UnknownStep]) -> str | None:
    if not unknown:
        return None
    names = ", ".join(repr(step.task.title) for step in unknown)
    return f"history has no case of this client, and none that did what its own procedure asks for: {names}"


def _critical_tasks(
    cases: list[SimilarCase], completeness: Completeness, request: Request, context: GenerationContext
) -> list[frozenset[str]]:
    """Returns groups of tasks of which similar cases needed one each; events are not among them."""
    if Part.CRITICAL_TASKS in context.without:
        return []
    if completeness.rule != OUTCOMES:
        return completeness.critical
    intake, index = request.intake, context.index
    settings, usual = context.settings.generation, None
    if cases and cases[0].similarity < LEAST_COSINE and index.is_new_client(intake.client, intake.industry):
        counts = counts_of(index, intake.industry)
        usual = {t for t, share in zip(counts.tasks, counts.of_all, strict=True) if share > settings.usual_share}
    groups = critical_tasks(cases, index.critical_task_rows(intake.industry), intake.client, settings, usual)
    return [steps for group in groups if (steps := group - index.passive)]


def _processes(
    first: ProcessDemand, request: Request, procedure: ParsedProcedure | None, context: GenerationContext
) -> list[ProcessDemand]:
    """Returns the processes that the request asks for.

    It is one where a part of the procedure decides what to do, or where the intake has several Intentions.
    """
    if not request.is_only or (procedure and procedure.has_goal) or not context.without.isdisjoint(_ALONE):
        return [first]
    return combined_processes(first, request.intention, request.intake, context.index, context.settings.generation)
