"""One intake to its ranked workflows: encode, route, subgraphs, sequences, Workflow Graph, candidates, ranking.

The flow of DESIGN section 2, composed; every step is a function of the package that owns it.
"""

from dataclasses import dataclass

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.generation.candidates import candidates
from opus_pipelines.generation.contract_settings import Review
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.knowledge import Knowledge
from opus_pipelines.generation.needed import needed_tasks
from opus_pipelines.generation.order import settled_order
from opus_pipelines.generation.prices import Prices
from opus_pipelines.generation.situation import Candidate, Situation
from opus_pipelines.ids import make_id
from opus_pipelines.intention.encode import Intention, encode_intention
from opus_pipelines.intention.routing import Routed, route
from opus_pipelines.lwm.history import first_occurrences
from opus_pipelines.lwm.interface import LargeWorkModel, LwmRequest, NearCase, TaskSequence
from opus_pipelines.optimization.baseline import Baseline, baseline
from opus_pipelines.settings import Cost, Settings
from opus_pipelines.subgraph.neighbourhoods import neighbourhoods
from opus_pipelines.subgraph.steiner import SubWKG, steiner
from opus_pipelines.wfg.algorithm1 import WFG, workflow_graph
from opus_pipelines.wfg.dag import chain
from opus_pipelines.workflow.files import Weights

BASELINE_CASES = 25
ENDS_OF_CASES = 3  # near cases whose first and last task a subgraph must reach, so that a sequence in it can begin and end


@dataclass(frozen=True)
class Generated:
    """Everything one Intention led to. `sequences` carry their ids; subgraphs are numbered from 0."""

    intention_id: str
    intention: Intention
    routed: list[Routed]
    cases: list[NearCase]
    subgraphs: list[tuple[str, SubWKG]]
    sequences: dict[str, TaskSequence]
    wfg: WFG
    ranked: list[tuple[int, Candidate]]
    prices: Prices
    baseline: Baseline
    weights: Weights


@dataclass(frozen=True)
class Refused:
    """Why nothing was generated, for the person who sent the intake."""

    reason: str


def generate(
    intake: Intake, knowledge: Knowledge, encoder: TextEncoder, model: LargeWorkModel, cost: Cost, settings: Settings,
    review: Review | None = None,
) -> Generated | Refused:
    """Ranked workflows of an intake, or why there are none. Deterministic: the same inputs give the same rows."""
    if reason := intake.refusal or knowledge.strangeness(intake.industry):
        return Refused(reason)
    intention = encode_intention(intake.elements, intake.title, encoder)
    intention_id = make_id("n", intake.intake_id, 0)
    graph = knowledge.graph
    knobs = settings.generation
    routed = route(knowledge.index, graph, intention.vector, intake.industry, knobs.routing_top_k, knobs.routing_threshold)
    cases = knowledge.cases.near(intention.vector, intake.industry, knobs.near_cases)
    subgraphs = _subgraphs(intention_id, knowledge, routed, cases)
    if not subgraphs:
        return Refused("nothing in the Work Knowledge Graph is near this intake: neither a task nor a case of history")
    written = model.generate(LwmRequest(intention.vector, graph, [s for _, s in subgraphs], cases, knobs.seed))
    sequences = {make_id("q", intention_id, s.subgraph, s.tasks): s for s in written}
    wfg = workflow_graph({i: chain(s.tasks) for i, s in sequences.items()}, graph)
    prices = Prices.of(graph, {n.task_id for n in wfg.nodes.values() if n.task_id}, cost, settings)
    situation = Situation(
        intake, intention_id, graph, wfg, cases, {i: first_occurrences(s.tasks) for i, s in sequences.items()},
        needed_tasks(cases, knowledge.needs_of(intake.industry), intake.client, knobs), settled_order(cases, knobs.settled_share),
        intake.constraints, review or Review(), prices, cost, settings, knowledge.names,
    )
    rows = [_row(c) for c in cases[:BASELINE_CASES]]
    return Generated(
        intention_id, intention, routed, cases, subgraphs, sequences, wfg, candidates(situation), prices, baseline(rows, cost),
        Weights.of(cost, settings.reward),
    )


def _subgraphs(intention_id: str, knowledge: Knowledge, routed: list[Routed], cases: list[NearCase]) -> list[tuple[str, SubWKG]]:
    """One SWKG a neighbourhood, LWM (6)-(8); the near cases' first and last tasks are terminals beside the routed ones."""
    seeds = {r.id: r.similarity for r in routed}
    for case in [c for c in cases if c.tasks][:ENDS_OF_CASES]:
        for task in (case.tasks[0], case.tasks[-1]):
            seeds.setdefault(task, min([r.similarity for r in routed], default=0.0))
    found = neighbourhoods(knowledge.graph, sorted(seeds.items()))
    made = [steiner(knowledge.graph, n.terminals, n.tasks) for n in found]
    return [(make_id("g", intention_id, number, sorted(s.tasks)), s) for number, s in enumerate(made)]


def _row(case: NearCase) -> dict[str, object]:
    return {
        "task_cost_usd": case.task_cost_usd, "task_duration_ms": case.task_duration_ms, "actor_kinds": case.actor_kinds,
        "success": case.success,
    }
