"""A cache of plans: many intakes of a contract have the same tasks and the same requirements.

Everything in it follows from a `PlanCacheKey` alone, so that the result of an intake does not depend on the intakes
before it.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.confidence import reward_draws
from opus_pipelines.generation.planning.explanations import binding_limits, explain_choices
from opus_pipelines.generation.planning.penalty_scores import TaskFactIndex, penalty_scores
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.planning.ranking_context import RankingContext
from opus_pipelines.generation.planning.reviewers import reviewers_of
from opus_pipelines.generation.search.local_search import LocalSearch, RefinedPlan
from opus_pipelines.generation.search.plan_states import PlanSpace
from opus_pipelines.generation.search.search_limits import stated
from opus_pipelines.generation.search.variations import Variations
from opus_pipelines.lwm.precedence import OrderFacts, independent_pairs, violates
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.workflow.evaluation.penalty import Scores, WorkflowPenalties
from opus_pipelines.workflow.evaluation.reward import Evaluation, evaluate
from opus_pipelines.workflow.model import INPUT, OUTPUT, InputNode, OutputNode, TaskNode, Workflow

PLAN_CACHES = 32  # kept, the least used goes first: a few megabytes each
_RESULTS_KEPT = 256  # of what one has worked out, of each kind
INPUT_TITLE = "Client input"
Pair = tuple[str, str]
Group = frozenset[str]


@dataclass(frozen=True)
class PlanCacheKey:
    """All that decides which plans are best for the tasks of a Workflow Graph; keys with the same content are equal.

    Attributes:
        execution_modes: those of each task, in order of the tasks' ids.
        known: what the WKG knows of these tasks, in the same order.
        gain_usd: the stated gain in USD; None where none is stated.
        weights: cost, Reward, scores and priors, as JSON.
        seed: seed of the draws.
        reviewers: who may review.
        limits: name and value of each limit on a whole workflow.
        required: groups of tasks; a plan must have one task of each.
        forbidden: tasks that no plan may have.
        exclusive: groups of options; a plan may have tasks of one option of a group.
        precedence: pairs (a, b) of tasks such that a must come before b.
        independent: pairs of tasks that history shows independent.
        edges: pairs of tasks that follow each other in the Workflow Graph.
        is_needed: whether any critical task is known.
        wkg: identity of the WKG's edges.
    """

    execution_modes: tuple[tuple[TaskNode, ...], ...] = field(hash=False)  # the edges below have the same tasks
    known: tuple[Task, ...] = field(hash=False)
    gain_usd: float | None
    weights: tuple[str, ...]
    seed: int
    reviewers: tuple[TaskNode, ...]
    limits: tuple[tuple[str, float], ...]
    required: tuple[Group, ...]
    forbidden: Group
    exclusive: tuple[tuple[Group, ...], ...]
    precedence: frozenset[Pair]
    independent: frozenset[Pair]
    edges: frozenset[Pair]
    is_needed: bool
    wkg: int
    graph: WorkGraph = field(compare=False)
    prices: Prices = field(compare=False)
    cost: Cost = field(compare=False)
    settings: Settings = field(compare=False)

    @classmethod
    def of(cls, context: RankingContext) -> "PlanCacheKey":
        """Returns the key of one Intention."""
        graph, settings, names, nodes = (
            context.draft.graph,
            context.settings,
            context.requirements.names,
            context.draft.prices.nodes,
        )
        tasks = sorted(nodes)
        stated_order = (product(names.tasks(a), names.tasks(b)) for a, b in context.requirements.constraints.before)
        return cls(
            tuple(nodes[t] for t in tasks),
            tuple(graph.tasks[t] for t in tasks),
            context.intake.gain_usd,
            tuple(part.model_dump_json() for part in (context.cost, settings.reward, settings.scores, settings.priors)),
            settings.generation.seed,
            reviewers_of(context),
            tuple(stated(context.requirements.constraints).items()),
            tuple(map(frozenset, context.required)),
            context.forbidden,
            tuple(context.exclusive),
            frozenset(context.requirements.order | {(a, b) for pairs in stated_order for a, b in pairs if a != b}),
            independent_pairs(tasks, context.seen, graph),
            frozenset(context.draft.wfg.edges),
            bool(context.requirements.critical),
            id(graph.edges),
            graph,
            context.draft.prices,
            context.cost,
            settings,
        )


class PlanCache:
    """Plans, evaluations and draws for one key, each computed once."""

    def __init__(self, key: PlanCacheKey) -> None:
        self.key, self._task_facts = key, TaskFactIndex(key.graph)
        self.refiner = LocalSearch(
            PlanSpace(
                (InputNode(INPUT, INPUT_TITLE), OutputNode(OUTPUT, "Client output", key.gain_usd)),
                {modes[0].task_id: modes for modes in key.execution_modes},
                _facts(key),
                key.cost,
                key.settings.reward,
                key.reviewers,
                dict(key.limits),
                self._permitted,
                self._follows,
                self._joins,
                lambda workflow: self.measured(workflow)[1].penalty,
                key.graph.shifts,
            )
        )
        keep = lru_cache(_RESULTS_KEPT)
        self.initial_plan = keep(lambda tasks, picks: self.refiner.initial_plan(tasks, dict(picks)))
        self.refine = keep(self._refine)
        self.apply_moves = keep(self.refiner.apply_moves)
        self.workflow = keep(lambda plan: self.refiner.workflow(plan.state))
        self.choices = keep(lambda plan: explain_choices(self.refiner, plan))
        self.binding = keep(lambda plan: binding_limits(self.refiner, plan))
        self.variations = keep(lambda plan, most: Variations.of(self.refiner, plan, most))
        self.draws = keep(lambda workflow: reward_draws(workflow, key.prices, key.cost, key.settings, key.graph.shifts))
        self.worth = keep(self._worth)
        self.measured = keep(self._measured)

    def _refine(self, plan: RefinedPlan, taken: frozenset[Group]) -> RefinedPlan:
        """Refines a plan by every small edit that helps; no edit leads to a set of tasks that is `taken`."""
        space = self.refiner.space
        free = replace(space, permitted=lambda tasks: frozenset(tasks) not in taken and self._permitted(tasks))
        return replace(self.refiner, space=free).refine(plan)

    def _worth(self, workflow: Workflow) -> Evaluation:
        return evaluate(workflow, self.key.cost, self.key.settings.reward)

    def _measured(self, workflow: Workflow) -> tuple[dict[str, Scores], WorkflowPenalties]:
        return penalty_scores(workflow, self._task_facts, self.key.settings)

    def _follows(self, before: str, behind: str) -> bool:
        """Tells whether `behind` may follow `before` where a task between them is dropped.

        Where no critical task is known, none is dropped: nothing tells which tasks are not critical.
        """
        return self.key.is_needed and (before, behind) in self.key.edges

    def _joins(self, before: str, new: str) -> bool:
        """Tells whether `new` may be added behind `before`: history did so, or the task is required."""
        return (before, new) in self.key.edges or any(new in group for group in self.key.required)

    def _permitted(self, tasks: tuple[str, ...]) -> bool:
        present, key = frozenset(tasks), self.key
        return (
            bool(present)
            and not present & key.forbidden
            and all(group & present for group in key.required)
            and not violates(tasks, key.precedence)
            and all(sum(not option.isdisjoint(present) for option in group) < 2 for group in key.exclusive)
        )


@lru_cache(PLAN_CACHES)
def plan_cache_of(key: PlanCacheKey) -> PlanCache:
    """Returns the cache of a key; the least used caches are dropped."""
    return PlanCache(key)


def _facts(key: PlanCacheKey) -> OrderFacts:
    both = dict.fromkeys(key.independent, (1.0, 1.0))
    return OrderFacts(
        lambda pair: both.get(pair, (1.0, 0.0)),
        {t.task_id: frozenset(t.inputs) for t in key.known},
        {t.task_id: frozenset(t.outputs) for t in key.known},
        key.precedence,
    )
