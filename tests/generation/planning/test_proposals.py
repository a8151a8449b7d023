"""Which paths are proposed, in which ways, and what is said where nothing keeps all that is demanded."""

from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning import candidates as search
from opus_pipelines.generation.planning.context import (
    Draft,
    Evidence,
    Proposal,
    RankingContext,
    Requirements,
    binding_demands,
)
from opus_pipelines.generation.planning.plans import PlanCache, PlanCacheKey
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.graph import Edge, ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

HOUR = 3.6e6


def way(kind: str, cost: float, p: float, hours: float = 1.0, done: int = 1) -> ExecutionMode:
    return ExecutionMode(
        actor_kind=kind,
        implementations=done,
        p=p,
        p_n=9,
        q=0.0,
        q_n=9,
        cost_usd_mean=cost,
        duration_ms_mean=hours * HOUR,
    )


TASKS = [
    Task("ask", "Ask", execution_modes=(way("human", 6.0, 0.99, 2.0, done=9), way("code", 1.0, 0.9))),
    Task("check", "Check Policy", execution_modes=(way("human", 4.0, 0.95, 3.0),)),
    Task("pay", "Pay", execution_modes=(way("code", 1.0, 0.99),)),
    Task("note", "Note", execution_modes=(way("human", 2.0, 1.0),)),
    Task("call", "Call", execution_modes=(way("human", 2.0, 1.0),)),
]
SEQUENCES = {
    "q1": ("ask", "check", "pay"),
    "q2": ("ask", "pay"),
    "q3": ("ask", "note", "check", "pay"),
    "q4": ("ask", "check", "note", "pay"),
}
GRAPH = WorkGraph.of(
    TASKS, [Edge(a, b, 3, 1, 0.9, 0.1, 0.5) for a, b in sorted({p for s in SEQUENCES.values() for p in pairwise(s)})]
)


def situation(
    constraints: Any = None,
    needed: Any = ("check",),
    order: Any = (),
    gain: Any = 100.0,
    sequences: Any = SEQUENCES,
    k: Any = 5,
) -> RankingContext:
    settings = Settings(generation={"k": k})
    wfg = workflow_graph({i: chain(s) for i, s in sequences.items()}, GRAPH)
    return RankingContext(
        intake=Intake("i", "f", "Claim", [], gain_usd=gain),
        intention_id="n",
        draft=Draft(
            GRAPH, wfg, sequences, Prices.of(GRAPH, [n for n in wfg.nodes if n in GRAPH.tasks], Cost(), settings)
        ),
        evidence=Evidence([]),
        requirements=Requirements(
            [frozenset({t}) for t in needed],
            frozenset(order),
            RuleConstraints(Constraints.model_validate(constraints or {})),
            TaskNames(GRAPH, []),
        ),
        review=Review(),
        cost=Cost(),
        settings=settings,
    )


def proposals(asked: RankingContext) -> list[Proposal]:
    return search.propose(asked).proposals


def proposed(**asked: object) -> dict[tuple[str, ...], list[str | None]]:
    return {p.tasks: [p.nodes[t].actor_kind for t in p.tasks] for p in proposals(situation(**asked))}  # type: ignore[arg-type]


def test_no_proposal_leaves_out_what_is_needed_and_the_way_is_that_which_earns_most() -> None:
    found = proposed()
    assert sorted(found) == [("ask", "check", "note", "pay"), ("ask", "check", "pay"), ("ask", "note", "check", "pay")]
    assert found["ask", "check", "pay"] == ["human", "human", "code"]
    assert proposed(gain=20.0)["ask", "check", "pay"] == ["code", "human", "code"]
    assert proposed(gain=None)["ask", "check", "pay"] == [
        "human",
        "human",
        "code",
    ]  # without a gain the way that succeeds most often


def test_every_task_has_its_way_and_the_search_says_that_it_was_exact() -> None:
    for proposal in proposals(situation()):
        assert set(proposal.nodes) == set(proposal.tasks)
        assert (proposal.gap, proposal.notes) == (0.0, ())


def test_what_is_forbidden_and_the_order_hold_inside_the_search() -> None:
    assert sorted(proposed(constraints={"must_not_contain": ["note"]})) == [("ask", "check", "pay")]
    noted = {"must_contain": ["Note"], "before": [["note", "check policy"]]}
    assert sorted(proposed(constraints=noted)) == [("ask", "note", "check", "pay")]
    assert sorted(proposed(constraints={"must_contain": ["Note"]}, order=[("check", "note")])) == [
        ("ask", "check", "note", "pay")
    ]


def test_a_budget_changes_the_way() -> None:
    assert proposed(constraints={"max_cost_usd": 7})["ask", "check", "pay"] == ["code", "human", "code"]


def test_time_and_success_may_still_be_mended_so_the_best_without_them_is_offered_too() -> None:
    found = proposed(constraints={"max_duration_hours": 5.5})
    assert found["ask", "check", "pay"] == ["code", "human", "code"]
    assert ("ask", "note", "check", "pay") in found


@pytest.mark.parametrize(
    ("constraints", "notes"),
    [
        (
            {"max_cost_usd": 5, "must_not_contain": ["note"]},
            (
                "conflict: no path keeps both max_cost_usd 5 and needed 'Check Policy'",
                "relax: max_cost_usd 6.00 instead of 5.00, all else kept",
                "relax: without needed 'Check Policy', all else kept",
            ),
        ),
        (
            {"min_success": 0.99},
            (
                "conflict: no path keeps min_success 0.99",
                "relax: min_success 0.931 instead of 0.990, all else kept",
                "conflict: time and success are those of chains, before branches and reviews",
            ),
        ),
        (
            {"must_contain": ["Audit"]},
            ("conflict: no path keeps must_contain 'Audit'", "relax: without must_contain 'Audit', all else kept"),
        ),
        (
            {"must_not_contain": ["Check policy"]},
            (
                "conflict: no path keeps both must_not_contain 'Check policy' and needed 'Check Policy'",
                "relax: without must_not_contain 'Check policy', all else kept",
                "relax: without needed 'Check Policy', all else kept",
            ),
        ),
    ],
)
def test_where_nothing_keeps_all_the_rest_is_kept_and_the_conflict_named(constraints: Any, notes: Any) -> None:
    found = proposals(situation(constraints))
    assert {p.notes for p in found} == {notes}
    assert all("check" in p.tasks for p in found)


def test_groups_that_cannot_be_met_together_are_met_as_far_as_they_can() -> None:
    apart = {"q1": ("ask", "check", "pay"), "q2": ("ask", "call")}
    found = proposals(situation(needed=("ask", "check", "call"), sequences=apart))
    assert [p.tasks for p in found] == [("ask", "check", "pay")]
    assert found[0].notes[0].startswith("conflict: ")
    assert found[0].notes[0].endswith(" needed 'Check Policy' and needed 'Call'")


def test_what_a_constraint_costs_is_told_where_it_binds() -> None:
    asked = {
        "must_contain": ["Note"],
        "before": [["Ask", "Pay"]],
        "must_not_contain": ["Call"],
        "max_cost_usd": 70,
        "min_success": 0.99,
    }
    (line,) = binding_demands(situation(asked))
    assert line.startswith("must_contain 'Note': ")
    assert "2.00 USD more" in line
    assert binding_demands(situation({"must_contain": ["Ask"], "max_cost_usd": 70})) == ()
    assert binding_demands(situation({"must_contain": ["Audit"]})) == ()


def test_what_a_constraint_costs_is_told_in_success_where_no_gain_is_stated() -> None:
    apart = {"q1": ("ask", "check", "pay"), "q2": ("ask", "pay")}
    asked = situation({"must_contain": ["Check policy"]}, needed=(), sequences=apart, gain=None)
    said = "must_contain 'Check policy': without it the best chain would succeed in 4.9% more of the cases"
    assert binding_demands(asked) == (said,)


def test_the_same_situation_gives_the_same_proposals() -> None:
    assert proposals(situation()) == proposals(situation())


def test_a_choice_holds_inside_the_search() -> None:
    other = {**SEQUENCES, "q5": ("ask", "call", "check", "pay"), "q6": ("ask", "note", "call", "check", "pay")}
    found = proposed(constraints={"one_of": [["Note", "Call"]]}, sequences=other, gain=None)
    assert sorted(found) == [
        ("ask", "call", "check", "note", "pay"),
        ("ask", "call", "check", "pay"),
        ("ask", "check", "note", "pay"),
        ("ask", "note", "call", "check", "pay"),
        ("ask", "note", "check", "pay"),
    ]
    found = proposed(constraints={"exactly_one_of": [["Note", "Call"]]}, sequences=other, gain=None)
    assert sorted(found) == [
        ("ask", "call", "check", "pay"),
        ("ask", "check", "note", "pay"),
        ("ask", "note", "check", "pay"),
    ]


def test_a_choice_that_nothing_keeps_is_named() -> None:
    found = proposals(situation({"exactly_one_of": [["Pay", "Check Policy"]], "must_contain": ["Pay"]}))
    ((conflict, *relaxations),) = {p.notes for p in found}
    choice, needed = "exactly_one_of ['Pay', 'Check Policy'] (not both)", "needed 'Check Policy'"
    assert conflict.startswith("conflict: ")
    assert conflict.endswith(f" {choice} and {needed}")
    assert [line.partition(", all else")[0] for line in relaxations] == [
        f"relax: without {choice}",
        f"relax: without {needed}",
    ]


def test_no_edit_breaks_a_choice() -> None:
    shop = PlanCache(
        PlanCacheKey.of(
            situation({"exactly_one_of": [["Note", "Call"]]}, sequences={**SEQUENCES, "q5": ("ask", "call", "pay")})
        )
    )
    permitted = shop.refiner.space.permitted
    assert [permitted(t) for t in (("ask", "note", "check"), ("ask", "note", "call", "check"), ("ask", "check"))] == [
        True,
        False,
        False,
    ]
