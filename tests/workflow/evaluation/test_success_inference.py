"""The default success of a workflow whose branches meet again: the truth, for one workflow and for many rows."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.reward import EXACT_ROWS, Figures, evaluate, evaluate_batch
from opus_pipelines.workflow.evaluation.success import exact_success, simulated_success
from opus_pipelines.workflow.evaluation.uncertainty import BetaDistribution, Draws, Posterior, worth_draws
from opus_pipelines.workflow.model import InputNode, Node, OutputNode, TaskNode, Workflow
from tests.campaigns import examples
from tests.workflow.evaluation.random_workflows import any_workflow, enumerated


def meshed(rng: random.Random, tasks: int) -> Workflow:
    """Tasks of low p and q, each behind up to three earlier ones; one output behind the last three."""
    nodes: list[Node] = [InputNode("in", "In"), OutputNode("out", "Out", 100.0)]
    nodes += [TaskNode(f"t{i:02}", f"t{i:02}", "T", p=rng.uniform(0.7, 1), q=rng.uniform(0, 0.3)) for i in range(tasks)]
    names = [f"t{i:02}" for i in range(tasks)]
    edges = [("in", "t00"), *((name, "out") for name in names[-3:])]
    edges += [(u, v) for i, v in enumerate(names) for u in rng.sample(names[:i], min(i, 3))]
    return Workflow.of(nodes, edges)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**6))
def test_the_default_success_is_the_sum_over_all_outcomes(seed: int) -> None:
    workflow = any_workflow(random.Random(seed))
    nodes, whole = enumerated(workflow)
    found = evaluate(workflow, Cost(), Reward())
    assert found.success_inference == "exact"
    assert found.success == pytest.approx(nodes, abs=1e-12)
    assert found.success_probability == pytest.approx(whole, abs=1e-12)
    assert found.expected_gain_usd == pytest.approx(sum(nodes[n.id] for n in workflow.outputs), abs=1e-12)


def test_a_simulation_has_the_default_success_where_the_product_form_is_far_off() -> None:
    rng, off = random.Random(3), []
    for _ in range(20):
        workflow = meshed(rng, 12)
        found, runs = evaluate(workflow, Cost(), Reward()), 40_000
        simulated = simulated_success(workflow, runs, seed=1)
        deviation = math.sqrt(max(found.success_probability, 1e-3) / runs)
        assert simulated.workflow == pytest.approx(found.success_probability, abs=5 * deviation)
        off.append(found.success_probability - found.success_probability_product)
    assert max(off) > 0.1


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 10))
def test_each_row_of_a_batch_is_the_workflow_alone(seed: int, tasks: int) -> None:
    workflow, n = meshed(random.Random(seed), tasks), EXACT_ROWS + 2
    draw = np.random.default_rng(seed)
    p = np.where(draw.random((n, tasks)) < 0.1, 1.0, draw.random((n, tasks)))
    figures = replace(Figures.of(workflow, Cost()), p=p)
    batch = evaluate_batch(workflow, figures, Cost(), "exact")
    for row in (0, EXACT_ROWS - 1, EXACT_ROWS, n - 1):
        nodes = [replace(t, p=p[row, i]) for i, t in enumerate(workflow.tasks)]
        single = evaluate(Workflow.of([*workflow.inputs, *nodes, *workflow.outputs], workflow.edges), Cost(), Reward())
        assert batch.success_probability[row] == pytest.approx(single.success_probability, abs=1e-12)
        assert batch.worth[row] == pytest.approx(single.worth, abs=1e-9)


@pytest.mark.long
def test_the_draws_of_a_mesh_are_about_its_exact_reward() -> None:
    workflow = meshed(random.Random(3), 8)
    posteriors = {t.id: Posterior(BetaDistribution(t.p, 200.0), BetaDistribution(t.q, 200.0)) for t in workflow.tasks}
    found = evaluate(workflow, Cost(), Reward())
    draws = worth_draws(workflow, posteriors, Cost(), Draws(0, 20_000))
    assert draws.mean() == pytest.approx(found.reward_usd, abs=0.2)


def test_the_simulated_figure_is_about_the_exact_one_and_the_same_each_time() -> None:
    """Where exact inference is too wide, `score` takes the simulated figure and says so."""
    workflow = meshed(random.Random(3), 12)
    exact, found = exact_success(workflow), simulated_success(workflow)
    assert found.workflow == pytest.approx(exact.workflow, abs=0.01)
    assert found == simulated_success(workflow)
