"""A proposal worked out into a Workflow: which steps wait for which, how each is carried out, where reviews stand, what small edits add."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.order import breaks, facts_of
from opus_pipelines.generation.prices import Prices
from opus_pipelines.generation.reviewers import reviewers_of
from opus_pipelines.generation.situation import Edit, Plan, Proposal, Situation
from opus_pipelines.generation.why import binding, choices
from opus_pipelines.optimization.drafts import Space
from opus_pipelines.optimization.limits import stated
from opus_pipelines.optimization.refine import Refined, Refiner
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

Penalised = Callable[[Situation, Workflow], float]


class Planner:
    """Works out the proposals of one Intention. `penalised` gives the Penalty of a workflow, EVAL (10); without it none is measured.

    `taken`: sets of tasks that other proposals have: no edit leads to one of them, so that the ranked workflows stay different.
    """

    def __init__(self, situation: Situation, proposals: Sequence[Proposal], penalised: Penalised | None = None) -> None:
        self.situation = situation
        self.taken = {frozenset(p.tasks) for p in proposals}
        self._required, self._forbidden = situation.required, situation.forbidden
        names = situation.names
        stated_order = (product(names.tasks(a), names.tasks(b)) for a, b in situation.constraints.before)
        self._settled = frozenset(situation.order | {(a, b) for pairs in stated_order for a, b in pairs if a != b})
        facts = facts_of(situation.prices.nodes, situation.seen, situation.graph, self._settled)
        self.refiner = Refiner(Space(
            ends(situation.intake), situation.prices.nodes, facts, situation.cost, situation.settings.reward,
            reviewers_of(situation), stated(situation.constraints), self._permitted, self._follows,
            None if penalised is None else lambda workflow: penalised(situation, workflow),
        ))

    def plan(self, proposal: Proposal) -> Plan:
        """The best shape, ways and reviews for the proposal's tasks; `edits` say what each change of the chain that it is earned."""
        nodes = self.situation.prices.nodes
        picks = {t: nodes[t].index(node) for t, node in proposal.nodes.items()}
        return self._plan(self.refiner.chosen(proposal.tasks, picks), proposal.gap_usd, proposal.notes)

    def refined(self, plan: Plan) -> Plan:
        """The plan after every small edit that helps, and why it is as it is; the Reward, in its steps, never falls."""
        if plan.found is None:
            return plan
        found = self.refiner.refined(plan.found)
        self.taken.add(frozenset(found.draft.tasks))
        made = self._plan(found, plan.gap_usd, plan.notes)
        return replace(made, is_refined=True, choices=choices(self.refiner, found), binding=binding(self.refiner, found))

    def _plan(self, found: Refined, gap_usd: float | None, notes: tuple[str, ...]) -> Plan:
        edits = tuple(Edit(step.kind, step.what, step.earned_usd) for step in found.steps)
        return Plan(self.refiner.workflow(found.draft), found.draft.tasks, edits, found.exact, gap_usd, notes=notes, found=found)

    def _follows(self, before: str, behind: str) -> bool:
        """Has history the two next to each other; where it tells of no needed task, nothing tells which ones are not: none is dropped."""
        return bool(self.situation.needed) and (before, behind) in self.situation.wfg.edges

    def _permitted(self, tasks: tuple[str, ...]) -> bool:
        have = frozenset(tasks)
        return (
            bool(have) and have not in self.taken and not have & self._forbidden
            and all(group & have for group in self._required) and not breaks(tasks, self._settled)
        )


def ends(intake: Intake) -> tuple[InputNode, OutputNode]:
    """What the client gives and what the client receives."""
    return InputNode(INPUT, intake.title or "Client input"), OutputNode(OUTPUT, "Client output", intake.gain_usd)


def chain_workflow(tasks: Sequence[str], prices: Prices, intake: Intake, nodes: Mapping[str, TaskNode] | None = None) -> Workflow:
    """The chain input → tasks → output as a Workflow; every task as `nodes` has it, else in its most frequent way."""
    chosen = [(nodes or {}).get(t) or prices.usual(t) for t in tasks]
    first, last = ends(intake)
    return Workflow.of([first, *chosen, last], pairwise([INPUT, *tasks, OUTPUT]))
