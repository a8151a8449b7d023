"""The seven cost properties of EVAL A5 for C(W) of (5), duration and success of compositions, monotonicity where p >=
q.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.cost import peaks
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.evaluation.success import exact_success, product_success
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from tests.workflow.evaluation.composition import parallel, sequential

HOUR = 3_600_000.0
share = st.floats(0, 1)
weight = st.integers(1, 9)
prices = st.builds(Cost, usd_per_hour_of_duration=weight, usd_per_gb_held=weight, usd_per_thread_held=weight)
unheld = st.builds(Cost, usd_per_hour_of_duration=weight)
few = settings(max_examples=80, deadline=None)


def cost(workflow: Workflow, price: Cost) -> float:
    return evaluate(workflow, price, Reward()).cost_usd


@st.composite
def pieces(draw: Callable[..., Any], lanes_in: int = 1, lanes_out: int = 1, steady: bool = False) -> Workflow:
    """A workflow with that many typed inputs and outputs, every task below an input; `steady`: every task
    with p >= q.
    """
    above = [f"i{k}" for k in range(lanes_in)]
    nodes = [InputNode(i, i, draw(share), f"lane {k}") for k, i in enumerate(above)]
    edges = []
    for k in range(draw(st.integers(1, 6))):
        q, p = sorted([draw(share), draw(share)]) if steady else (draw(share), draw(share))
        nodes.append(
            TaskNode(
                f"t{k}",
                f"t{k}",
                f"t{k}",
                p=p,
                q=q,
                cost_usd=draw(st.integers(0, 9)),
                duration_ms=HOUR * draw(st.integers(0, 5)),
                memory_gb=draw(st.integers(0, 8)),
                threads=draw(st.integers(0, 4)),
            )
        )
        edges += [(u, f"t{k}") for u in draw(st.lists(st.sampled_from(above), min_size=1, max_size=3, unique=True))]
        above.append(f"t{k}")
    for k in range(lanes_out):
        nodes.append(OutputNode(f"o{k}", f"o{k}", 1.0, f"lane {k}"))
        edges += [(u, f"o{k}") for u in draw(st.lists(st.sampled_from(above), min_size=1, max_size=3, unique=True))]
    return Workflow.of(nodes, edges)


def changed(workflow: Workflow, node: str, **figures: float) -> Workflow:
    return Workflow.of([replace(n, **figures) if n.id == node else n for n in workflow.nodes], workflow.edges)


def line(**figures: float) -> Workflow:
    """One task between a typed input and a typed output."""
    nodes = [
        InputNode("in", "In", 1.0, "lane 0"),
        TaskNode("t", "t", "T", **figures),
        OutputNode("out", "Out", 1.0, "lane 0"),
    ]
    return Workflow.of(nodes, [("in", "t"), ("t", "out")])


def lanes(*hours: float) -> Workflow:
    """Lanes beside each other, each with one task of so many hours."""
    nodes, edges = [], []
    for k, duration in enumerate(hours):
        nodes += [
            InputNode(f"i{k}", "I", 1.0, f"lane {k}"),
            TaskNode(f"t{k}", f"t{k}", f"t{k}", duration_ms=HOUR * duration),
            OutputNode(f"o{k}", "O", 1.0, f"lane {k}"),
        ]
        edges += [(f"i{k}", f"t{k}"), (f"t{k}", f"o{k}")]
    return Workflow.of(nodes, edges)


@pytest.mark.long
@few
@given(pieces(), prices, weight)
def test_non_triviality_and_implementation_sensitivity(workflow: Workflow, price: Cost, more: int) -> None:
    dearer = changed(workflow, "t0", cost_usd=workflow.by_id["t0"].cost_usd + more)
    assert (dearer.inputs, dearer.outputs, dearer.edges) == (workflow.inputs, workflow.outputs, workflow.edges)
    assert cost(dearer, price) == pytest.approx(cost(workflow, price) + more)


@pytest.mark.long
@few
@given(pieces(2, 2), prices, st.randoms(use_true_random=False))
def test_cost_invariance(workflow: Workflow, price: Cost, rng: Any) -> None:
    nodes = [replace(n, id=f"{rng.random()} {n.id}") for n in workflow.nodes]
    names = {old.id: new.id for old, new in zip(workflow.nodes, nodes, strict=True)}
    edges = [(names[u], names[v]) for u, v in workflow.edges]
    rng.shuffle(nodes)
    rng.shuffle(edges)
    assert cost(Workflow.of(nodes, edges), price) == pytest.approx(cost(workflow, price))


@pytest.mark.long
@few
@given(pieces(2, 2), pieces(1, 2), prices)
def test_parallel_sub_additivity_and_commutativity(first: Workflow, second: Workflow, price: Cost) -> None:
    assert cost(parallel(first, second), price) <= cost(first, price) + cost(second, price) + 1e-9
    assert cost(parallel(first, second), price) == pytest.approx(cost(parallel(second, first), price))


@pytest.mark.long
@few
@given(pieces(2, 1), pieces(1, 2), prices)
def test_sequential_sub_additivity_over_one_lane(first: Workflow, second: Workflow, price: Cost) -> None:
    assert cost(sequential(first, second), price) <= cost(first, price) + cost(second, price) + 1e-9


@pytest.mark.long
@few
@given(pieces(2, 2), pieces(2, 2), unheld)
def test_sequential_sub_additivity_over_several_lanes_where_holding_is_free(
    first: Workflow, second: Workflow, price: Cost
) -> None:
    assert cost(sequential(first, second), price) <= cost(first, price) + cost(second, price) + 1e-9


def test_sequential_sub_additivity_fails_over_several_lanes_where_holding_costs() -> None:
    """Spec A5 (D) says peaks of a composition stay below their sum; a lane that comes late can make two tasks of the
    second meet.
    """
    tasks = [
        TaskNode("a", "a", "A", duration_ms=HOUR),
        TaskNode("late", "l", "L", duration_ms=HOUR, memory_gb=4),
        TaskNode("early", "e", "E", duration_ms=HOUR, memory_gb=4),
    ]
    ends = [*(InputNode(f"i{k}", "I", 1.0, f"lane {k}") for k in range(2)), OutputNode("out", "O", 1.0)]
    second = Workflow.of(
        [*ends, *tasks], [("i0", "a"), ("a", "late"), ("late", "out"), ("i1", "early"), ("early", "out")]
    )
    first, price = lanes(0, 1), Cost(usd_per_hour_of_duration=1, usd_per_gb_held=1)
    assert [peaks(w).memory_gb for w in (first, second, sequential(first, second))] == [0, 4, 8]
    assert cost(first, price) + cost(second, price) == 1 + 2 + 4
    assert cost(sequential(first, second), price) == 2 + 8


@few
@given(weight, weight, prices)
def test_context_sensitivity(held: int, hours: int, price: Cost) -> None:
    """Two that cost the same; after them one that holds memory: what the first holds anyway is not paid twice."""
    holds = line(duration_ms=HOUR * hours, memory_gb=held)
    pays = line(duration_ms=HOUR * hours, cost_usd=held * price.usd_per_gb_held)
    assert cost(holds, price) == pytest.approx(cost(pays, price))
    gap = cost(sequential(pays, holds), price) - cost(sequential(holds, holds), price)
    assert gap == pytest.approx(held * price.usd_per_gb_held)


def barrier() -> Workflow:
    """Two lanes that wait for each other."""
    nodes = [
        *(InputNode(f"i{k}", "I", 1.0, f"lane {k}") for k in range(2)),
        TaskNode("b", "b", "B"),
        *(OutputNode(f"o{k}", "O", 1.0, f"lane {k}") for k in range(2)),
    ]
    return Workflow.of(nodes, [("i0", "b"), ("i1", "b"), ("b", "o0"), ("b", "o1")])


@few
@given(weight, weight, prices)
def test_order_sensitivity(short: int, longer: int, price: Cost) -> None:
    """Lanes (s, s+l) and (s+l, s): waiting between them costs the longer twice, waiting before them does not."""
    one, two = lanes(short, short + longer), lanes(short + longer, short)
    between = cost(sequential(sequential(one, barrier()), two), price)
    before = cost(sequential(sequential(barrier(), one), two), price)
    assert between - before == pytest.approx(longer * price.usd_per_hour_of_duration)


@pytest.mark.long
@few
@given(pieces(2, 2), pieces(2, 2))
def test_where_only_consumption_costs_the_cost_is_additive(first: Workflow, second: Workflow) -> None:
    whole = pytest.approx(cost(first, Cost()) + cost(second, Cost()))
    assert cost(parallel(first, second), Cost()) == whole
    assert cost(sequential(first, second), Cost()) == whole


@pytest.mark.long
@few
@given(pieces(2, 2), pieces(2, 2))
def test_duration_of_compositions(first: Any, second: Any) -> None:
    one, two, beside, after = (
        evaluate(w, Cost(), Reward()) for w in (first, second, parallel(first, second), sequential(first, second))
    )
    assert beside.duration_ms == max(one.duration_ms, two.duration_ms)
    assert max(one.duration_ms, two.duration_ms) <= after.duration_ms <= one.duration_ms + two.duration_ms
    for result in (one, two, beside, after):
        assert result.duration_ms == max(result.finish_ms.values())


@pytest.mark.long
@few
@given(pieces(2, 1), pieces(1, 2), st.sampled_from([exact_success, product_success]))
def test_success_of_compositions(first: Workflow, second: Workflow, inferred: Callable[..., Any]) -> None:
    """Beside each other they succeed independently; after each other the first's success is the second's prior."""
    one, two = inferred(first).workflow, inferred(second).workflow
    assert inferred(parallel(first, second)).workflow == pytest.approx(one * two, abs=1e-12)
    assert inferred(sequential(first, second)).workflow == pytest.approx(
        inferred(changed(second, "i0", prior=one)).workflow, abs=1e-12
    )


@pytest.mark.long
@few
@given(pieces(2, 2, steady=True), share, st.data(), st.sampled_from([exact_success, product_success]))
def test_where_p_is_at_least_q_nothing_gets_worse_when_something_gets_better(
    workflow: Workflow, better: float, data: Any, inferred: Callable[..., Any]
) -> None:
    node = data.draw(st.sampled_from([*workflow.inputs, *workflow.tasks]))
    name = "prior" if isinstance(node, InputNode) else data.draw(st.sampled_from(["p", "q"]))
    top = node.p if name == "q" else 1.0
    raised = changed(workflow, node.id, **{name: max(getattr(node, name), min(better, top))})
    before, after = inferred(workflow), inferred(raised)
    assert all(after.nodes[n] >= before.nodes[n] - 1e-12 for n in before.nodes)
    assert after.workflow >= before.workflow - 1e-12


@pytest.mark.parametrize("inferred", [exact_success, product_success])
def test_where_q_exceeds_p_something_better_makes_it_worse(inferred: Callable[..., Any]) -> None:
    worse, better = (inferred(changed(line(p=0.2, q=0.9), "in", prior=prior)).workflow for prior in (0.1, 0.8))
    assert worse > better
