"""Makes plans of paths, and keeps what many intakes of a contract share.

Everything in it follows from a `PlanCacheKey` alone, so that the result of an intake does not depend on the intakes
before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.confidence import reward_draws
from opus_pipelines.generation.planning.context import Edit, Plan, Proposal, RankingContext
from opus_pipelines.generation.planning.explanations import binding_limits, explain_choices
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.planning.ranking import TaskFactIndex, penalty_scores
from opus_pipelines.generation.search.constraints import stated
from opus_pipelines.generation.search.costs import UNKNOWN_ACTOR, of_another, price_of
from opus_pipelines.generation.search.local_search import (
    LocalSearch,
    PlanMove,
    PlanSpace,
    PlanState,
    RefinedPlan,
    Variations,
)
from opus_pipelines.generation.search.reviews import history_reviewers
from opus_pipelines.intakes.decisions.record import WorkflowContent
from opus_pipelines.lwm.precedence import OrderFacts, independent_pairs, violates
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.workflow.evaluation.penalty import Scores, WorkflowPenalties
from opus_pipelines.workflow.evaluation.reward import Evaluation, evaluate
from opus_pipelines.workflow.model import (
    INPUT,
    OUTPUT,
    REVIEW,
    Actor,
    InputNode,
    OutputNode,
    TaskNode,
    Workflow,
    review_id,
)

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


SWAP = "swap"  # the kind of an edit that only sets a workflow apart from a better one


class Planner:
    """Makes the plans of one Intention, with a cache that Intentions with the same key share.

    Attributes:
        taken: sets of tasks of other proposals; no edit leads to one of them, so that ranked workflows stay different.
    """

    def __init__(self, context: RankingContext, proposals: Sequence[Proposal], key: PlanCacheKey | None = None) -> None:
        self.context = context
        self.taken = {frozenset(p.tasks) for p in proposals}
        self.cache = plan_cache_of(key or PlanCacheKey.of(context))

    def plan(self, proposal: Proposal) -> Plan:
        """Returns the best shape, execution modes and reviews for the tasks of a proposal."""
        nodes = self.context.draft.prices.nodes
        picks = tuple((t, nodes[t].index(node)) for t, node in proposal.nodes.items())
        return self._plan(self.cache.initial_plan(proposal.tasks, picks), proposal.gap, proposal.notes)

    def plan_decided(self, content: WorkflowContent) -> tuple[Plan, tuple[str, ...]]:
        """Returns the workflow that a person chose, without refinement, and what had to be changed in it.

        An execution mode or a reviewer that history no longer knows is replaced or left out.
        """
        picks, changes = dict[str, int](), list[str]()
        for task in content.tasks:
            options, actor = self.context.draft.prices.nodes[task], content.actors[task]
            known = [node.actor for node in options]
            picks[task] = known.index(actor) if actor in known else 0
            if actor not in known:
                usual = known[0].label
                changes.append(
                    f"{options[0].title!r} is done by {usual}: "
                    f"history does not know it done by {actor.label}, who was chosen"
                )
        reviewers = [node.actor for node in self.cache.key.reviewers]
        for task, actor in content.reviews.items():
            if actor in reviewers:
                picks[review_id(task)] = reviewers.index(actor) + 1
            else:
                changes.append(
                    f"the review of {self.context.draft.prices.nodes[task][0].title!r} is left out: "
                    f"{actor.label} reviews no more"
                )
        plan = self._plan(self.cache.refiner.evaluate_state(PlanState(content.order, picks)), None, ())
        return replace(plan, is_refined=True), tuple(changes)

    def refine(self, plan: Plan) -> Plan:
        """Returns the plan after every small edit that helps, with the reasons for its choices.

        No edit lowers the Reward.
        """
        if plan.refined_plan is None:
            return plan
        refined = self.cache.refine(plan.refined_plan, frozenset(self.taken))
        self.taken.add(frozenset(refined.state.tasks))
        choices, binding = self.cache.choices(refined), self.cache.binding(refined)
        return replace(self._plan(refined, plan.gap, plan.notes), is_refined=True, choices=choices, binding=binding)

    def vary(self, plan: Plan, moves: Sequence[PlanMove]) -> Plan:
        """Returns the plan with other execution modes and reviews, so that it differs from a better plan.

        The changes count as one edit, which lowers the Reward.
        """
        assert plan.refined_plan is not None
        changed = self.cache.apply_moves(plan.refined_plan, tuple(moves))
        variation = self._plan(replace(changed, exact=False), plan.gap, plan.notes)
        last = replace(variation.edits[-1], kind=SWAP)
        worth_it = tuple(choice for choice in self.cache.choices(changed) if choice.earned > 0)
        return replace(variation, edits=(*variation.edits[:-1], last), choices=worth_it, is_refined=True)

    def _plan(self, refined: RefinedPlan, gap: float | None, notes: tuple[str, ...]) -> Plan:
        edits = tuple(Edit(step.kind, step.what, step.earned) for step in refined.steps)
        workflow = self.cache.workflow(refined)
        worth, measured = self.cache.worth(workflow), self.cache.measured(workflow)
        return Plan(
            workflow,
            refined.state.tasks,
            edits,
            refined.exact,
            gap,
            notes=notes,
            refined_plan=refined,
            worth=worth,
            measured=measured,
        )


def reviewers_of(context: RankingContext) -> tuple[TaskNode, ...]:
    """Returns one node for each reviewer; none where the contract's `[review]` states nothing, or forbids reviews.

    A contract that states p and q has a reviewer with these figures; cost and time are as stated, else at the prices of
    the settings. A contract that states less has the reviewers of its industry's history with the actor kind and model
    that it names; what the contract states replaces their figures. No p or q is invented: where neither the contract
    nor history knows them, no review is placed.
    """
    review = context.review
    if not review.allowed or not review.model_fields_set - {"allowed"}:
        return ()
    if review.p is not None and review.q is not None:
        return (_imputed(_stated(context), context),)
    industry = context.intake.industry
    tasks = [t for t in context.draft.graph.tasks.values() if industry is None or industry in t.industries]
    reviewers = history_reviewers(tasks, review.actor_kind, review.model, context.cost, context.settings.priors)
    return tuple(_imputed(_with_stated(node, context), context) for node in reviewers)


def _imputed(node: TaskNode, context: RankingContext) -> TaskNode:
    """Returns the reviewer with an imputed cost where its cost or time is unknown (`costs.of_another`)."""
    unknown = node.known_cost_usd is None, node.known_duration_ms is None
    return replace(node, imputed_usd=of_another(context.draft.prices.costs, *unknown, context.cost))


def _stated(context: RankingContext) -> TaskNode:
    review = context.review
    kind = review.actor_kind or ("model" if review.model else UNKNOWN_ACTOR)
    price = price_of(Actor(kind, review.model), review.cost_usd, review.duration_ms, context.cost)
    assert review.p is not None
    assert review.q is not None
    return TaskNode(
        REVIEW,
        REVIEW,
        "Review",
        p=review.p,
        q=review.q,
        cost_usd=price.cost_usd or 0.0,
        cost_basis=price.cost_basis if review.cost_usd is None else "prior",
        duration_ms=price.duration_ms or 0.0,
        duration_basis=price.duration_basis if review.duration_ms is None else "prior",
        actor_kind=kind,
        model=review.model,
        kind=REVIEW,
    )


def _with_stated(node: TaskNode, context: RankingContext) -> TaskNode:
    """Returns a reviewer of history with the figures that the contract states; their basis is `prior`."""
    for name in ("p", "q", "cost_usd", "duration_ms"):
        if (value := getattr(context.review, name)) is not None:
            basis = f"{name.split('_')[0]}_basis"
            node = replace(node, **{name: value, basis: "prior"})
            if name == "cost_usd":
                node = replace(node, cost_compute_usd=None, cost_model_usd=None, cost_human_usd=None)
    return node
