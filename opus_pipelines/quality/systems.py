"""The systems of an evaluation: the pipeline itself, whole or with an ablation, and the controls beside it.

An ablation leaves out or spoils exactly one part, so that the difference shows what the part is worth. What it does not
name stays as it is: without edges, for example, tasks keep their costs, times and probabilities.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.generation.flow import rank_workflows, read_requests
from opus_pipelines.generation.records import GenerationContext, Part, Ranked, Refused, Request
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.language.embedding.texts import plain, unit
from opus_pipelines.lwm.history_backend import HistoryBackend, first_occurrences
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue
from opus_pipelines.lwm.retrieval.intentions import UNKNOWN_INDUSTRY
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.task_set import Item
from opus_pipelines.wkg.graph import Edge, WorkGraph
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import Plan

SEED = 0
_MODEL, _ENCODER = "no trained model", "untrained Intention"


class IndexWithGraph(SnapshotIndex):
    """The lookups of a snapshot with another graph."""

    def __init__(self, snapshot: Snapshot, graph: WorkGraph) -> None:
        super().__init__(snapshot)
        self._graph = graph

    @property
    def graph(self) -> WorkGraph:
        """The other graph."""
        return self._graph


@dataclass(frozen=True)
class Ablation:
    """One ablation; each function returns its argument unchanged where the ablation does not concern it.

    `intakes` receives all intakes of the task set, `requests` all encoded requests; both keep the order.
    """

    name: str
    about: str
    context: Callable[[GenerationContext], GenerationContext] = lambda context: context
    intakes: Callable[[Sequence[Intake]], Sequence[Intake]] = lambda intakes: intakes
    requests: Callable[[Sequence[Request]], Sequence[Request]] = lambda requests: requests


def flat(edges: Sequence[Edge], _graph: WorkGraph) -> list[Edge]:
    """Returns the edges with the mean figures of all: every gamma is the same, every successor equally likely."""
    out = _out_degree(edges)
    transitions, variants = (round(fmean(v)) for v in zip(*((e.transitions, e.variants) for e in edges), strict=True))
    gamma, rest = fmean(e.gamma for e in edges), fmean(e.one_minus_gamma for e in edges)
    return [Edge(e.src, e.dst, transitions, variants, gamma, rest, 1 / out[e.src]) for e in edges]


def shuffled(edges: Sequence[Edge], graph: WorkGraph) -> list[Edge]:
    """Returns the edges with their figures exchanged among edges of tasks of equal industries and equal out-degree.

    The probabilities of a task's edges are then scaled to their former sum.
    """
    out, order = _out_degree(edges), random.Random(SEED)
    strata: dict[tuple[tuple[str, ...], int], list[Edge]] = defaultdict(list)
    for edge in edges:
        strata[graph.tasks[edge.src].industries, out[edge.src]].append(edge)
    mixed = [
        replace(figures, src=edge.src, dst=edge.dst)
        for group in strata.values()
        for edge, figures in zip(group, order.sample(group, len(group)), strict=True)
    ]
    before, after = _mass(edges), _mass(mixed)
    return [replace(e, probability=e.probability * before[e.src] / (after[e.src] or 1.0)) for e in mixed]


def without_shifts(edges: Sequence[Edge], _graph: WorkGraph) -> list[Edge]:
    """Returns the edges without what they say of the later task's figures."""
    return [replace(edge, shift=None) for edge in edges]


def _out_degree(edges: Sequence[Edge]) -> dict[str, int]:
    degree: dict[str, int] = defaultdict(int)
    for edge in edges:
        degree[edge.src] += 1
    return degree


def _mass(edges: Sequence[Edge]) -> dict[str, float]:
    mass: dict[str, float] = defaultdict(float)
    for edge in edges:
        mass[edge.src] += edge.probability
    return mass


def constant_intention(requests: Sequence[Request]) -> list[Request]:
    """Returns the requests with the mean Intention and the mean client input of all, and without the input's text.

    Without its text, a trained model cannot read the clauses of a request.
    """
    vector = unit(np.mean([r.intention.vector for r in requests], 0))
    text = unit(np.mean([unit(r.intention.parts["input"].mean(0)) for r in requests], 0))
    return [
        replace(
            r,
            intake=replace(r.intake, elements=[e for e in r.intake.elements if e.role != "input"]),
            intention=replace(r.intention, vector=vector, parts={**r.intention.parts, "input": text[None, :]}),
        )
        for r in requests
    ]


def other_context(intakes: Sequence[Intake]) -> list[Intake]:
    """Returns the intakes, each with the process context of another one of its industry.

    One with another text is preferred; an intake without a process context, or alone in its industry, stays as it is.
    """
    by_industry: dict[str | None, list[Intake]] = defaultdict(list)
    for intake in intakes:
        by_industry[intake.industry].append(intake)
    return [_with_context_of_another(intake, by_industry[intake.industry]) for intake in intakes]


def _with_context_of_another(intake: Intake, industry: Sequence[Intake]) -> Intake:
    own = _context(intake)
    others = [o for o in industry if o.intake_id != intake.intake_id and _context(o)]
    different = [o for o in others if _context(o) != own] or others
    if not own or not different:
        return intake
    other = random.Random(f"{SEED} {intake.intake_id}").choice(different)
    kept = [e for e in intake.elements if e.role in ("input", "output")]
    return replace(intake, elements=[*kept, *(e for e in other.elements if e.role not in ("input", "output"))])


def _context(intake: Intake) -> list[str | None]:
    return [e.text for e in intake.elements if e.role not in ("input", "output")]


def _with_edges(change: Callable[[Sequence[Edge], WorkGraph], list[Edge]]) -> Callable[..., GenerationContext]:
    def changed(context: GenerationContext) -> GenerationContext:
        graph = context.index.graph
        edges = change(list(graph.edges.values()), graph) if graph.edges else []
        other = WorkGraph.of(list(graph.tasks.values()), edges)
        return replace(context, index=IndexWithGraph(context.index.snapshot, other))

    return changed


def _without(part: Part) -> Callable[[GenerationContext], GenerationContext]:
    return lambda context: replace(context, without=context.without | {part})


def _no_reviews(context: GenerationContext) -> GenerationContext:
    return replace(context, terms=replace(context.terms, review=Review()))


def _untrained_intention(context: GenerationContext) -> GenerationContext:
    model = context.model
    return replace(context, model=model.without_encoder() if isinstance(model, PointerBackend) else model)


def _no_trained_model(context: GenerationContext) -> GenerationContext:
    return replace(context, model=HistoryBackend())


ABLATIONS: dict[str, Ablation] = {
    a.name: a
    for a in (
        Ablation("gamma flat", "all edges have the same figures", _with_edges(flat)),
        Ablation(
            "gamma shuffled", "edges of equal industry and out-degree exchange their figures", _with_edges(shuffled)
        ),
        Ablation("no pairs", "the figures of a task do not depend on the task before it", _with_edges(without_shifts)),
        Ablation("no edges", "the Work Knowledge Graph has no edges", _with_edges(lambda edges, graph: [])),
        Ablation("no similar cases", "no case of history is retrieved", _without(Part.SIMILAR_CASES)),
        Ablation("no procedure", "the intake's own procedure is not read", _without(Part.PROCEDURE)),
        Ablation(_MODEL, "similar cases alone say what a request leads to", _no_trained_model),
        Ablation(_ENCODER, "no trained encoder says what an Intention leads to", _untrained_intention),
        Ablation("no routing", "no task is near the Intention", _without(Part.ROUTING)),
        Ablation("constant Intention", "all requests are encoded as their mean", requests=constant_intention),
        Ablation("other context", "each intake has the process context of another one", intakes=other_context),
        Ablation(
            "no critical tasks", "no task is required because cases failed without it", _without(Part.CRITICAL_TASKS)
        ),
        Ablation(
            "no unknown steps",
            "a new client's procedure asks for no step that history lacks",
            _without(Part.UNKNOWN_STEPS),
        ),
        Ablation("no SWKG", "the LWM writes in the whole graph of the industry", _without(Part.SUBGRAPHS)),
        Ablation("no Algorithm 1", "no edge of the graph joins two sequences", _without(Part.ALGORITHM_1)),
        Ablation("no reviews", "no review is placed", _no_reviews),
        Ablation("no composition", "an intake demands one process only", _without(Part.COMPOSITION)),
    )
}


def applies(name: str, model: LargeWorkModel) -> bool:
    """Returns whether an ablation means something for a backend: whether a trained model serves an industry."""
    if name == _ENCODER:
        return isinstance(model, PointerBackend) and model.encoder is not None and bool(model.encoder.industries)
    if name == _MODEL:
        return isinstance(model, PointerBackend) and model.champion is not None and bool(model.champion.industries)
    return True


GENERATED, REFUSED, FAILED = "generated", "refused", "failed"
NO_PLAN = Plan(())
NO_ABLATION = Ablation("whole system", "nothing is left out")


@dataclass(frozen=True)
class Prediction:
    """The plan for one item; where there is none, `status` and `reason` say why."""

    plan: Plan = NO_PLAN
    status: str = GENERATED
    reason: str | None = None


def predict(
    items: Sequence[Item],
    context: GenerationContext,
    ablation: Ablation = NO_ABLATION,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> list[Prediction]:
    """Returns the rank-1 workflow of every item by the pipeline under an ablation; one that fails costs itself only."""
    contexts = _with_catalogues(items, ablation.context(context))
    intakes = ablation.intakes([intake_of(item) for item in items])
    encoded = [_requested(intake, own) for intake, own in zip(intakes, contexts, strict=True)]
    known = [request for request in encoded if isinstance(request, Request)]
    altered = iter(ablation.requests(known) if known else [])
    predictions = []
    for done, (request, own) in enumerate(zip(encoded, contexts, strict=True), 1):
        predictions.append(request if isinstance(request, Prediction) else _ranked(next(altered), own))
        report(done, len(encoded))
    return predictions


def _with_catalogues(items: Sequence[Item], context: GenerationContext) -> list[GenerationContext]:
    """Returns a context for each item, in which the item's catalogue is that of its contract.

    So a tool that no case of history has can be predicted. Items with equal catalogues share what is known of it.
    """
    shared: dict[frozenset[tuple[str, str]], GenerationContext] = {}
    for tools in {frozenset(item.catalogue.items()) for item in items if item.catalogue}:
        listed = enumerate(sorted(tools), 1)
        tasks = {plain(name): DeclaredTask(name, "", n, text or None) for n, (name, text) in listed}
        owner = ("evaluation", digest(sorted(tools)))
        catalogue = ContractCatalogue(context.index, *owner, Catalogue(tuple(tasks.values())))
        shared[tools] = replace(context, catalogue=catalogue)
    return [shared.get(frozenset(item.catalogue.items()), context) for item in items]


def intake_of(item: Item) -> Intake:
    """Returns the intake of an item, as if its texts were documents."""
    texts = (("input", item.request), ("output", item.output), ("process", item.context))
    elements = [
        Element(
            make_id("e", item.id, role), role, "text", f"{role}.txt", "text/plain", text, len(text), digest(text), None
        )
        for role, text in texts
        if text
    ]
    return Intake(make_id("k", "evaluation", item.id), item.id, None, elements, industry=item.industry)


def _requested(intake: Intake, context: GenerationContext) -> Request | Prediction:
    """The first Intention of an intake, or why there is none."""
    try:
        return read_requests(intake, context)[0]
    except Exception as error:
        return _none(error)


def _ranked(request: Request, context: GenerationContext) -> Prediction:
    try:
        return Prediction(plan_of(rank_workflows(request, context), context))
    except (
        Exception
    ) as error:  # one item's failure must not fail the others; it counts as an empty plan, with its reason
        return _none(error)


def _none(error: Exception) -> Prediction:
    if isinstance(error, Refused):
        return Prediction(status=REFUSED, reason=str(error))
    return Prediction(
        status=FAILED, reason=str(error) if isinstance(error, OpusError) else f"{type(error).__name__}: {error}"
    )


def plan_of(made: Ranked, context: GenerationContext) -> Plan:
    """Returns the rank-1 workflow as a plan in the words of history: the raw name that the most similar cases use.

    A task that only the catalogue has goes by its name there. Links are the workflow's edges between tasks; a review
    between two tasks links them.
    """
    keys: dict[str, Counter[str]] = {}
    for case in made.evidence.cases:
        for task, key in zip(case.tasks, case.task_keys, strict=True):
            keys.setdefault(task, Counter())[key] += 1
    raw, tasks = context.index.raw_keys, made.drafted.graph.tasks
    declared = _names_of_declared(made, context)

    def name_of(task: str) -> str:
        if task in keys:
            return min(keys[task].items(), key=lambda pair: (-pair[1], pair[0]))[0]
        return raw[task][0] if task in raw else declared.get(task, tasks[task].title)

    workflow = made.ranked[0][1].workflow
    names = {node.id: name_of(node.task_id) for node in workflow.tasks if not node.is_review}
    after: dict[str, list[str]] = {}
    for src, dst in workflow.edges:
        after.setdefault(src, []).append(dst)

    def next_tasks(node: str) -> list[str]:
        return [n for dst in after.get(node, ()) for n in ([dst] if dst in names else next_tasks(dst))]

    links = frozenset((names[node], names[other]) for node in names for other in next_tasks(node))
    return Plan(tuple(names[node] for node in workflow.topological() if node in names), links)


def _names_of_declared(made: Ranked, context: GenerationContext) -> dict[str, str]:
    if not made.drafted.declared:
        return {}
    industries = (made.request.intake.industry, UNKNOWN_INDUSTRY)  # the second where no case is like the intake
    tools = (tool for industry in industries for tool in context.history(industry).resolved.by_name.values())
    return {tool.task_id: tool.tool.name for tool in tools if tool.task_id in made.drafted.declared}


# --- controls

NEAREST, FREQUENT, ONE_TASK, OTHER, GOLD = (
    "control: nearest case",
    "control: most frequent sequence",
    "control: one task",
    "floor: another item's gold",
    "ceiling: gold",
)
CONTROLS = (NEAREST, FREQUENT, ONE_TASK, OTHER, GOLD)


def controls(items: Sequence[Item], context: GenerationContext) -> dict[str, list[Prediction]]:
    """Returns the predictions of each control, in the order of the items.

    The nearest case is the most similar one that did not fail; the most frequent sequence that of the item's industry;
    the one task is the task nearest to the Intention. The floor is the reference of another item, the ceiling its own.
    """
    requests = [_requested(intake_of(item), context) for item in items]
    others = _others(items)
    frequent: dict[str | None, Plan] = {}
    found: dict[str, list[Prediction]] = {name: [] for name in CONTROLS}
    for item, request, other in zip(items, requests, others, strict=True):
        if item.industry not in frequent:
            frequent[item.industry] = most_frequent(item.industry, context)
        for name, control in ((NEAREST, _nearest), (ONE_TASK, _one_task)):
            found[name].append(request if isinstance(request, Prediction) else Prediction(control(request, context)))
        found[FREQUENT].append(Prediction(frequent[item.industry]))
        found[OTHER].append(Prediction(other))
        found[GOLD].append(Prediction(item.gold))
    return found


def _nearest(request: Request, context: GenerationContext) -> Plan:
    most = context.settings.generation.near_cases
    near = context.index.cases.near(request.intention.vector, request.intake.industry, most)
    right = next((case for case in near if case.success is not False and case.task_keys), None)
    return Plan(first_occurrences(right.task_keys)) if right else NO_PLAN


def most_frequent(industry: str | None, context: GenerationContext) -> Plan:
    """Returns the most frequent sequence of raw names among the industry's cases that did not fail."""
    cases, count = context.index.cases, Counter[tuple[str, ...]]()
    rows = cases.rows_of(industry).tolist()
    for case in cases.at(rows, [1.0] * len(rows), 1.0):
        if case.success is not False and case.task_keys:
            count[first_occurrences(case.task_keys)] += 1
    return Plan(min(count.items(), key=lambda pair: (-pair[1], pair[0]))[0]) if count else NO_PLAN


def _one_task(request: Request, context: GenerationContext) -> Plan:
    index, industry = context.index, request.intake.industry
    (near,) = index.index.search(unit(request.intention.vector)[None, :], len(index.graph.tasks))
    fits = (t for t, _ in near if industry is None or industry in index.graph.tasks[t].industries)
    task = next((t for t in fits if t not in index.passive), None)
    return Plan((index.raw_keys.get(task, [index.graph.tasks[task].title])[0],)) if task else NO_PLAN


def _others(items: Sequence[Item]) -> list[Plan]:
    """For each item the gold plan of another one of its industry with other steps, drawn with a seed."""
    plans = []
    for item in items:
        others = [o.gold for o in items if o.industry == item.industry and o.group != item.group]
        plans.append(random.Random(f"{SEED} {item.id}").choice(others) if others else NO_PLAN)
    return plans
