"""Proposals worked out: shape, ways, reviews, edits, and why, on a small situation whose best answer is known."""

from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.context import Draft, Evidence, Plan, Proposal, RankingContext, Requirements
from opus_pipelines.generation.planning.plans import Planner
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.graph import Edge, ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import validate
from tests.generation.planning.chains import chain_workflow

HOUR = 3.6e6


def way(
    kind: str, p: float, q: float, cost: float, hours: float = 0.1, model: str | None = None, n: int = 50
) -> ExecutionMode:
    return ExecutionMode(
        kind,
        model,
        implementations=n,
        p=p,
        p_n=n,
        q=q,
        q_n=n,
        basis="observed",
        duration_ms_mean=hours * HOUR,
        cost_usd_mean=cost,
    )


TASKS = [
    Task("take", "Take the order", outputs=("order",), execution_modes=(way("code", 1.0, 0.3, 0.0),)),
    Task(
        "stock",
        "Check the stock",
        inputs=("order",),
        outputs=("stock",),
        execution_modes=(way("human", 0.9, 0.2, 4.0, 2, n=60), way("code", 0.7, 0.1, 0.1, 2)),
    ),
    Task(
        "credit",
        "Check the credit",
        inputs=("order",),
        outputs=("credit",),
        execution_modes=(way("human", 0.95, 0.2, 3.0, 2),),
    ),
    Task("send", "Send the goods", inputs=("stock", "credit"), execution_modes=(way("human", 0.97, 0.1, 2.0),)),
    Task(
        "audit",
        "Audit the month",
        execution_modes=(way("human", 0.98, 0.6, 1.5), way("model", 0.9, 0.5, 0.1, model="m")),
    ),
]
PROPOSED = "take", "stock", "credit", "send"
OTHER_WAY_ROUND = "take", "credit", "stock", "send"


def case(tasks: tuple[str, ...], success: bool = True) -> SimilarCase:
    empty = (None,) * len(tasks)
    return SimilarCase("i", 0.9, 1.0, success, None, None, None, tasks, tasks, empty, empty, empty)


def situation(
    review: Review | None = None, constraints: Constraints | None = None, cost: Cost | None = None, **more: Any
) -> RankingContext:
    cost, settings = cost or Cost(), Settings()
    pairs = {pair for tasks in (PROPOSED, OTHER_WAY_ROUND) for pair in pairwise(tasks)}
    graph = WorkGraph.of(more.pop("tasks", TASKS), [Edge(a, b, 9, 1, 0.5, 0.5, 0.5) for a, b in sorted(pairs)])
    wfg = workflow_graph({"s1": chain(PROPOSED), "s2": chain(OTHER_WAY_ROUND)}, graph)
    given: dict[str, Any] = {
        "cases": [case(PROPOSED), case(OTHER_WAY_ROUND)] * 5,
        "needed": [frozenset({t}) for t in PROPOSED],
    } | more
    return RankingContext(
        Intake("x", "order-1", "Order", [], gain_usd=60.0),
        "n1",
        Draft(graph, wfg, {"s1": PROPOSED}, Prices.of(graph, list(PROPOSED), cost, settings)),
        Evidence(given["cases"]),
        Requirements(
            given["needed"],
            frozenset(given.get("order", ())),
            RuleConstraints(constraints or Constraints()),
            TaskNames(graph, []),
        ),
        review or Review(),
        cost,
        settings,
    )


def planned(found: RankingContext, proposal: Proposal | None = None) -> Plan:
    proposal = proposal or Proposal(PROPOSED)
    planner = Planner(found, [proposal])
    return planner.refine(planner.plan(proposal))


def reward(found: RankingContext, plan: Plan) -> float:
    return evaluate(plan.workflow, found.cost, found.settings.reward).reward_usd


def test_by_default_time_is_free_and_the_chain_earns_most() -> None:
    found = situation()
    plan = planned(found)
    assert plan.workflow == chain_workflow(PROPOSED, found.draft.prices, found.intake)
    assert (plan.tasks, plan.edits, plan.exact, plan.is_refined, plan.binding) == (PROPOSED, (), True, True, ())
    assert [(c.kind, c.what.partition(" by ")[::2]) for c in plan.choices] == [
        ("way", ("'Check the stock'", "human instead of code"))
    ]
    cheap = chain_workflow(PROPOSED, found.draft.prices, found.intake, {"stock": found.draft.prices.nodes["stock"][1]})
    lost = reward(found, plan) - evaluate(cheap, found.cost, found.settings.reward).reward_usd
    assert plan.choices[0].earned == pytest.approx(lost)


def test_where_time_is_dear_what_may_stand_side_by_side_does() -> None:
    found = situation(cost=Cost(usd_per_hour_of_duration=6.0))
    plan = planned(found)
    assert plan.workflow.edges == (
        ("credit", "send"),
        ("input", "take"),
        ("send", "output"),
        ("stock", "send"),
        ("take", "credit"),
        ("take", "stock"),
    )
    assert plan.nodes == ["input", *PROPOSED, "output"]
    assert plan.edits[0].kind == "parallel"
    before = chain_workflow(PROPOSED, found.draft.prices, found.intake)
    gained = reward(found, plan) - evaluate(before, found.cost, found.settings.reward).reward_usd
    assert sum(edit.earned for edit in plan.edits) == pytest.approx(gained)


@pytest.mark.parametrize(
    "changed",
    [
        {"order": {("stock", "credit")}},
        {"constraints": Constraints(before=(("Check the stock", "check_the_credit"),))},
        {"cases": [case(PROPOSED)] * 10},
        {"cases": [case(PROPOSED)] * 10 + [case(OTHER_WAY_ROUND, success=False)] * 10},
    ],
)
def test_an_order_that_is_stated_settled_or_always_kept_is_kept(changed: dict[str, Any]) -> None:
    plan = planned(situation(cost=Cost(usd_per_hour_of_duration=60.0), **changed))
    assert plan.workflow.predecessors("credit") == ["stock"]


def test_the_searchs_ways_are_where_it_starts() -> None:
    found = situation()
    dear = found.draft.prices.nodes["stock"][1]
    plan = planned(found, Proposal(PROPOSED, {"stock": dear}, gap=0.5, notes=("a note",)))
    assert [(e.kind, e.what) for e in plan.edits] == [("way", "'Check the stock': human instead of code")]
    assert plan.edits[0].earned == pytest.approx(
        reward(found, plan)
        - evaluate(
            chain_workflow(PROPOSED, found.draft.prices, found.intake, {"stock": dear}),
            found.cost,
            found.settings.reward,
        ).reward_usd
    )
    assert (plan.gap, plan.notes) == (0.5, ("a note",))


@pytest.mark.parametrize(
    "review",
    [
        Review(),
        Review(allowed=False, p=0.99, q=0.9, cost_usd=0.1),
        Review(allowed=True),
        Review(actor_kind="code"),
        Review(model="unheard of"),
        Review(p=0.99, actor_kind="code"),
    ],
)
def test_no_review_is_placed_whose_figures_nobody_knows(review: Review) -> None:
    assert [t.kind for t in planned(situation(review)).workflow.tasks] == ["task"] * 4


def test_a_stated_review_goes_where_it_earns_most() -> None:
    found = situation(Review(p=0.99, q=0.9, cost_usd=3.0, actor_kind="human"))
    plan = planned(found)
    reviews = [t for t in plan.workflow.tasks if t.kind == "review"]
    assert [(r.id, r.title, r.p, r.q, r.cost_usd, r.p_basis) for r in reviews] == [
        ("send_review", "Review: Send the goods", 0.99, 0.9, 3.0, "prior"),
    ]
    assert plan.nodes[-3:] == ["send", "send_review", "output"]
    assert plan.tasks == PROPOSED
    earned = next(c for c in plan.choices if c.kind == "review")
    assert earned.what == "review of 'Send the goods' by human"
    before = evaluate(
        chain_workflow(PROPOSED, found.draft.prices, found.intake), found.cost, found.settings.reward
    ).reward_usd
    assert sum(e.earned for e in plan.edits) == pytest.approx(reward(found, plan) - before)


def test_a_review_without_stated_figures_has_those_of_historys_reviews() -> None:
    plan = planned(situation(Review(actor_kind="model")))
    review = next(t for t in plan.workflow.tasks if t.kind == "review")
    assert (review.model, review.p, review.q, review.p_basis, review.cost_usd) == (
        "m",
        0.9,
        0.5,
        "estimated",
        pytest.approx(0.1),
    )
    cheaper = planned(situation(Review(actor_kind="model", q=0.7)))
    review = next(t for t in cheaper.workflow.tasks if t.kind == "review")
    assert (review.q, review.q_basis, review.p_basis) == (0.7, "prior", "estimated")


def test_a_limit_that_binds_says_what_it_costs() -> None:
    free = planned(situation())
    found = situation(constraints=Constraints(max_cost_usd=6.0, min_success=0.5))
    plan = planned(found)
    lost = reward(found, free) - reward(found, plan)
    assert lost > 0
    (line,) = plan.binding
    assert line.startswith("max_cost_usd 6: ")
    assert f" {lost:.2f} USD more" in line
    tight = planned(situation(constraints=Constraints(max_cost_usd=9.05)))
    assert tight.binding == ("max_cost_usd 9.05: tight, it stands at 9",)


def test_a_limit_on_time_that_a_chain_breaks_is_kept_side_by_side() -> None:
    found = situation(constraints=Constraints(max_duration_hours=3.0))
    plan = planned(found)
    assert evaluate(plan.workflow, found.cost, found.settings.reward).duration_ms == pytest.approx(2.2 * HOUR)
    assert plan.edits[0].kind == "parallel"
    assert sum(e.earned for e in plan.edits) < 0  # what the limit costs


def with_a_short_cut(needed: tuple[str, ...]) -> RankingContext:
    """History also went straight from the stock to sending, and the check of the credit costs more than it earns."""
    credit = Task("credit", "Check the credit", execution_modes=(way("human", 0.9, 0.1, 9.0),))
    tasks = [credit if t.task_id == "credit" else t for t in TASKS]
    found = situation(tasks=tasks, needed=[frozenset({t}) for t in needed])
    found.draft.wfg.edges[("stock", "send")] = found.draft.wfg.edges[("stock", "credit")]
    return found


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        (("take", "stock", "send"), ("take", "stock", "send")),
        (PROPOSED, PROPOSED),
        ((), PROPOSED),  # nothing tells what is not needed
    ],
)
def test_a_step_is_dropped_only_where_history_tells_that_it_is_not_needed(
    needed: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    plan = planned(with_a_short_cut(needed))
    assert plan.tasks == expected
    assert [e.kind for e in plan.edits if e.kind == "drop"] == (["drop"] if expected != PROPOSED else [])


def test_no_edit_leads_to_the_tasks_of_another_proposal() -> None:
    planner = Planner(
        with_a_short_cut(("take", "stock", "send")), [Proposal(PROPOSED), Proposal(("take", "stock", "send"))]
    )
    assert planner.refine(planner.plan(Proposal(PROPOSED))).tasks == PROPOSED


@pytest.mark.parametrize("hourly", [0.0, 6.0])
@pytest.mark.parametrize("review", [Review(), Review(p=0.99, q=0.8, cost_usd=0.5)])
def test_every_plan_is_a_workflow_with_the_proposals_tasks(hourly: float, review: Review) -> None:
    plan = planned(situation(review, cost=Cost(usd_per_hour_of_duration=hourly)))
    assert validate(plan.workflow) == []
    assert plan.tasks == PROPOSED
    place = {node: i for i, node in enumerate(plan.nodes)}
    assert set(place) == set(plan.workflow.by_id)
    assert all(place[a] < place[b] for a, b in plan.workflow.edges)


def test_a_chain_of_a_task_twice_is_refused() -> None:
    found = situation()
    with pytest.raises(WorkflowError, match="'take' occurs 2 times"):
        chain_workflow(("take", "take"), found.draft.prices, found.intake)
