"""Stage 3: task sequences of the LWM, and the Workflow Graph that joins them."""

from dataclasses import replace

from opus_pipelines.core.ids import make_id
from opus_pipelines.generation.planning.standing_decisions import with_chosen
from opus_pipelines.generation.records import Drafted, GenerationContext, Retrieved
from opus_pipelines.lwm.interface import LwmRequest, PricedModel
from opus_pipelines.lwm.retrieval.intentions import UNKNOWN_INDUSTRY
from opus_pipelines.lwm.retrieval.requested_steps import nearest_tasks, with_new_steps
from opus_pipelines.lwm.stitching import Stitched
from opus_pipelines.lwm.workflow_graph import Dag, chain, join_components, linear_extensions, workflow_graph


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
    usage = context.model.usage(asked) if isinstance(context.model, PricedModel) else None
    written = with_chosen(written, evidence.decided, subgraphs)
    sequences = {make_id("q", request.intention_id, s.subgraph, s.tasks): s for s in written}
    wfg = workflow_graph({name: _dag(s.tasks, retrieved.stitched) for name, s in sequences.items()}, graph)
    wfg = join_components(wfg, graph, index.task_similarity)
    industry = request.intake.industry
    like = None if index.unknown_industry_reason(industry) else industry  # no task of an unknown industry is known
    if industry is None and retrieved.unlike:
        industry = UNKNOWN_INDUSTRY
    steps = evidence.procedure.steps if evidence.procedure else ()
    asked_for = {*evidence.completeness.consensus_tasks, *(step.task_id for step in steps)}
    declared = context.history(industry).resolved.declared(asked_for)
    new = [step for step in steps if step.task_id not in declared]
    nearest = nearest_tasks(new, graph, index.index, like, context.encoder)
    whole = with_new_steps(graph, new, nearest)
    whole = replace(whole, tasks=whole.tasks | declared) if declared else whole
    return Drafted(retrieved, sequences, wfg, whole, nearest, usage, frozenset(declared))


def _dag(tasks: tuple[str, ...], stitched: Stitched | None) -> Dag:
    """Returns dag_s of a sequence: the stitched plan branches where its order is not known, any other is a chain."""
    return linear_extensions(tasks, stitched.waits) if stitched and tasks == stitched.tasks else chain(tasks)
