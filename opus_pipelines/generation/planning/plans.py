"""Makes plans of paths: the shape, the execution modes and the reviews that are worth most, and small edits."""

from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.generation.planning.plan_cache import PlanCacheKey, plan_cache_of
from opus_pipelines.generation.planning.ranking_context import Edit, Plan, Proposal, RankingContext
from opus_pipelines.generation.search.local_search import RefinedPlan
from opus_pipelines.generation.search.plan_states import PlanMove, PlanState
from opus_pipelines.intakes.decisions.record import WorkflowContent
from opus_pipelines.workflow.model import review_id

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
