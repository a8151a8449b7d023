"""What is worked out of the tasks of a Workflow Graph, and kept: many intakes of a contract ask the same of the same
tasks.

Everything here follows from a `Question` alone, so that what comes of an intake does not depend on those that were
worked on before it.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.evaluation.penalty import Penalties, Scores
from opus_pipelines.evaluation.reward import Evaluation, evaluate
from opus_pipelines.optimization.local_search import LocalSearch, RefinedPlan
from opus_pipelines.optimization.plan_shape import OrderFacts
from opus_pipelines.optimization.plan_states import PlanSpace
from opus_pipelines.optimization.search_limits import stated
from opus_pipelines.optimization.variations import Variations
from opus_pipelines.planning.confidence import reward_draws
from opus_pipelines.planning.explanations import binding, explain_choices
from opus_pipelines.planning.penalty_scores import TaskFactIndex, penalty_scores
from opus_pipelines.planning.prices import Prices
from opus_pipelines.planning.ranking_context import RankingContext
from opus_pipelines.planning.reviewers import reviewers_of
from opus_pipelines.retrieval.precedence import independent_pairs, violates
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from opus_pipelines.workflow.task_order import INPUT, OUTPUT

PLAN_CACHES = 32  # kept, the least used goes first: a few megabytes each
KEPT = 256  # of what one has worked out, of each kind
INPUT_TITLE = "Client input"
Pair = tuple[str, str]
Group = frozenset[str]


@dataclass(frozen=True)
class PlanCacheKey:
    """All that decides how the tasks of a Workflow Graph are carried out best; two with the same content are equal.

    `ways`: every task's, in order of their ids; `known`: what the WKG knows of these; `weights`: cost, Reward, scores
    and priors, as text.
    `free`: pairs that history shows independent; `edges`: those that it has next to each other; `is_needed`: whether
    anything is known to be needed; `wkg`: tells one WKG's edges from another's.
    """

    ways: tuple[tuple[TaskNode, ...], ...]
    known: tuple[Task, ...]
    gain_usd: float | None
    weights: tuple[str, ...]
    seed: int
    reviewers: tuple[TaskNode, ...]
    limits: tuple[tuple[str, float], ...]
    required: tuple[Group, ...]
    forbidden: Group
    exclusive: tuple[tuple[Group, ...], ...]
    settled: frozenset[Pair]
    free: frozenset[Pair]
    edges: frozenset[Pair]
    is_needed: bool
    wkg: int
    graph: WorkGraph = field(compare=False)
    prices: Prices = field(compare=False)
    cost: Cost = field(compare=False)
    settings: Settings = field(compare=False)

    @classmethod
    def of(cls, context: RankingContext) -> "PlanCacheKey":
        """What an Intention asks."""
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
    """Answers a Question, each part of it once. `refined` is told the sets of tasks that other proposals have: no edit
    leads to one.
    """

    def __init__(self, question: PlanCacheKey) -> None:
        self.question, self._book = question, TaskFactIndex(question.graph)
        self.refiner = LocalSearch(
            PlanSpace(
                (InputNode(INPUT, INPUT_TITLE), OutputNode(OUTPUT, "Client output", question.gain_usd)),
                {found[0].task_id: found for found in question.ways},
                _facts(question),
                question.cost,
                question.settings.reward,
                question.reviewers,
                dict(question.limits),
                self._permitted,
                self._follows,
                self._joins,
                lambda workflow: self.measured(workflow)[1].penalty,
            )
        )
        keep = lru_cache(KEPT)
        self.chosen = keep(lambda tasks, picks: self.refiner.chosen(tasks, dict(picks)))
        self.refined = keep(self._refined)
        self.moved = keep(self.refiner.moved)
        self.workflow = keep(lambda found: self.refiner.workflow(found.draft))
        self.choices = keep(lambda found: explain_choices(self.refiner, found))
        self.binding = keep(lambda found: binding(self.refiner, found))
        self.variations = keep(lambda found, most: Variations.of(self.refiner, found, most))
        self.draws = keep(lambda workflow: reward_draws(workflow, question.prices, question.cost, question.settings))
        self.worth = keep(self._worth)
        self.measured = keep(self._measured)

    def _refined(self, found: RefinedPlan, taken: frozenset[Group]) -> RefinedPlan:
        """After every small edit that helps; no edit leads to tasks that are `taken`."""
        space = self.refiner.space
        free = replace(space, permitted=lambda tasks: frozenset(tasks) not in taken and self._permitted(tasks))
        return replace(self.refiner, space=free).refined(found)

    def _worth(self, workflow: Workflow) -> Evaluation:
        return evaluate(workflow, self.question.cost, self.question.settings.reward)

    def _measured(self, workflow: Workflow) -> tuple[dict[str, Scores], Penalties]:
        return penalty_scores(workflow, self._book, self.question.settings)

    def _follows(self, before: str, behind: str) -> bool:
        """Where history tells of no needed task, nothing tells which ones are not: none is dropped."""
        return self.question.is_needed and (before, behind) in self.question.edges

    def _joins(self, before: str, new: str) -> bool:
        """What history did next, or what is needed or demanded, may be added."""
        return (before, new) in self.question.edges or any(new in group for group in self.question.required)

    def _permitted(self, tasks: tuple[str, ...]) -> bool:
        have, asked = frozenset(tasks), self.question
        return (
            bool(have)
            and not have & asked.forbidden
            and all(group & have for group in asked.required)
            and not violates(tasks, asked.settled)
            and all(sum(not option.isdisjoint(have) for option in group) < 2 for group in asked.exclusive)
        )


@lru_cache(PLAN_CACHES)
def plan_cache_of(question: PlanCacheKey) -> PlanCache:
    """The one where this is worked out."""
    return PlanCache(question)


def _facts(question: PlanCacheKey) -> OrderFacts:
    both = dict.fromkeys(question.free, (1.0, 1.0))
    return OrderFacts(
        lambda pair: both.get(pair, (1.0, 0.0)),
        {t.task_id: frozenset(t.inputs) for t in question.known},
        {t.task_id: frozenset(t.outputs) for t in question.known},
        question.settled,
    )
