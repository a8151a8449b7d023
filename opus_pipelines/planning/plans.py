"""A proposal worked out into a Workflow: which steps wait for which, how each is carried out, where reviews stand,
what small edits add.
"""

from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.decisions.record import Content, in_words
from opus_pipelines.optimization.local_search import RefinedPlan
from opus_pipelines.optimization.plan_states import PlanMove, PlanState
from opus_pipelines.planning.plan_cache import PlanCacheKey, plan_cache_of
from opus_pipelines.planning.ranking_context import Edit, Plan, Proposal, RankingContext
from opus_pipelines.workflow.task_order import review_id

SWAP = "swap"  # the kind of an edit that only sets a workflow apart from a better one


class Planner:
    """Works out the proposals of one Intention, in a workshop that it shares with all who ask the same.

    `taken`: sets of tasks that other proposals have: no edit leads to one of them, so that the ranked workflows stay
    different.
    """

    def __init__(self, context: RankingContext, proposals: Sequence[Proposal], key: PlanCacheKey | None = None) -> None:
        self.context = context
        self.taken = {frozenset(p.tasks) for p in proposals}
        self.shop = plan_cache_of(key or PlanCacheKey.of(context))

    def plan(self, proposal: Proposal) -> Plan:
        """The best shape, ways and reviews for the proposal's tasks; `edits` say what each change of the chain that it
        is earned.
        """
        nodes = self.context.draft.prices.nodes
        picks = tuple((t, nodes[t].index(node)) for t, node in proposal.nodes.items())
        return self._plan(self.shop.chosen(proposal.tasks, picks), proposal.gap, proposal.notes)

    def decided(self, content: Content) -> tuple[Plan, tuple[str, ...]]:
        """The workflow that a person chose, as it is: nothing is refined. Beside it what had to be changed because
        history no longer knows that actor for the step, or nobody may review any more.
        """
        picks, changed = dict[str, int](), list[str]()
        for task in content.tasks:
            options, who = self.context.draft.prices.nodes[task], content.who[task]
            known = [(n.actor_kind, n.model, n.actor_group) for n in options]
            picks[task] = known.index(who) if who in known else 0
            if who not in known:
                usual = in_words(known[0])
                changed.append(
                    f"{options[0].title!r} is done by {usual}: history does not know it done by {in_words(who)}, who was chosen"
                )
        reviewers = [(n.actor_kind, n.model, n.actor_group) for n in self.shop.question.reviewers]
        for task, who in content.reviews.items():
            if who in reviewers:
                picks[review_id(task)] = reviewers.index(who) + 1
            else:
                changed.append(
                    f"the review of {self.context.draft.prices.nodes[task][0].title!r} is left out: {in_words(who)} reviews no more"
                )
        made = self._plan(self.shop.refiner.start(PlanState(content.order, picks)), None, ())
        return replace(made, is_refined=True), tuple(changed)

    def refined(self, plan: Plan) -> Plan:
        """The plan after every small edit that helps, and why it is as it is; the Reward, in its steps, never falls."""
        if plan.found is None:
            return plan
        found = self.shop.refined(plan.found, frozenset(self.taken))
        self.taken.add(frozenset(found.draft.tasks))
        made = self._plan(found, plan.gap, plan.notes)
        return replace(made, is_refined=True, choices=self.shop.choices(found), binding=self.shop.binding(found))

    def varied(self, plan: Plan, moves: Sequence[PlanMove]) -> Plan:
        """The plan with these changes of ways and reviews, made so that it differs from a better one: one edit, which
        costs Reward.
        """
        assert plan.found is not None
        found = self.shop.moved(plan.found, tuple(moves))
        made = self._plan(replace(found, exact=False), plan.gap, plan.notes)
        last = replace(made.edits[-1], kind=SWAP)
        worth_it = tuple(choice for choice in self.shop.choices(found) if choice.earned > 0)
        return replace(made, edits=(*made.edits[:-1], last), choices=worth_it, is_refined=True)

    def _plan(self, found: RefinedPlan, gap: float | None, notes: tuple[str, ...]) -> Plan:
        edits = tuple(Edit(step.kind, step.what, step.earned) for step in found.steps)
        workflow = self.shop.workflow(found)
        worth, measured = self.shop.worth(workflow), self.shop.measured(workflow)
        return Plan(
            workflow,
            found.draft.tasks,
            edits,
            found.exact,
            gap,
            notes=notes,
            found=found,
            worth=worth,
            measured=measured,
        )
