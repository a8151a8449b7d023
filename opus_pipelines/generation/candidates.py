"""From the Workflow Graph to evaluated candidates: the k best paths that hold what is needed, and the sequences that do.

The cheapest path is a trap (DESIGN 5): a path that leaves out a needed task is offered only where none has it, and then
it is infeasible and says what it lacks.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from opus_pipelines.evaluation.reward import Evaluation, evaluate
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.names import Names
from opus_pipelines.generation.order import breaks, forward
from opus_pipelines.ids import make_id
from opus_pipelines.optimization.constraints import violations
from opus_pipelines.optimization.cost import NodeCost, node_cost
from opus_pipelines.optimization.paths import k_best
from opus_pipelines.optimization.ranking import diverse, rank
from opus_pipelines.optimization.ways import choose_way
from opus_pipelines.settings import Cost, Settings
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG
from opus_pipelines.wkg.graph import Way, WorkGraph
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

PATHS_PER_RANK = 4  # cheapest paths looked at for every workflow that is kept: Reward orders them anew


@dataclass(frozen=True)
class Candidate:
    """One evaluated workflow. `transitions`: how often history went along its edges."""

    id: str
    tasks: tuple[str, ...]
    workflow: Workflow
    evaluation: Evaluation
    path_cost_usd: float
    transitions: int
    violations: tuple[str, ...]
    sequence_ids: tuple[str, ...]
    penalty: float | None = None

    @property
    def reward_usd(self) -> float:
        """EVAL (7)."""
        return self.evaluation.reward_usd

    @property
    def feasible(self) -> bool:
        """EVAL (12)."""
        return not self.violations


@dataclass(frozen=True)
class Prices:
    """Figures of every task in the way it is done, LWM (12): computed once an intake."""

    ways: dict[str, Way]
    costs: dict[str, NodeCost]

    @classmethod
    def of(cls, graph: WorkGraph, tasks: Collection[str], cost: Cost, settings: Settings) -> "Prices":
        """Each task in its most frequent way."""
        ways = {t: choose_way(graph.tasks[t]) for t in sorted(tasks)}
        return cls(ways, {t: node_cost(graph.tasks[t], way, cost, settings.priors) for t, way in ways.items()})


@dataclass(frozen=True)
class Situation:
    """What one Intention's candidates are made from; `sequences` by id, `needed` groups of which any one task does."""

    intake: Intake
    intention_id: str
    graph: WorkGraph
    wfg: WFG
    sequences: dict[str, tuple[str, ...]]
    needed: Sequence[frozenset[str]]
    order: frozenset[tuple[str, str]]
    prices: Prices
    cost: Cost
    settings: Settings
    names: Names


def candidates(situation: Situation) -> list[tuple[int, Candidate]]:
    """The `generation.k` best workflows with their ranks, EVAL (13), each different in its tasks from every better one."""
    constraints, names, settings = situation.intake.constraints, situation.names, situation.settings
    demanded = [names.tasks(name) & situation.wfg.nodes.keys() for name in constraints.must_contain]
    required = [*situation.needed, *filter(None, demanded)]
    forbidden = frozenset[str]().union(*(names.tasks(name) for name in constraints.must_not_contain))
    found = _paths(situation, required, forbidden)
    found |= {tasks for tasks in situation.sequences.values() if all(group & set(tasks) for group in required)}
    found = {tasks for tasks in found if not breaks(tasks, situation.order)} or found
    ordered = [c for _, c in rank([_candidate(situation, tasks) for tasks in sorted(found)], settings.reward.quantum_usd)]
    return list(enumerate(diverse(ordered, settings.generation.diversity)[: settings.generation.k], start=1))


def _paths(situation: Situation, required: Sequence[frozenset[str]], forbidden: frozenset[str]) -> set[tuple[str, ...]]:
    """The cheapest paths in history's order with all that is required and nothing forbidden; where none is, less is asked in turn."""
    k = situation.settings.generation.k * PATHS_PER_RANK
    costs, kappa = situation.prices.costs, situation.cost.kappa_usd
    ahead, whole = forward(situation.wfg, situation.order), situation.wfg
    demands: list[tuple[WFG, Sequence[frozenset[str]], frozenset[str]]] = [
        (ahead, required, forbidden), (whole, required, forbidden), (whole, required, frozenset()), (whole, (), frozenset()),
    ]
    for wfg, groups, without in demands:
        result = k_best(wfg, lambda node: costs[node].path_cost_usd, kappa, k, groups, without)
        if result.paths:
            return {path.tasks for path in result.paths}
    return set()


def _candidate(situation: Situation, tasks: tuple[str, ...]) -> Candidate:
    graph, intake = situation.graph, situation.intake
    workflow = chain_workflow(tasks, graph, situation.prices, intake)
    evaluation = evaluate(workflow, situation.cost, situation.settings.reward)
    lacking = [
        f"needed: {_either(group, graph)} is left out, and history failed without it"
        for group in situation.needed if not group & set(tasks)
    ]
    broken = violations(intake.constraints, evaluation, [graph.tasks[t].title for t in tasks], situation.names.titles)
    return Candidate(
        make_id("f", situation.intention_id, tasks), tasks, workflow, evaluation,
        path_cost_usd=sum(situation.prices.costs[t].path_cost_usd for t in tasks),
        transitions=sum(edge.transitions for pair in pairwise(tasks) if (edge := situation.wfg.edges.get(pair))),
        violations=(*lacking, *broken),
        sequence_ids=_behind(tasks, situation.sequences),
    )


def chain_workflow(tasks: Sequence[str], graph: WorkGraph, prices: Prices, intake: Intake) -> Workflow:
    """The chain input → tasks → output as a Workflow; every task in its way."""
    nodes = [_node(t, graph, prices) for t in tasks]
    steps = [INPUT, *tasks, OUTPUT]
    ends = InputNode(INPUT, intake.title or "Client input"), OutputNode(OUTPUT, "Client output", intake.gain_usd)
    return Workflow.of([ends[0], *nodes, ends[1]], pairwise(steps))


def _node(task: str, graph: WorkGraph, prices: Prices) -> TaskNode:
    way, figures = prices.ways[task], prices.costs[task]
    return TaskNode(
        task, task, graph.tasks[task].title, figures.p, figures.p_basis, figures.q, figures.q_basis,
        figures.cost_usd, figures.cost_compute_usd, figures.cost_model_usd, figures.cost_human_usd, figures.cost_basis,
        figures.duration_ms, figures.duration_basis, way.memory_gb or 0.0, way.threads or 0.0, way.actor_kind, way.model,
    )


def _behind(tasks: tuple[str, ...], sequences: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The sequences that are this very workflow; where none is, those that brought its edges."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))


def _either(group: frozenset[str], graph: WorkGraph) -> str:
    return " or ".join(repr(graph.tasks[t].title) for t in sorted(group))
