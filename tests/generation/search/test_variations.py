"""Other ways of the same steps: each keeps the limits, counts its swaps rightly, and the best of them is what brute
force finds.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.local_search import LocalSearch, PlanSpace, PlanState, Variations
from opus_pipelines.generation.search.problem import steps_of, swaps
from opus_pipelines.lwm.precedence import OrderFacts
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, TaskOrder, review_id

ENDS = InputNode("input", "In"), OutputNode("output", "Out", 100.0)
REVIEWER = TaskNode(
    "review", "review", "Review", p=0.98, q=0.7, cost_usd=0.8, duration_ms=1e6, actor_kind="human", kind="review"
)
KINDS = ("human", "code", "model")


def way(task: str, kind: str, p: float, cost: float = 0.0, q: float = 0.0) -> TaskNode:
    return TaskNode(task, task, task.title(), p=p, q=q, cost_usd=cost, actor_kind=kind)


def space(
    ways: dict[str, list[TaskNode]],
    limits: dict[str, float] | None = None,
    review: bool = False,
    inference: str = "product",
) -> PlanSpace:
    facts = OrderFacts(lambda pair: (5.0, 0.0))
    return PlanSpace(
        ENDS, ways, facts, Cost(), Reward(inference=inference), (REVIEWER,) if review else (), limits or {}
    )


THREE = {
    "a": [way("a", "human", 1.0), way("a", "code", 0.98)],
    "b": [way("b", "human", 1.0), way("b", "code", 0.95), way("b", "model", 0.9)],
    "c": [way("c", "human", 1.0)],
}


def varied(of: PlanSpace, most: int) -> tuple[LocalSearch, Variations]:
    refiner = LocalSearch(of)
    return refiner, Variations.of(
        refiner, refiner.evaluate_state(PlanState(TaskOrder.chain(tuple(of.execution_modes)))), most
    )


def test_every_change_of_up_to_two_nodes_and_what_each_earns() -> None:
    _, found = varied(space(THREE), 2)
    earned = {tuple(picks): round(usd, 9) for picks, usd in zip(found.picks.tolist(), found.worth, strict=True)}
    assert earned == {(0, 1, 0): 95.0, (0, 2, 0): 90.0, (1, 0, 0): 98.0, (1, 1, 0): 93.1, (1, 2, 0): 88.2}
    assert {tuple(picks) for picks in varied(space(THREE), 1)[1].picks.tolist()} == {(0, 1, 0), (0, 2, 0), (1, 0, 0)}
    assert {tuple(picks) for picks in varied(space(THREE), 9)[1].picks.tolist()} == set(earned)


def test_a_review_may_change_or_go_but_none_is_added() -> None:
    of = space({"a": [way("a", "human", 0.5)], "b": [way("b", "human", 0.6), way("b", "code", 0.5)]}, review=True)
    assert varied(of, 2)[1].picks.tolist() == [[0, 0, 1, 0]]
    refiner = LocalSearch(of)
    begun = refiner.initial_plan(("a", "b"), {})
    found = Variations.of(refiner, begun, 2)
    assert list(refiner.table(begun.state.order).options) == ["a", "a_review", "b", "b_review"]
    assert begun.state.picks == {"a_review": 1, "b_review": 1}
    assert found.picks.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]]


def test_moves_lead_there_and_steps_are_those_of_the_workflow() -> None:
    refiner, found = varied(space(THREE, review=True), 2)
    base = steps_of(refiner.workflow(found.plan.state))
    for number in range(len(found.picks)):
        made = refiner.apply_moves(found.plan, found.moves(number))
        assert made.worth == pytest.approx(found.worth[number])
        assert steps_of(refiner.workflow(made.state)) == found.steps(number)
    assert found.swaps_from(base).tolist() == [swaps(base, found.steps(n)) for n in range(len(found.picks))]


def test_where_every_step_has_one_way_there_is_nothing_else() -> None:
    _, found = varied(space({"a": [way("a", "human", 1.0)]}), 2)
    assert found.picks.shape == (0, 1)
    assert found.swaps_from(frozenset()).tolist() == []


def test_a_limit_that_is_kept_stays_kept() -> None:
    dear = {**THREE, "a": [way("a", "human", 1.0), way("a", "code", 0.98, cost=5.0)]}
    _, found = varied(space(dear, {"max_cost_usd": 4.0}), 2)
    assert {tuple(picks) for picks in found.picks.tolist()} == {(0, 1, 0), (0, 2, 0)}
    _, none = varied(space(THREE, {"min_success": 0.99}), 2)
    assert len(none.picks) == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans(), st.sampled_from(["product", "exact"]))
def test_the_best_that_lies_so_far_off_is_the_best_by_brute_force(
    seed: Any, least: Any, review: Any, inference: Any
) -> None:
    """With up to as many changes as swaps are asked for: each lies that many off, for every change is one swap."""
    draw = np.random.default_rng(seed)
    ways = {
        t: [
            way(t, kind, draw.uniform(0.6, 1), draw.uniform(0, 3), draw.uniform(0, 0.5))
            for kind in KINDS[: draw.integers(1, 4)]
        ]
        for t in "abcd"[: draw.integers(1, 5)]
    }
    of = space(ways, review=review, inference=inference)
    refiner = LocalSearch(of)
    best = -np.inf
    placed = [int(review and draw.random() < 0.5) for _ in ways]
    begun = PlanState(TaskOrder.chain(tuple(ways)), dict(zip(map(review_id, ways), placed, strict=True)))
    found = Variations.of(refiner, refiner.evaluate_state(begun), least)
    base = steps_of(of.to_workflow(begun))
    places = [range(len(options)) for options in ways.values()] + [range(there + 1) for there in placed]
    for picks in product(*places):
        if sum(a != b for a, b in zip(picks, [0] * len(ways) + placed, strict=True)) == least:
            names = [*ways, *map(review_id, ways)]
            drawn = of.to_workflow(PlanState(begun.order, dict(zip(names, picks, strict=True))))
            assert swaps(base, steps_of(drawn)) == least
            best = max(best, evaluate(drawn, of.cost, of.reward).reward_usd)
    far = found.worth[found.swaps_from(base) >= least]
    assert max(far, default=-np.inf) == pytest.approx(best)
