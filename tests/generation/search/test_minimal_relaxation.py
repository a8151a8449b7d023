"""Which demands conflict, how far each would have to give way, and what those that bind cost."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.labels import best_paths
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Limit, Problem
from opus_pipelines.generation.search.relaxation import infeasibility, relaxation_costs
from opus_pipelines.lwm.workflow_graph import WFG, WfgEdge, WfgNode
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode


def wfg_of(*chains: str) -> WFG:
    edges = sorted({pair for chain in chains for pair in pairwise([INPUT, *chain, OUTPUT])})
    nodes = sorted({n for pair in edges for n in pair})
    return WFG(
        {n: WfgNode(n, n, "history", ()) for n in nodes}, {e: WfgEdge(*e, "history", None, 0.0, 1, ()) for e in edges}
    )


def way(name: str, cost: float, hours: float = 1.0, p: float = 0.9) -> TaskNode:
    return TaskNode(name, name, name, p=p, cost_usd=cost, duration_ms=hours * 3.6e6)


WAYS = {
    "a": [way("a", 2.0), way("a", 5.0, p=1.0)],
    "c": [way("c", 3.0, 4.0)],
    "p": [way("p", 1.0), way("p", 4.0, 0.5, 0.99)],
}
ASKED = Problem(wfg_of("ap", "acp"), WAYS, Cost(), 100.0)
BUDGET = Limit("max_cost_usd 5", "cost_usd", 5.0)
LITTLE = Limit("max_cost_usd 1", "cost_usd", 1.0)
ALL_RIGHT = Limit("min_success 0.999", "success", 0.999)
TIME = Limit("max_duration_hours 2", "duration_ms", 7.2e6)
SUCCESS = Limit("min_success 0.95", "success", 0.95)
CHECK = Contains("must_contain 'Check'", frozenset("c"))
NO_PAY = Avoids("must_not_contain 'Pay'", frozenset("p"))
CHECK_FIRST = Before("before ['Check', 'Ask']", ((frozenset("c"), frozenset("a")),))


@pytest.mark.parametrize(
    ("demands", "conflict", "sentences"),
    [
        (
            (BUDGET, CHECK),
            (BUDGET, CHECK),
            [
                "conflict: no path keeps both max_cost_usd 5 and must_contain 'Check'",
                "relax: max_cost_usd 6.00 instead of 5.00, all else kept",
                "relax: without must_contain 'Check', all else kept",
            ],
        ),
        (
            (BUDGET, SUCCESS, TIME),
            (BUDGET, SUCCESS),
            [
                "conflict: no path keeps both max_cost_usd 5 and min_success 0.95",
                "relax: min_success 0.810 instead of 0.950, all else kept",
                "relax: max_cost_usd 9.00 instead of 5.00, all else kept",
            ],
        ),
        (
            (CHECK, CHECK_FIRST, NO_PAY),
            (NO_PAY,),
            [
                "conflict: no path keeps must_not_contain 'Pay'",
                "conflict: no path keeps both must_contain 'Check' and before ['Check', 'Ask']",
                "relax: no single demand mends it",
            ],
        ),
        (
            (LITTLE, ALL_RIGHT, TIME),
            (LITTLE,),
            [
                "conflict: no path keeps max_cost_usd 1",
                "conflict: no path keeps min_success 0.999",
                "relax: max_cost_usd 9.00 instead of 1.00 and min_success 0.990 instead of 0.999, all else kept",
            ],
        ),
        (
            (TIME, CHECK, CHECK_FIRST),
            (CHECK, CHECK_FIRST),
            [
                "conflict: no path keeps both must_contain 'Check' and before ['Check', 'Ask']",
                "relax: without must_contain 'Check', all else kept",
            ],
        ),
        (
            (NO_PAY, TIME),
            (NO_PAY,),
            [
                "conflict: no path keeps must_not_contain 'Pay'",
                "relax: without must_not_contain 'Pay', all else kept",
            ],
        ),
        (
            (Contains("must_contain 'Audit'", frozenset()), NO_PAY),
            (Contains("must_contain 'Audit'", frozenset()),),
            [
                "conflict: no path keeps must_contain 'Audit'",
                "conflict: no path keeps must_not_contain 'Pay'",
                "relax: no single demand mends it",
            ],
        ),
    ],
)
def test_the_smallest_conflict_and_every_way_out(
    demands: tuple[Any, ...], conflict: tuple[Any, ...], sentences: list[str]
) -> None:
    why = infeasibility(replace(ASKED, demands=demands))
    assert why is not None
    assert why.conflicts[0] == conflict
    assert why.smallest
    assert why.proven
    assert why.sentences == sentences


def test_three_that_only_conflict_together() -> None:
    dear, slow = way("x", 9.0, 0.5, 0.99), way("x", 1.0, 9.0, 0.99)
    problem = Problem(
        wfg_of("x"), {"x": [dear, slow, way("x", 1.0, 0.5, 0.5)]}, Cost(), 10.0, demands=(BUDGET, TIME, SUCCESS)
    )
    why = infeasibility(problem)
    assert why is not None
    assert why.conflicts == ((BUDGET, TIME, SUCCESS),)
    assert why.smallest
    assert why.sentences[0].startswith("conflict: ")
    assert why.sentences[0].endswith(" max_cost_usd 5, max_duration_hours 2 and min_success 0.95")
    assert [round(value, 6) for _, value in why.limits] == [0.5, 9.0, 9 * 3.6e6]
    for limit, value in why.limits:
        moved = [replace(d, value=value) if d is limit else d for d in problem.demands]
        assert best_paths(replace(problem, demands=tuple(moved))).paths


def test_where_something_fits_there_is_nothing_to_say() -> None:
    assert infeasibility(replace(ASKED, demands=(TIME, CHECK_FIRST))) is None


def test_a_graph_without_a_way_through_says_so() -> None:
    broken = replace(ASKED.wfg, edges={pair: e for pair, e in ASKED.wfg.edges.items() if pair[1] != OUTPUT})
    why = infeasibility(replace(ASKED, wfg=broken, demands=(TIME,)))
    assert why is not None
    assert why.sentences[0].startswith("conflict: no path leads ")


def test_what_a_demand_costs_is_what_the_best_gains_without_it() -> None:
    problem = replace(ASKED, demands=(CHECK, replace(TIME, value=1e9)))
    best = best_paths(problem).paths[0]
    free = best_paths(problem.without(CHECK)).paths[0]
    assert best.worth == pytest.approx(100 * 1.0 * 0.9 * 0.99 - 12)
    assert free.worth == pytest.approx(100 * 1.0 * 0.99 - 9)
    assert relaxation_costs(problem, best.worth, problem.demands) == [(CHECK, pytest.approx(free.worth - best.worth))]
