"""The ablations that `parts.py` and other benchmarks measure with.

An ablation leaves out or spoils exactly one part, so that the difference shows what the part is worth. What it does not
name stays as it is: without edges, for example, tasks keep their costs, times and probabilities.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from opus_pipelines.generation.records import GenerationContext, Part, Request
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.language.embedding.texts import unit
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.systems import SEED, WHOLE
from opus_pipelines.wkg.graph import Edge, WorkGraph
from opus_pipelines.wkg.snapshot import Snapshot

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


NO_ABLATION = Ablation(WHOLE, "nothing is left out")
