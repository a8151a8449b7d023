"""Ranked workflows that differ enough: where they come from, that rank 1 stays, and what is said where there are
fewer.
"""

from itertools import combinations, pairwise
from typing import Any

import pytest

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.candidates import ranked_candidates
from opus_pipelines.generation.planning.context import Candidate, Draft, Evidence, RankingContext, Requirements
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.search.problem import swaps
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.graph import Edge, ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

HOUR = 3.6e6


def way(kind: str, p: float, cost: float, q: float = 0.0) -> ExecutionMode:
    return ExecutionMode(
        kind,
        implementations=50,
        p=p,
        p_n=50,
        q=q,
        q_n=50,
        basis="observed",
        duration_ms_mean=0.1 * HOUR,
        cost_usd_mean=cost,
    )


def situation(
    ways: dict[str, list[ExecutionMode]],
    sequences: list[tuple[str, ...]],
    needed: tuple[str, ...] = (),
    constraints: dict[str, Any] | None = None,
    k: int = 5,
    edges: list[tuple[str, str]] | None = None,
    **knobs: Any,
) -> RankingContext:
    cost, settings = Cost(), Settings(generation={"k": k, **knobs})
    given = {f"q{n}": tasks for n, tasks in enumerate(sequences)}
    pairs = sorted({pair for tasks in sequences for pair in pairwise(tasks)} | set(edges or ()))
    tasks = [Task(t, t.title(), execution_modes=tuple(found)) for t, found in ways.items()]
    graph = WorkGraph.of(tasks, [Edge(a, b, 9, 1, 0.5, 0.5, 0.5) for a, b in pairs])
    wfg = workflow_graph({i: chain(tasks) for i, tasks in given.items()}, graph)
    empty: tuple[None, ...] = (None,) * 20
    cases = [
        SimilarCase("i", 0.9, 1.0, True, None, None, None, s, s, empty[: len(s)], empty[: len(s)], empty[: len(s)])
        for s in sequences
    ]
    return RankingContext(
        Intake("x", "one", "One", [], gain_usd=100.0),
        "n1",
        Draft(graph, wfg, given, Prices.of(graph, [n for n in wfg.nodes if n in ways], cost, settings)),
        Evidence(cases),
        Requirements(
            [frozenset({t}) for t in needed],
            frozenset(),
            RuleConstraints(Constraints.model_validate(constraints or {})),
            TaskNames(graph, []),
        ),
        Review(allowed=False),
        cost,
        settings,
    )


def done(candidate: Candidate) -> list[str]:
    """`b:code` is b done by code."""
    return [f"{node.id}:{node.actor_kind}" for node in candidate.workflow.tasks]


TWO_WAYS = {t: [way("human", 0.99 - 0.01 * i, 1.0), way("code", 0.95 - 0.02 * i, 1.0)] for i, t in enumerate("abc")}


def test_the_same_steps_done_by_others_where_there_are_no_others() -> None:
    ranked = ranked_candidates(situation(TWO_WAYS, [("a", "b", "c")], needed=("a", "b", "c")))
    assert [done(c) for _, c in ranked] == [
        ["a:human", "b:human", "c:human"],
        ["a:code", "b:code", "c:human"],
        ["a:code", "b:human", "c:code"],
        ["a:human", "b:code", "c:code"],
    ]
    assert [rank for rank, _ in ranked] == [1, 2, 3, 4]
    assert [c.differs_by for _, c in ranked] == [None, 2, 2, 2]
    (fewer,) = {c.fewer for _, c in ranked}
    assert "no other was found" in (fewer or "")
    assert "in 2 steps" in (fewer or "")
    second = ranked[1][1].plan
    (edit,) = second.edits
    assert (edit.kind, edit.what.split("; ")) == ("swap", ["'A': code instead of human", "'B': code instead of human"])
    assert second.edits[0].earned == pytest.approx(ranked[1][1].worth - ranked[0][1].worth)
    assert (second.is_refined, second.exact) == (True, False)


def test_a_near_copy_gives_way_to_what_differs_enough_and_costs_least() -> None:
    """One more step alone is too near; with one other way it is far enough, and dearer than two other ways
    are cheap.
    """
    ways = {**TWO_WAYS, "note": [way("code", 0.999, 0.1)]}
    ranked = [
        c
        for _, c in ranked_candidates(
            situation(ways, [("a", "b", "c"), ("a", "note", "b", "c")], needed=("a", "b", "c"), k=3)
        )
    ]
    assert done(ranked[0]) == ["a:human", "b:human", "c:human"]
    assert done(ranked[1]) == ["a:code", "note:code", "b:human", "c:human"]
    assert all(swaps(a.steps, b.steps) >= 2 for a, b in combinations(ranked, 2))
    assert {c.fewer for c in ranked} == {None}


@pytest.mark.parametrize("least", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "constraints",
    [
        {},
        {"max_cost_usd": 3.5},
        {"min_success": 0.9},
        {"must_contain": ["Note"]},
        {"max_cost_usd": 1.0},
    ],
)
def test_rank_one_is_the_same_whatever_the_rule_asks(least: int, constraints: dict[str, Any]) -> None:
    ways = {**TWO_WAYS, "note": [way("code", 0.999, 0.1)], "call": [way("human", 0.98, 0.3), way("code", 0.97, 0.2)]}
    sequences = [("a", "b", "c"), ("a", "note", "b", "c"), ("a", "note", "call", "b", "c"), ("a", "b", "call", "c")]
    found = situation(ways, sequences, ("a", "b", "c"), constraints, least_swaps=least)
    ranked = [c for _, c in ranked_candidates(found)]
    first = ranked_candidates(situation(ways, sequences, ("a", "b", "c"), constraints, k=1))[0][1]
    assert (ranked[0].id, ranked[0].worth, ranked[0].plan.edits) == (first.id, first.worth, first.plan.edits)
    assert all(swaps(a.steps, b.steps) >= least for a, b in combinations(ranked, 2))
    figures = [
        (not c.has_optional, c.worth) for c in ranked if c.feasible
    ]  # a step that nothing asks for lifts no workflow
    assert figures == sorted(figures, reverse=True)
    if first.feasible:
        assert all(c.feasible and {"a", "b", "c"} <= set(c.tasks) for c in ranked)


def test_nothing_is_forced() -> None:
    """What is needed is not left out, what is forbidden not taken, a limit not broken to be different: then there are
    fewer.
    """
    one_way = {t: [way("human", 0.99, 1.0)] for t in "abcd"}
    ranked = ranked_candidates(
        situation(one_way, [("a", "b"), ("a", "c", "d", "b")], ("a", "b"), {"must_not_contain": ["D"]})
    )
    assert [done(c) for _, c in ranked] == [["a:human", "b:human"]]
    assert "no other was found" in (ranked[0][1].fewer or "")
    dear = {t: [way("human", 0.99, 1.0), way("code", 0.95, 5.0)] for t in "ab"}
    assert len(ranked_candidates(situation(dear, [("a", "b")], ("a", "b"), {"max_cost_usd": 4.0}))) == 1
    assert len(ranked_candidates(situation(dear, [("a", "b")], ("a", "b")))) == 2


def test_a_share_of_tasks_takes_no_other_ways_of_the_same_tasks() -> None:
    ranked = ranked_candidates(
        situation(TWO_WAYS, [("a", "b", "c"), ("a", "b")], needed=("a",), diversity=0.1, least_swaps=1)
    )
    assert len({frozenset(c.tasks) for _, c in ranked}) == len(ranked) == 2
    fewer = (
        "no other was found that keeps what these keep and differs from each of them in 1 step and by 0.1 of its tasks"
    )
    assert ranked[0][1].fewer == fewer


def test_where_the_best_paths_are_near_copies_the_search_asks_for_others() -> None:
    """Eight side steps, the n-th costs n; the last one ranked is not among the sixteen best paths: 25 sets of them
    come cheaper.
    """
    sides = [f"s{n}" for n in range(1, 9)]
    ways = {t: [way("human", 0.99, 1.0)] for t in ("a", "z")} | {
        s: [way("code", 1.0, 1.0 * n)] for n, s in enumerate(sides, 1)
    }
    sequences = [
        ("a", "z"),
        ("a", *sides, "z"),
        ("a", *sides, "z"),
    ]  # twice: Algorithm 1 joins tasks of different sequences
    edges = list(combinations(["a", *sides, "z"], 2))
    ranked = [c for _, c in ranked_candidates(situation(ways, sequences, ("a", "z"), k=4, edges=edges))]
    assert [c.tasks[1:-1] for c in ranked] == [(), ("s1", "s2"), ("s3", "s4"), ("s1", "s3", "s5")]
    assert [c.differs_by for c in ranked] == [None, 2, 2, 2]


def test_the_same_situation_gives_the_same_ranking() -> None:
    asked = [situation(TWO_WAYS, [("a", "b", "c")], ("a", "b", "c")) for _ in range(2)]
    one, other = ([(c.id, c.worth, c.plan.edits, c.differs_by) for _, c in ranked_candidates(s)] for s in asked)
    assert one == other
