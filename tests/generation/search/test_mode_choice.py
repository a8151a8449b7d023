"""Execution modes and reviews against brute force: every combination of small problems, scored one by one."""

import itertools
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.net import best_on_chain
from opus_pipelines.generation.search.reviews import review_place, with_places
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from tests.generation.search.chosen import Choice, best_choice

PRICES = Cost(usd_per_hour_of_duration=1.0)


def chain(tasks: list[TaskNode], gain: float = 20.0, prior: float = 1.0) -> Workflow:
    ends = InputNode("in", "In", prior), OutputNode("out", "Out", gain)
    return Workflow.of([*ends, *tasks], pairwise(["in", *(t.id for t in tasks), "out"]))


def random_problem(seed: int, tasks: int, straight: bool, most: int = 3) -> tuple[Workflow, dict[str, list[TaskNode]]]:
    draw = np.random.default_rng(seed)
    options = {
        f"t{i}": [
            TaskNode(
                f"t{i}",
                f"t{i}",
                f"T{i}",
                p=draw.uniform(0.5, 1),
                q=draw.uniform(0, 0.6),
                cost_usd=draw.uniform(0, 4),
                duration_ms=draw.uniform(0, 4e6),
                actor_kind=f"kind {k}",
            )
            for k in range(draw.integers(1, most + 1))
        ]
        for i in range(tasks)
    }
    first = [nodes[0] for nodes in options.values()]
    if straight:
        return chain(first, prior=draw.random()), options
    edges = [(f"t{i}", f"t{j}") for j in range(tasks) for i in range(j) if draw.random() < 0.5]
    edges += [("in", f"t{j}") for j in range(tasks) if not any(dst == f"t{j}" for _, dst in edges)]
    edges += [(f"t{i}", "out") for i in range(tasks) if not any(src == f"t{i}" for src, _ in edges)]
    return Workflow.of([InputNode("in", "In", 0.9), *first, OutputNode("out", "Out", 20.0)], edges), options


def brute(workflow: Workflow, options: dict[str, list[TaskNode]], limit: float = float("inf")) -> float:
    found = -float("inf")
    for picks in product(*options.values()):
        worth = evaluate(Workflow.of([*workflow.inputs, *picks, *workflow.outputs], workflow.edges), PRICES, Reward())
        if worth.cost_usd <= limit:
            found = max(found, worth.reward_usd)
    return found


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans())
def test_the_best_choice_is_that_of_brute_force(seed: int, tasks: int, straight: bool) -> None:
    workflow, options = random_problem(seed, tasks, straight)
    found = best_choice(workflow, options, PRICES)
    assert found is not None
    assert found.exact
    assert found.worth == pytest.approx(brute(workflow, options), abs=1e-9)
    assert evaluate(found.workflow, PRICES, Reward()).reward_usd == pytest.approx(found.worth, abs=1e-9)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_the_envelope_of_a_chain_is_exact(seed: int, tasks: int) -> None:
    workflow, options = random_problem(seed, tasks, straight=True)
    lines = [[(o.p, o.q, o.cost_usd + o.duration_ms / 3.6e6) for o in nodes] for nodes in options.values()]
    picks = best_on_chain(lines, workflow.inputs[0].prior, 20.0)
    made = [nodes[i] for nodes, i in zip(options.values(), picks, strict=True)]
    worth = evaluate(chain(made, prior=workflow.inputs[0].prior), PRICES, Reward()).reward_usd
    assert worth == pytest.approx(brute(workflow, options), abs=1e-9)


def greedy(workflow: Workflow, options: dict[str, list[TaskNode]]) -> Choice:
    found = best_choice(workflow, options, PRICES, combinations=0)
    assert found is not None
    return found


@pytest.mark.long
@pytest.mark.parametrize("tasks", [2, 3, 4, 5, 6])
def test_greedy_finds_the_optimum_of_these_problems(tasks: int) -> None:
    for seed in range(40):
        problem = random_problem(seed, tasks, straight=False)
        assert greedy(*problem).worth == pytest.approx(brute(*problem), abs=1e-9)


def test_greedy_may_miss_the_optimum_and_does_not_call_itself_exact() -> None:
    problem = random_problem(323, 6, straight=False)
    found = greedy(*problem)
    assert not found.exact
    assert found.worth == pytest.approx(-1.362994, abs=1e-6)
    assert brute(*problem) == pytest.approx(-0.768973, abs=1e-6)


@pytest.mark.long
def test_greedy_reviews_stay_within_one_percent_of_exact() -> None:
    """Every place of a branching workflow may hold a review: 2^places combinations, and the same without looking at
    them all.

    It is no law: a random search found a workflow that misses by 8 %. Fixed workflows hold it: 79 of 80 within 1 %,
    none off by 3 %.
    """
    off = []
    for seed, dear in itertools.product(range(40), (False, True)):
        workflow, _ = random_problem(seed, 2 + seed % 7, straight=False, most=1)
        reviewer = TaskNode(
            "review",
            "review",
            "Review",
            p=0.99,
            q=0.7,
            cost_usd=2.0 if dear else 0.5,
            actor_kind="human",
            kind="review",
        )
        whole, places = with_places(workflow, [reviewer])
        exact = best_choice(whole, places, PRICES)
        greedy = best_choice(whole, places, PRICES, combinations=0)
        assert exact is not None
        assert greedy is not None
        assert exact.exact
        off.append((exact.worth - greedy.worth) / max(1.0, abs(exact.worth)))
    assert sum(miss <= 0.01 for miss in off) >= 79
    assert max(off) <= 0.03


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0, 12))
def test_a_budget_is_kept_or_nothing_is_chosen(seed: int, tasks: int, limit: float) -> None:
    workflow, options = random_problem(seed, tasks, straight=False)
    found = best_choice(workflow, options, PRICES, lambda batch: batch.cost_usd <= limit)
    expected = brute(workflow, options, limit)
    assert (found is None) == (expected == -float("inf"))
    if found is not None:
        assert found.worth == pytest.approx(expected, abs=1e-9)


def test_a_long_chain_is_solved_exactly_and_fast_enough_to_test() -> None:
    workflow, options = random_problem(3, 60, straight=True, most=4)
    found = best_choice(workflow, options, PRICES)
    assert found is not None
    assert found.exact
    for name, nodes in options.items():
        for other in nodes:
            tasks = [other if t.id == name else t for t in found.workflow.tasks]
            worth = evaluate(chain(tasks, prior=workflow.inputs[0].prior), PRICES, Reward()).reward_usd
            assert worth <= found.worth + 1e-9


def test_a_review_goes_where_it_earns_more_than_it_costs() -> None:
    shaky = TaskNode("write", "write", "Write", p=0.7)
    sure = TaskNode("send", "send", "Send", p=0.999, q=0.5)
    places = [review_place("write", "Write"), review_place("send", "Send")]
    options = {p.id: [p, replace(p, p=0.99, q=0.8, cost_usd=1.0, actor_kind="human")] for p in places}
    found = best_choice(chain([shaky, places[0], sure, places[1]]), options, Cost())
    assert found is not None
    assert [t.id for t in found.workflow.tasks if t.kind == "review" and t.actor_kind] == ["write_review"]
    before = 0.99 * 0.7 + 0.8 * 0.3
    assert found.worth == pytest.approx((0.999 * before + 0.5 * (1 - before)) * 20 - 1.0)


def test_ties_go_to_the_earlier_option() -> None:
    task = TaskNode("a", "a", "A", p=0.9, cost_usd=1.0, actor_kind="human")
    found = best_choice(chain([task]), {"a": [task, replace(task, actor_kind="code")]}, Cost())
    assert found is not None
    assert found.workflow.tasks[0].actor_kind == "human"
