"""The figures of a task behind other tasks, in a node, in a search and in a plan."""

from dataclasses import replace

import pytest

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.costs import behind, errors
from opus_pipelines.generation.search.labels import best_paths
from opus_pipelines.generation.search.local_search import LocalSearch, PlanSpace, PlanState
from opus_pipelines.generation.search.problem import Contains, Problem
from opus_pipelines.lwm.precedence import OrderFacts
from opus_pipelines.wkg.graph import PairShift
from opus_pipelines.workflow.model import INPUT, OUTPUT, InputNode, OutputNode, TaskNode, TaskOrder
from tests.generation.search.test_label_search import wfg_of

NODE = TaskNode("v", "v", "V", p=0.5, q=0.2, cost_usd=4.0, cost_human_usd=4.0, cost_basis="rate", duration_ms=60.0)
GOOD = PairShift(2.0, 1.0, 0.5)
BAD = PairShift(-2.0, 0.0, 1.0, 3.0)
SHIFTS = {("a", "v"): GOOD, ("b", "v"): BAD}


def test_one_predecessor_shifts_odds_time_and_a_cost_that_is_a_time_at_a_price() -> None:
    node = behind(NODE, ["a"], SHIFTS)
    assert (node.p, node.q) == (pytest.approx(0.880797), pytest.approx(0.40461, abs=1e-5))
    assert (node.duration_ms, node.cost_usd, node.cost_human_usd, node.cost_compute_usd) == (30.0, 2.0, 2.0, None)
    assert behind(replace(NODE, cost_basis="observed"), ["a"], SHIFTS).cost_usd == 4.0
    assert behind(NODE, ["b"], SHIFTS).cost_usd == 12.0
    stated = replace(NODE, cost_basis="prior")  # a person's price for work of an unknown kind of actor, or a default
    assert behind(replace(stated, paid_by_time=True), ["a"], SHIFTS).cost_usd == 2.0
    assert behind(stated, ["a"], SHIFTS).cost_usd == 4.0


def test_several_predecessors_have_the_mean_and_an_unknown_one_counts_as_no_shift() -> None:
    assert behind(NODE, ["a", "x"], SHIFTS).p == pytest.approx((0.880797 + 0.5) / 2)
    both = behind(NODE, ["a", "b"], SHIFTS)
    assert (both.p, both.cost_usd) == (pytest.approx(0.5), pytest.approx(4.0 * (0.5 + 3.0) / 2))


def test_a_pair_that_was_never_executed_changes_nothing() -> None:
    assert behind(NODE, ["x"], SHIFTS) is NODE
    assert behind(NODE, [], SHIFTS) is NODE
    certain = replace(NODE, p=1.0, q=0.0)
    assert (behind(certain, ["b"], SHIFTS).p, behind(certain, ["a"], SHIFTS).q) == (1.0, 0.0)


def test_errors_of_several_pairs_are_those_of_their_mean() -> None:
    shifts = {("a", "v"): PairShift(p_error=0.03), ("b", "v"): PairShift(p_error=0.04, q_error=0.1)}
    assert errors(NODE, ["a", "b"], shifts) == (pytest.approx(0.025), pytest.approx(0.05))
    assert errors(NODE, ["x"], shifts) == (0.0, 0.0)
    assert errors(NODE, [], shifts) == (0.0, 0.0)


def both_orders(shifts: dict[tuple[str, str], PairShift]) -> tuple[str, ...]:
    """The better order of a, b and v, which must all be there; a tie goes to a first."""
    step = lambda name: TaskNode(name, name, name.upper(), p=0.9, q=0.1, cost_usd=1.0)
    pairs = [(INPUT, "a"), (INPUT, "b"), ("a", "b"), ("b", "a"), ("a", "v"), ("b", "v"), ("v", OUTPUT)]
    needed = tuple(Contains(n, frozenset({n})) for n in "abv")
    options = {n: [step(n)] for n in "abv"}
    problem = Problem(wfg_of(dict.fromkeys(pairs, (0.5, 1))), options, Cost(), 20.0, demands=needed, shifts=shifts)
    return best_paths(problem, 1).paths[0].tasks


def test_the_search_takes_the_order_behind_which_the_next_task_succeeds() -> None:
    assert both_orders({}) == ("a", "b", "v")
    assert both_orders({("b", "v"): PairShift(-2.0)}) == ("b", "a", "v")
    assert both_orders({("a", "v"): PairShift(-2.0)}) == ("a", "b", "v")


def test_a_plan_has_the_figures_behind_its_waits_and_looks_through_reviews() -> None:
    modes = {n: (replace(NODE, id=n, task_id=n, title=n.upper()),) for n in "abv"}
    reviewer = TaskNode("review", "review", "Review", p=1.0, q=0.9, kind="review")
    space = PlanSpace(
        (InputNode(INPUT, "In"), OutputNode(OUTPUT, "Out", 20.0)),
        modes,
        OrderFacts(lambda pair: (5.0, 0.0)),
        Cost(),
        Reward(),
        (reviewer,),
        shifts=SHIFTS,
    )
    refiner = LocalSearch(space)
    chain = refiner.workflow(PlanState(TaskOrder.chain(("b", "a", "v")), {"a_review": 1}))
    fork = refiner.workflow(PlanState(TaskOrder.of(("a", "b", "v"), [("a", "v"), ("b", "v")]), {}))
    p_of = lambda workflow: {t.id: round(t.p, 6) for t in workflow.tasks if not t.is_review}
    assert p_of(chain) == {"b": 0.5, "a": 0.5, "v": 0.880797}
    assert p_of(fork) == {"a": 0.5, "b": 0.5, "v": 0.5}
    table = refiner.table(TaskOrder.chain(("b", "a", "v")))
    assert [round(node.p, 6) for node in table.options["v"]] == [0.880797]
