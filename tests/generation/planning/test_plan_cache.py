"""What is kept from one intake for the next changes nothing: it follows from what is asked alone."""

from dataclasses import replace
from typing import Any

import pytest

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.context import Proposal, RankingContext
from opus_pipelines.generation.planning.plans import PlanCacheKey, Planner, plan_cache_of
from opus_pipelines.workflow.constraints import Constraints
from tests.generation.planning.test_plans import OTHER_WAY_ROUND, PROPOSED, TASKS, case, situation

DEARER = [replace(task, title="Send all goods") if task.task_id == "send" else task for task in TASKS]
EDGES = situation().draft.graph.edges
UNKIND = situation().settings.model_copy(update={"scores": Settings().scores.model_copy(update={"cohesion": 0.3})})


def test_those_who_ask_the_same_share_a_workshop_whatever_they_are_called() -> None:
    one, other = situation(), situation()
    renamed = replace(
        other,
        intake=replace(other.intake, intake_id="y", title="Another order"),
        draft=replace(other.draft, graph=one.draft.graph),
        intention_id="n2",
    )
    assert plan_cache_of(PlanCacheKey.of(one)) is plan_cache_of(PlanCacheKey.of(renamed))


def with_same_edges(context: RankingContext) -> RankingContext:
    """The WKG's edges are told apart by identity: the others differ in what is compared, not in that."""
    return replace(context, draft=replace(context.draft, graph=replace(context.draft.graph, edges=EDGES)))


@pytest.mark.parametrize(
    "other",
    [
        situation(cost=Cost(usd_per_hour_of_duration=2.0)),
        situation(constraints=Constraints(max_cost_usd=9.0)),
        situation(tasks=DEARER),
        situation(constraints=Constraints(before=(("Check the credit", "Check the stock"),))),
        situation(needed=[]),
        situation(cases=[case(PROPOSED)]),
        situation(order=[("stock", "credit")]),
        replace(situation(), settings=UNKIND),
        replace(situation(), intake=replace(situation().intake, gain_usd=61.0)),
    ],
    ids=["cost", "limit", "a task", "before", "needed", "cases", "order", "scores", "gain"],
)
def test_whatever_decides_asks_something_else(other: Any) -> None:
    assert PlanCacheKey.of(with_same_edges(other)) != PlanCacheKey.of(with_same_edges(situation()))


def test_what_was_asked_before_changes_no_answer() -> None:
    found, proposals = (
        situation(cost=Cost(usd_per_hour_of_duration=2.0)),
        [Proposal(PROPOSED), Proposal(OTHER_WAY_ROUND)],
    )

    def answers(of: Any) -> Any:
        plan_cache_of.cache_clear()
        made = {}
        for proposal in of:
            planner = Planner(found, proposals)
            made[proposal.tasks] = planner.refine(planner.plan(proposal))
        return made

    forward, backward = answers(proposals), answers([*proposals[::-1], *proposals])
    assert forward == backward
    assert answers(proposals[:1])[PROPOSED] == forward[PROPOSED]
