"""EVAL (1)-(7), (16)-(18): closed forms, laws on random workflows, and refusals."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.cost import peaks, schedule, split_cost
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.evaluation.success import differences, success_probabilities, workflow_success
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

PRICES = Cost(usd_per_hour_of_duration=3.6, usd_per_gb_held=0.5, usd_per_thread_held=0.25)
share = st.floats(0, 1)
amount = st.one_of(st.just(0.0), st.floats(1e-6, 1e4))


@st.composite
def workflows(draw: Callable[..., Any]) -> Workflow:
    n = draw(st.integers(1, 7))
    names = ["in", *(f"t{i}" for i in range(n))]
    part = st.one_of(st.none(), amount)
    tasks = [
        TaskNode(
            name,
            name,
            name,
            p=draw(share),
            q=draw(share),
            cost_usd=draw(amount),
            cost_compute_usd=draw(part),
            cost_human_usd=draw(part),
            duration_ms=draw(st.sampled_from([0.0, 1.0, 5.0, 20.0])),
            memory_gb=float(draw(st.integers(0, 8))),
            threads=float(draw(st.integers(0, 4))),
            actor_kind=draw(st.sampled_from(["human", "model", "code", None])),
        )
        for name in names[1:]
    ]
    edges = [(names[draw(st.integers(0, i))], t.id) for i, t in enumerate(tasks)]
    edges += [pair for pair in itertools.combinations(names, 2) if draw(st.booleans())]
    outputs = [OutputNode(f"out{i}", "Out", draw(st.floats(-100, 100))) for i in range(draw(st.integers(1, 2)))]
    edges += [(draw(st.sampled_from(names)), out.id) for out in outputs]
    return Workflow.of([InputNode("in", "In", draw(share)), *tasks, *outputs], edges)


def longest(workflow: Workflow, node: str) -> float:
    own = getattr(workflow.by_id[node], "duration_ms", 0.0)
    return own + max((longest(workflow, u) for u in workflow.predecessors(node)), default=0.0)


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(workflows())
def test_laws(workflow: Workflow) -> None:
    result = evaluate(workflow, PRICES, Reward())
    assert all(0 <= p <= 1 for p in result.success.values())
    assert 0 <= result.success_probability <= 1
    assert result.duration_ms == max(result.finish_ms.values()) == max(longest(workflow, n.id) for n in workflow.nodes)
    parts = (
        result.cost_compute_usd
        + result.cost_model_usd
        + result.cost_human_usd
        + result.cost_time_usd
        + result.cost_held_usd
    )
    assert parts == result.cost_usd
    consumed = result.cost_compute_usd + result.cost_model_usd + result.cost_human_usd
    assert consumed == pytest.approx(math.fsum(t.cost_usd for t in workflow.tasks), rel=1e-9, abs=1e-12)
    assert result.reward_usd == pytest.approx(
        sum(n.gain_usd * result.success[n.id] for n in workflow.outputs) - result.cost_usd
    )


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(workflows())
def test_peaks_equal_the_largest_sum_over_active_sets(workflow: Workflow) -> None:
    times = schedule(workflow)
    active = [
        [t for t in workflow.tasks if times.start_ms[t.id] <= at < times.finish_ms[t.id]]
        for at in times.start_ms.values()
    ]
    assert peaks(workflow).memory_gb == max(sum(t.memory_gb for t in tasks) for tasks in active)
    assert peaks(workflow).threads == max(sum(t.threads for t in tasks) for tasks in active)


@settings(max_examples=60, deadline=None)
@given(share, st.lists(st.tuples(share, share), min_size=1, max_size=12))
def test_a_chain_has_a_closed_form(prior: float, figures: list[Any]) -> None:
    names = [f"t{i:02}" for i in range(len(figures))]
    tasks = [TaskNode(n, n, n, p=p, q=q) for n, (p, q) in zip(names, figures, strict=True)]
    steps = itertools.pairwise(["in", *names, "out"])
    workflow = Workflow.of([InputNode("in", "In", prior), *tasks, OutputNode("out", "Out", 1.0)], steps)
    # x -> q + (p - q) x, task after task
    slope = math.prod(p - q for p, q in figures)
    closed = prior * slope + math.fsum(
        q * math.prod(a - b for a, b in figures[i + 1 :]) for i, (_, q) in enumerate(figures)
    )
    assert workflow_success(workflow) == pytest.approx(closed, abs=1e-12)
    assert differences(workflow) == []


def diamond(prior: float, p: float) -> Workflow:
    nodes = [
        InputNode("in", "In", prior),
        *(
            TaskNode(n, n, n, p=p, duration_ms=5, memory_gb=g, threads=1)
            for n, g in [("a", 2.0), ("b", 3.0), ("c", 4.0)]
        ),
        OutputNode("out", "Out", 10.0),
    ]
    return Workflow.of(nodes, [("in", "a"), ("in", "b"), ("a", "c"), ("b", "c"), ("c", "out")])


def test_parallel_tasks_by_hand() -> None:
    result = evaluate(diamond(1.0, 0.5), PRICES, Reward())
    assert result.success == {"in": 1.0, "a": 0.5, "b": 0.5, "c": 0.125, "out": 0.125}
    assert result.start_ms == {"in": 0, "a": 0, "b": 0, "c": 5, "out": 10}
    assert (result.duration_ms, result.peak_memory_gb, result.peak_threads) == (10, 5, 2)
    assert result.cost_time_usd == pytest.approx(1e-5)
    assert result.cost_held_usd == 3.0
    assert result.reward_usd == pytest.approx(1.25 - 3.00001)


def test_exact_inference_is_the_default_and_the_product_form_stands_beside_it() -> None:
    shared = diamond(0.5, 0.5)
    assert differences(shared)
    product, exact = (evaluate(shared, Cost(), Reward(inference=way)) for way in ("product", "exact"))
    assert product.success["out"] == product.success_probability == 0.25 * 0.25 * 0.5
    assert exact.success["out"] == exact.success_probability == 0.5 * 0.25 * 0.5
    assert (exact.expected_gain_usd, exact.reward_usd) == (0.625, 0.625 - exact.cost_usd)
    assert exact.cost_usd == product.cost_usd
    assert evaluate(shared, Cost(), Reward()) == exact
    assert (exact.success_inference, product.success_inference) == ("exact", "product")
    assert exact.success_probability_product == product.success_probability
    assert exact.reward_product_usd == product.reward_usd


@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_where_the_product_is_exact_both_say_the_same(prior: float) -> None:
    workflow = diamond(prior, 0.3)
    assert differences(workflow) == []
    product, exact = (evaluate(workflow, PRICES, Reward(inference=way)) for way in ("product", "exact"))
    assert replace(exact, success_inference="product") == product


def test_two_outputs_of_one_uncertain_task_are_not_independent() -> None:
    nodes = [
        InputNode("in", "In"),
        TaskNode("a", "a", "A", p=0.5),
        OutputNode("x", "X", 1.0),
        OutputNode("y", "Y", 2.0),
    ]
    workflow = Workflow.of(nodes, [("in", "a"), ("a", "x"), ("a", "y")])
    assert workflow_success(workflow) == 0.25
    assert success_probabilities(workflow)["x"] == 0.5
    assert differences(workflow)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((6.0, None, None, None, "human"), (0, 0, 6)),
        ((6.0, None, None, None, "model"), (0, 6, 0)),
        ((6.0, None, None, None, "code"), (6, 0, 0)),
        ((6.0, None, None, None, None), (6, 0, 0)),
        ((6.0, 1.0, 2.0, 3.0, "human"), (1, 2, 3)),
        ((6.0, 1.0, None, None, "model"), (1, 5, 0)),
        ((6.0, 4.0, None, 8.0, "human"), (2, 0, 4)),
        ((0.0, None, None, None, "human"), (0, 0, 0)),
    ],
)
def test_cost_by_who_consumed_it(arguments: tuple[Any, ...], parts: tuple[int, ...]) -> None:
    assert split_cost(*arguments) == parts


def test_without_a_stated_gain_there_is_no_reward_and_success_is_what_counts() -> None:
    stated = diamond(1.0, 0.5)
    unstated = Workflow.of([*stated.nodes[:-1], OutputNode("out", "Out", None)], stated.edges)
    result, other = evaluate(unstated, PRICES, Reward()), evaluate(stated, PRICES, Reward())
    assert (result.reward_usd, result.gain_usd, result.expected_gain_usd) == (None, None, None)
    assert (result.cost_usd, result.success_probability, result.worth) == (other.cost_usd, 0.125, 0.125)
    assert other.worth == other.reward_usd
