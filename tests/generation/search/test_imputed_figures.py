"""What stands for unknown costs where workflows are compared: no path wins by its unknown steps, and nothing invented
is shown.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Priors, Reward, Settings
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.search.costs import NodeCost, imputed_usd, node_cost, of_another
from opus_pipelines.generation.search.labels import best_paths
from opus_pipelines.generation.search.problem import Limit, Problem
from opus_pipelines.lwm.workflow_graph import WFG, WfgEdge, WfgNode
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import INPUT, OUTPUT, InputNode, OutputNode, TaskNode, Workflow

AMOUNTS = st.none() | st.floats(0, 1e6)
TABLES = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.lists(AMOUNTS, min_size=1, max_size=4), min_size=1, max_size=6
)


def cost_of(usd: float | None, ms: float | None = None) -> NodeCost:
    way = ExecutionMode("human", implementations=3, cost_usd_mean=usd, duration_ms_mean=ms)
    return node_cost(Task("t", "T"), way, Cost(), Priors())


@given(TABLES)
def test_known_costs_are_left_alone_and_unknown_ones_never_win_within_a_task(table: dict[str, Any]) -> None:
    found = imputed_usd({t: [cost_of(x) for x in costs] for t, costs in table.items()}, Cost())
    anything_known = any(x is not None for costs in table.values() for x in costs)
    for task, costs in table.items():
        for usd, instead in zip(costs, found[task], strict=True):
            assert usd is None or instead == 0.0
            assert instead == 0.0 or anything_known
            if usd is None:
                assert all(instead >= other for other in costs if other is not None)


@pytest.mark.long
@given(TABLES)
def test_what_stands_for_a_task_of_unknown_cost_lies_within_what_others_cost(table: dict[str, Any]) -> None:
    found = imputed_usd({t: [cost_of(x) for x in costs] for t, costs in table.items()}, Cost())
    known = [x for costs in table.values() for x in costs if x is not None]
    for task, costs in table.items():
        if known and all(x is None for x in costs):
            assert all(min(known) * (1 - 1e-9) <= x <= max(known) * (1 + 1e-9) for x in found[task])


def test_the_mean_of_what_other_tasks_usually_cost_stands_for_an_unknown_one() -> None:
    costs = {"a": [cost_of(1.0), cost_of(100.0)], "b": [cost_of(None), cost_of(3.0)], "u": [cost_of(None)]}
    assert imputed_usd(costs, Cost()) == {"a": (0.0, 0.0), "b": (3.0, 0.0), "u": (2.0,)}
    assert of_another(costs, True, True, Cost()) == 2.0
    assert of_another(costs, False, True, Cost()) == 0.0


def test_unknown_time_counts_where_time_has_a_price() -> None:
    costs = {"a": [cost_of(1.0, 3_600_000.0)], "u": [cost_of(2.0, None)]}
    assert imputed_usd(costs, Cost()) == {"a": (0.0,), "u": (0.0,)}
    assert imputed_usd(costs, Cost(usd_per_hour_of_duration=5.0)) == {"a": (0.0,), "u": (5.0,)}


def nodes_of(**costs: float | None) -> dict[str, list[TaskNode]]:
    graph = WorkGraph.of(
        [
            Task(
                t,
                t,
                execution_modes=(
                    ExecutionMode("human", implementations=9, cost_usd_mean=x, p=1.0, p_n=9, q=0.0, q_n=9),
                ),
            )
            for t, x in costs.items()
        ],
        [],
    )
    found = Prices.of(graph, list(costs), Cost(), Settings())
    return {t: list(ways) for t, ways in found.nodes.items()}


def best(nodes: dict[str, list[TaskNode]], *demands: Limit) -> tuple[str, ...]:
    names = [INPUT, *nodes, OUTPUT]
    edges = [(INPUT, "cheap"), ("cheap", "end"), (INPUT, "other"), ("other", "end"), ("end", OUTPUT)]
    wfg = WFG(
        {n: WfgNode(n, n, "history", ()) for n in names}, {e: WfgEdge(*e, "history", None, 0.0, 1, ()) for e in edges}
    )
    (path,) = best_paths(Problem(wfg, nodes, Cost(), 100.0, demands=demands), 1).paths
    return path.tasks


def test_a_path_does_not_win_because_the_cost_of_a_step_is_unknown() -> None:
    assert best(nodes_of(cheap=1.0, other=None, end=9.0)) == ("cheap", "end")
    assert best(nodes_of(cheap=8.0, other=None, end=2.0)) == (
        "other",
        "end",
    )  # 5 stands for it: what a step costs elsewhere


def test_a_limit_is_held_against_what_is_known() -> None:
    assert best(nodes_of(cheap=4.0, other=None, end=9.0), Limit("max_cost_usd 9", "cost_usd", 9.0)) == ("other", "end")


def test_what_is_imputed_is_in_no_figure_that_is_shown() -> None:
    nodes = nodes_of(cheap=1.0, other=None, end=9.0)
    chain = [nodes["other"][0], nodes["end"][0]]
    workflow = Workflow.of(
        [InputNode("in", "In"), *chain, OutputNode("out", "Out", 100.0)], pairwise(["in", "other", "end", "out"])
    )
    found = evaluate(workflow, Cost(), Reward())
    assert (found.cost_usd, found.reward_usd, found.imputed_usd, found.worth) == (9.0, 91.0, 5.0, 86.0)
    assert (chain[0].cost_usd, chain[0].known_cost_usd, chain[0].cost_basis) == (0.0, None, "unknown")
    assert replace(chain[0], cost_basis="observed").known_cost_usd == 0.0  # what is known to cost nothing costs 0


@given(st.floats(0, 50), st.floats(0, 50), st.lists(AMOUNTS, max_size=4))
def test_steps_that_two_workflows_share_decide_nothing_between_them(one: float, two: float, shared: list[Any]) -> None:
    """Known parts are compared on the steps that both have: the same further steps, known or not, leave the difference
    as it is.
    """
    nodes = nodes_of(one=one, two=two, **{f"s{i}": x for i, x in enumerate(shared)})
    worth = {}
    for first in ("one", "two"):
        names = [first, *(f"s{i}" for i in range(len(shared)))]
        steps = [nodes[n][0] for n in names]
        made = Workflow.of(
            [InputNode("in", "In"), *steps, OutputNode("out", "Out", 100.0)], pairwise(["in", *names, "out"])
        )
        worth[first] = evaluate(made, Cost(), Reward()).worth
    assert worth["one"] - worth["two"] == pytest.approx(two - one, abs=1e-6)
